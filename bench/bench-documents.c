/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-documents.c - ids of one document from eight ranks: the rate at which they are made and become final on all
 * ranks
 *
 * If there is no instance, it runs itself under `idtree start` with eight brokers in a binary tree. Each rank has a
 * client with WINDOW pending requests of COUNT ids, or a client with its own compressor. The clock stops when every
 * rank has finalized all ids of all ranks. The results are compared with the rate of bare calls of the same module by
 * the same clients. They also contain the numbers of messages up and events down, as the module counts them.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "line.h"
#include "timing.h"

#define RANKS 8
#define FAR (RANKS - 1) /* three hops from rank 0 */
#define WINDOW 4
#define COUNT 100
#define REQUESTS 10000 /* requests of each rank */
#define RUNS 4         /* turns of each flood */
#define TURNS 10
#define LATENCIES 200 /* requests of a turn */
#define WARMUP 200
#define TARGET 1E6 /* ids/s of all ranks together */

struct client {
    idt_t *h;
    pthread_t thread;
    const char *document;
    double made; /* when the last id was made */

    /* used if the client has a compressor of its own */
    pthread_barrier_t *barrier;
    double start, end;
    json_int_t seq, clusters;
};

static void die (const char *what, const char *why)
{
    fprintf (stderr, "bench-documents: %s: %s\n", what, why ? why : strerror (errno));
    exit (1);
}

static void finish (idt_future_t *f, const char *what)
{
    if (!f || idt_rpc_get (f, NULL) < 0)
        die (what, f ? idt_future_error (f) : NULL);
    idt_future_destroy (f);
}

static void run_all (struct client *clients, void *(*run) (void *arg))
{
    for (int i = 0; i < RANKS; i++)
        if (pthread_create (&clients[i].thread, NULL, run, &clients[i]) != 0)
            die ("pthread_create", NULL);
    for (int i = 0; i < RANKS; i++)
        pthread_join (clients[i].thread, NULL);
}

/* --- what the services counted -------------------------------------------------------------------------------- */

struct counters {
    json_int_t batches;  /* batches that were stored and published */
    json_int_t orders;   /* messages up, counted at each hop */
    json_int_t elements; /* ranges in these messages */
    json_int_t events;   /* events down, counted at each rank */
};

static struct counters count_at (struct client *c)
{
    idt_future_t *f = idt_rpc (c->h, "compressor.stats-get", NULL, IDT_NODEID_ANY, 0);
    struct counters n = { 0 };

    if (!f
        || idt_rpc_get_unpack (f, "{s:I s:I s:I s?{s:I}}", "orders", &n.orders, "elements", &n.elements, "events",
                               &n.events, "root", "groups", &n.batches)
               < 0)
        die ("compressor.stats-get", NULL);
    idt_future_destroy (f);
    return n;
}

static struct counters count_all (struct client *clients)
{
    struct counters sum = { 0 };

    for (int i = 0; i < RANKS; i++) {
        struct counters n = count_at (&clients[i]);

        sum.batches += n.batches;
        sum.orders += n.orders;
        sum.elements += n.elements;
        sum.events += n.events;
    }
    return sum;
}

static json_int_t ask_number (struct client *c, const char *key)
{
    idt_future_t *f = idt_rpc_pack (c->h, "compressor.stats", IDT_NODEID_ANY, 0, "{s:s}", "document", c->document);
    json_int_t value = -1;

    if (!f || idt_rpc_get_unpack (f, "{s:I}", key, &value) < 0)
        die (key, NULL);
    idt_future_destroy (f);
    return value;
}

/* --- sessions of the ranks --------------------------------------------------------------------------------------- */

static idt_future_t *ping (struct client *c, uint32_t rank)
{
    return idt_rpc (c->h, "compressor.ping", "{}", rank, 0);
}

static idt_future_t *generate (struct client *c, int count, bool final)
{
    return idt_rpc_pack (c->h, "compressor.generate", IDT_NODEID_ANY, 0, "{s:s s:i s:b}", "document", c->document,
                         "count", count, "final", final);
}

static idt_future_t *ask (struct client *c)
{
    return c->document ? generate (c, COUNT, false) : ping (c, IDT_NODEID_ANY);
}

static void *flood_main (void *arg)
{
    struct client *c = arg;
    idt_future_t *f[WINDOW];

    for (int i = 0; i < WINDOW; i++)
        f[i] = ask (c);
    for (int i = WINDOW; i < REQUESTS; i++) {
        finish (f[i % WINDOW], "request");
        f[i % WINDOW] = ask (c);
    }
    for (int i = 0; i < WINDOW; i++)
        finish (f[i], "request");
    c->made = now_s ();
    return NULL;
}

/* Make one more id final: then all earlier ids of the rank are final, too. */
static void *settle_main (void *arg)
{
    struct client *c = arg;

    finish (generate (c, 1, true), "generate final");
    return NULL;
}

/* Wait until each rank has finalized as many ranges as the rank that has finalized most. */
static void await_equal (struct client *clients)
{
    json_int_t newest = 0;

    for (int i = 0; i < RANKS; i++) {
        json_int_t seq = ask_number (&clients[i], "seq");

        newest = seq > newest ? seq : newest;
    }
    for (int i = 0; i < RANKS; i++)
        while (ask_number (&clients[i], "seq") < newest)
            ;
}

static void open_on (struct client *c, const char *document)
{
    c->document = document;
    finish (idt_rpc_pack (c->h, "compressor.open", IDT_NODEID_ANY, 0, "{s:s}", "document", document), "open");
}

/* --- compressors of the clients' own ------------------------------------------------------------------------------ */

/* Make ids one by one, while the reactor receives ordered ranges. */
static void make_own (struct client *c, idt_document_t *d)
{
    int64_t id;

    for (int i = 0; i < REQUESTS; i++) {
        for (int k = 0; k < COUNT; k++)
            if (idcomp_generate (idt_document_ids (d), &id) < 0)
                die ("idcomp_generate", idcomp_strerror (errno));
        if (idt_reactor_run (idt_get_reactor (c->h), IDT_REACTOR_NOWAIT) < 0)
            die ("reactor", NULL);
    }
    c->made = now_s ();
}

static void *own_main (void *arg)
{
    struct client *c = arg;
    idt_error_t error;
    idt_document_t *d = idt_document_open (c->h, c->document, -1, &error);

    if (!d)
        die (c->document, error.text);
    pthread_barrier_wait (c->barrier); /* now all clients have opened the document */
    c->start = now_s ();
    make_own (c, d);
    if (idt_document_settle (d, -1) < 0)
        die ("idt_document_settle", idt_document_error (d));
    pthread_barrier_wait (c->barrier); /* now all ranges are ordered */
    if (idt_document_sync (d, -1) < 0)
        die ("idt_document_sync", idt_document_error (d));
    c->end = now_s ();
    c->seq = idt_document_seq (d);
    c->clusters = idcomp_stats (idt_document_ids (d)).clusters;
    idt_document_close (d);
    return NULL;
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

struct throughput {
    double rate;  /* rate of ids that became final on all ranks */
    double lag_s; /* time from when the last id was made until all are final */
    json_int_t ranges, clusters;
    struct counters n;
};

static struct throughput rate_of (struct client *clients, double start, double end, struct counters before)
{
    struct throughput t = { .rate = (double)RANKS * COUNT * REQUESTS / (end - start), .n = count_all (clients) };
    double last = 0;

    t.n.batches -= before.batches;
    t.n.orders -= before.orders;
    t.n.elements -= before.elements;
    t.n.events -= before.events;
    for (int i = 0; i < RANKS; i++)
        last = clients[i].made > last ? clients[i].made : last;
    t.lag_s = end - last;
    return t;
}

static struct throughput run_sessions (struct client *clients, const char *document)
{
    for (int i = 0; i < RANKS; i++)
        open_on (&clients[i], document);
    struct counters before = count_all (clients);
    double start = now_s ();
    run_all (clients, flood_main);
    run_all (clients, settle_main);
    await_equal (clients);

    struct throughput t = rate_of (clients, start, now_s (), before);
    t.ranges = ask_number (&clients[0], "seq");
    t.clusters = ask_number (&clients[0], "clusters");
    return t;
}

static struct throughput run_own (struct client *clients, const char *document)
{
    struct counters before = count_all (clients);
    pthread_barrier_t barrier;
    double start = 1E99, end = 0;

    pthread_barrier_init (&barrier, NULL, RANKS);
    for (int i = 0; i < RANKS; i++) {
        clients[i].document = document;
        clients[i].barrier = &barrier;
    }
    run_all (clients, own_main);
    pthread_barrier_destroy (&barrier);
    for (int i = 0; i < RANKS; i++) {
        start = clients[i].start < start ? clients[i].start : start;
        end = clients[i].end > end ? clients[i].end : end;
    }
    struct throughput t = rate_of (clients, start, end, before);
    t.ranges = clients[0].seq;
    t.clusters = clients[0].clusters;
    return t;
}

/* Return how many ids the clients could request if each request were a bare call of the module. */
static double run_pings (struct client *clients)
{
    for (int i = 0; i < RANKS; i++)
        clients[i].document = NULL;
    double start = now_s ();
    run_all (clients, flood_main);
    return (double)RANKS * COUNT * REQUESTS / (now_s () - start);
}

/* The figures that are printed about one way to make ids. */
struct report {
    struct figures rate, lag_ms, up, down;
};

static void take (struct figures *f, double x)
{
    figures_add (f, x);
    figures_end_turn (f);
}

static void add_run (struct report *r, struct throughput t)
{
    double batches = (double)t.n.batches;

    take (&r->rate, t.rate);
    take (&r->lag_ms, t.lag_s * 1E3);
    take (&r->up, (double)t.n.orders / batches / RANKS);
    take (&r->down, (double)t.n.events / batches / RANKS);
}

/* Print a line. 'most' is a limit; 0: no limit. */
static void print_plain (const char *what, const char *who, const char *unit, const struct figures *f, double most)
{
    char name[64];

    snprintf (name, sizeof (name), "%s, %s", what, who);
    line_print (&(struct line){
        .subject = "documents",
        .name = name,
        .unit = unit,
        .figures = f,
        .limit = most,
        .limit_of = "bound",
        .aim = true,
    });
}

static void print_report (const char *who, struct report *r, const struct figures *pings)
{
    char name[64];

    snprintf (name, sizeof (name), "final everywhere, %s", who);
    line_print (&(struct line){
        .subject = "documents",
        .name = name,
        .unit = "/s",
        .figures = &r->rate,
        .limit = pings ? 0 : TARGET,
        .bare = pings,
        .limit_of = pings ? "bare calls instead" : "goal",
        .aim = !pings,
    });
    print_plain ("from the last made to all final", who, "ms", &r->lag_ms, 0);
    print_plain ("messages up, a hop and batch", who, "messages", &r->up, 1);
    if (figures_value (&r->down) > 0) /* with their own compressors, the clients receive the ranges themselves */
        print_plain ("events down, a rank and batch", who, "messages", &r->down, 1);
    figures_fini (&r->rate);
    figures_fini (&r->lag_ms);
    figures_fini (&r->up);
    figures_fini (&r->down);
}

static void measure_throughput (struct client *clients)
{
    struct report sessions = { .rate.more = true }, own = { .rate.more = true };
    struct figures pings = { .more = true };
    char name[32];

    for (int run = 0; run < RUNS; run++) {
        take (&pings, run_pings (clients));
        snprintf (name, sizeof (name), "sessions-%d", run);
        add_run (&sessions, run_sessions (clients, name));
        snprintf (name, sizeof (name), "own-%d", run);
        add_run (&own, run_own (clients, name));
    }
    print_report ("8 ranks", &sessions, &pings);
    print_report ("8 compressors of clients", &own, NULL);
    figures_fini (&pings);
}

/* --- latency ------------------------------------------------------------------------------------------------------ */

struct call {
    struct client *c;
    idt_future_t *(*start) (struct client *c);
    struct figures figures;
};

static void call_it (void *arg)
{
    struct call *call = arg;

    finish (call->start (call->c), "request");
}

static idt_future_t *ping_here (struct client *c)
{
    return ping (c, FAR);
}

static idt_future_t *ping_root (struct client *c)
{
    return ping (c, 0);
}

static idt_future_t *make_here (struct client *c)
{
    return generate (c, 1, false);
}

static idt_future_t *make_final (struct client *c)
{
    return generate (c, 1, true);
}

/* Measure one rank alone, compared with bare calls of the module at this rank and at rank 0. The ids that a request
 * returns are made immediately, but other ids are announced meanwhile, which is part of the measured time.
 */
static void measure_latency (struct client *c)
{
    struct call calls[] = {
        { .c = c, .start = ping_here },
        { .c = c, .start = make_here },
        { .c = c, .start = ping_root },
        { .c = c, .start = make_final },
    };
    static const char *const names[] = { NULL, "one id, made immediately", NULL, "one id, final, three hops away" };
    const int n = sizeof (calls) / sizeof (calls[0]);

    open_on (c, "latency");
    for (int i = 0; i < n; i++) {
        calls[i].figures = (struct figures){ .of = FIGURES_MEDIAN, .warmup = WARMUP };
        for (int k = 0; k < WARMUP; k++)
            call_it (&calls[i]);
    }
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < n; i++)
            figures_time_calls (&calls[i].figures, call_it, &calls[i], LATENCIES);
    for (int i = 1; i < n; i += 2)
        line_print (&(struct line){
            .subject = "documents",
            .name = names[i],
            .unit = "us",
            .figures = &calls[i].figures,
            .bare = &calls[i - 1].figures,
            .limit_of = "a bare call of the same module",
        });
    for (int i = 0; i < n; i++)
        figures_fini (&calls[i].figures);
}

int main (int argc, char **argv)
{
    const char *uri = getenv ("IDTREE_URI");
    const char *idtree = getenv ("IDTREE") ? getenv ("IDTREE") : BUILDDIR "/src/cmd/idtree";
    struct client clients[RANKS];
    char other[256];

    if (argc < 2) {
        execl (idtree, idtree, "start", "-s", "8", "--topology", "kary:2", "-o", "broker.modules=fluid,compressor",
               argv[0], "inside", (char *)NULL);
        die (idtree, NULL);
    }
    if (!uri || strlen (uri) < 2)
        die ("IDTREE_URI", "not set");
    for (int i = 0; i < RANKS; i++) {
        snprintf (other, sizeof (other), "%.*s%d", (int)strlen (uri) - 1, uri, i);
        clients[i] = (struct client){ .h = idt_open (other, NULL) };
        if (!clients[i].h)
            die (other, NULL);
    }
    measure_latency (&clients[FAR]);
    measure_throughput (clients);
    for (int i = 0; i < RANKS; i++)
        idt_close (clients[i].h);
    return 0;
}
