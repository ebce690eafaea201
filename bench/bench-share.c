/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-share.c - requests to idle ranks, which own no generator, compared with requests to the rank that owns one
 *
 * It runs instances in which only rank 0, the owner, has a generator; all other options have their defaults:
 *
 *   loop      four brokers in a chain. Rank 3, three hops below the owner, is asked in turn with the owner, with one
 *             request at a time.
 *   chain     the same with 64 pending requests.
 *   star      eleven brokers. Ten ranks below the owner are asked together, each by a client with 64 pending requests,
 *             in turn with the owner, which ten such clients ask. One thread runs all clients.
 *
 * In loop and chain, client and brokers share one processor. With several, the time of a request depends on where the
 * scheduler has put client and broker, and differs by a factor of five (see bench-path.c). In star, the owner has work
 * all the time, and ten ranks need all processors. With fluid.share=off, loop and chain show requests that are
 * forwarded.
 *
 * Before the turns, idle ranks get WARMUP_S seconds of the same load, and before each turn the rank that is asked gets
 * LEAD_SHARED_S of it, because the parts of the owner's generator that ranks hold follow their load within a second. A
 * note in each line states this time, and which rank made their ids at the end. Rates are also compared with the rate
 * of the owner before any other rank was asked ("untouched"). Ratios of idle ranks to the owner have aims, and are
 * ratios of the whole run, not of the best turn. Clients make no ids themselves (IDT_O_NOSHM).
 */
#include "config.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "flood.h"
#include "line.h"
#include "timing.h"

#define TURNS 6
#define TURN_S 0.4
#define LEAD_S 0.1      /* seconds of load before each turn, because the pipeline is not full and caches are cold */
#define LEAD_SHARED_S 1 /* the same if ranks share: they get what they need within a second */
#define WARMUP_S 3
#define MANY 64 /* pending requests */
#define CLIENTS_MAX 10

/* A comparison of idle ranks with the owner. An aim of 0 is no aim. */
struct phase {
    int under_way;   /* pending requests of each client; 1: a closed loop */
    int first, last; /* the idle ranks */
    double mean_aim, p99_aim, rate_aim;
};

static const struct phase loop = { .under_way = 1, .first = 3, .last = 3, .mean_aim = 1.2, .p99_aim = 3 };
static const struct phase chain = { .under_way = MANY, .first = 3, .last = 3, .p99_aim = 3, .rate_aim = 0.8 };
static const struct phase star = { .under_way = MANY, .first = 1, .last = 10, .rate_aim = 0.9 };

/* The suffix is a part of the names of its lines. Ranks that hold no parts need no warm-up. */
static const struct instance {
    const char *shape, *share, *suffix;
    const struct phase *phase;
    int size, arity;
    bool one_processor;
    int warmup_s;
} instances[] = {
    { "loop", "off", ", on one processor, fluid.share=off", &loop, 4, 1, true, 0 },
    { "loop", "auto", ", on one processor", &loop, 4, 1, true, WARMUP_S },
    { "chain", "off", ", on one processor, fluid.share=off", &chain, 4, 1, true, 0 },
    { "chain", "auto", ", on one processor", &chain, 4, 1, true, WARMUP_S },
    { "star", "auto", "", &star, 11, 10, false, WARMUP_S },
};
#define INSTANCES (sizeof (instances) / sizeof (instances[0]))

static void die (const char *what, const char *why)
{
    fprintf (stderr, "bench-share: %s: %s\n", what, why);
    exit (1);
}

/* --- load -------------------------------------------------------------------------------------------------------- */

/* The ranks that are asked together, by clients of which each asks one rank, and what was measured of them. */
struct side {
    const char *uri; /* of rank 0 */
    int first, last, clients;
    struct figures us, p99, rate;
};

static idt_t *open_rank (const char *uri, int rank)
{
    idt_error_t err = { "" };
    char text[256];
    idt_t *h;

    snprintf (text, sizeof (text), "%.*s%d", (int)strlen (uri) - 1, uri, rank);
    if (!(h = idt_open_ex (text, &(struct idt_open_options){ .flags = IDT_O_NOSHM }, &err)))
        die (text, err.text);
    return h;
}

/* Like flood_run (), for one client that waits for each answer as most programs do, without a reactor. */
static double closed_loop (const struct flood *fl, idt_t *h)
{
    double sent = now_s (), start = sent + fl->warmup_s, now;
    long got = 0;
    fluid_t id;

    do {
        if (idt_fluid_generate (h, 1, &id) < 0)
            die ("idt_fluid_generate", strerror (errno));
        now = now_s ();
        if (sent >= start) {
            got++;
            if (fl->times)
                figures_add (fl->times, (now - sent) * 1e6);
        }
        sent = now;
    } while (now < start + fl->seconds);
    idt_close (h);
    return (double)got / fl->seconds;
}

/* Each turn has new clients, because the scheduler may keep a good or bad placement of client and broker for as long as
 * these live.
 */
static double load (const struct side *s, const struct flood *fl)
{
    idt_t *h[CLIENTS_MAX];

    for (int i = 0; i < s->clients; i++)
        h[i] = open_rank (s->uri, s->first + i % (s->last - s->first + 1));
    return fl->under_way == 1 ? closed_loop (fl, h[0]) : flood_run (fl, h, s->clients);
}

static void warm_up (struct side *s, int under_way, int seconds)
{
    double rate = load (s, &(struct flood){ .block = 1, .under_way = under_way, .seconds = seconds });

    s->us.warmup = s->p99.warmup = (long)(rate * seconds);
}

static void run_turn (struct side *s, int under_way, double lead_s)
{
    struct flood fl = { .block = 1, .under_way = under_way, .warmup_s = lead_s, .seconds = TURN_S, .times = &s->us };

    figures_add (&s->rate, load (s, &fl));
    for (size_t i = s->us.first; i < s->us.rounds; i++)
        figures_add (&s->p99, s->us.round[i]);
    figures_end_turn (&s->us);
    figures_end_turn (&s->p99);
    figures_end_turn (&s->rate);
}

/* --- results ----------------------------------------------------------------------------------------------------- */

/* What all lines of an instance share. */
struct result {
    const struct instance *instance;
    const struct phase *phase;
    const char *who; /* the name of the idle ranks */
    struct side untouched, owner, idle;
    char note[128]; /* about the idle ranks */
};

/* Return the rank that makes the ids of a rank now; -1 if no rank does. */
static int served_by (const char *uri, int rank)
{
    static const char key[] = "\"served_by\":";
    idt_t *h = open_rank (uri, rank);
    idt_future_t *f = idt_rpc (h, "fluid.info", "{}", IDT_NODEID_ANY, 0);
    const char *info = NULL, *at;
    int server = -1;

    if (!f || idt_rpc_get (f, &info) < 0)
        die ("fluid.info", f ? idt_future_error (f) : strerror (errno));
    if (info && (at = strstr (info, key)))
        sscanf (at + strlen (key), "%d", &server);
    idt_future_destroy (f);
    idt_close (h);
    return server;
}

static void write_note (struct result *r)
{
    const struct side *s = &r->idle;
    int served = served_by (s->uri, s->first), own = 0;
    char begin[48] = "", end[64];

    for (int rank = s->first; rank <= s->last; rank++)
        own += served_by (s->uri, rank) == rank;
    if (s->first == s->last)
        snprintf (end, sizeof (end), "rank %d served by rank %d", s->first, served);
    else
        snprintf (end, sizeof (end), "%d of %d ranks served by themselves", own, s->last - s->first + 1);
    if (r->instance->warmup_s > 0)
        snprintf (begin, sizeof (begin), "after %d s of this load; ", r->instance->warmup_s);
    snprintf (r->note, sizeof (r->note), "%.40sat the end %s", begin, end);
}

/* Print a line. The limit is 'line->bare', or an aim. */
static void print (const struct result *r, struct line line, const char *what, const char *who)
{
    char name[128];

    snprintf (name, sizeof (name), "%s%s%s", what, who, r->instance->suffix);
    line.subject = "shares";
    line.name = name;
    line.size = r->phase->under_way;
    line.size_of = r->phase->first < r->phase->last ? "outstanding of each client" : "outstanding";
    line.limit_of = line.bare ? "the owner" : "the aim";
    line.aim = line.limit > 0;
    line_print (&line);
}

static void print_sides (const struct result *r)
{
    const struct side *o = &r->owner, *i = &r->idle;

    if (i->first == i->last) {
        print (r, (struct line){ .unit = "us", .figures = &o->us }, "a request to ", "the owner");
        print (r, (struct line){ .unit = "us", .figures = &i->us, .bare = &o->us, .note = r->note }, "a request to ",
               r->who);
    }
    if (r->untouched.rate.turns > 0)
        print (r, (struct line){ .unit = "/s", .figures = &r->untouched.rate }, "ids of ",
               i->first == i->last ? "the owner, untouched" : "the owner of a star, untouched");
    print (r, (struct line){ .unit = "/s", .figures = &o->rate }, "ids of ",
           i->first == i->last ? "the owner" : "the owner of a star");
    print (r, (struct line){ .unit = "/s", .figures = &i->rate, .bare = &o->rate, .note = r->note }, "ids of ", r->who);
}

/* Print the ratio of the idle ranks to the owner: in each turn, and of the whole run, which is the result. */
static void print_ratio (const struct result *r, const char *what, const struct figures *idle,
                         const struct figures *owner, double whole, double aim)
{
    struct figures f = { .more = idle->more, .warmup = idle->warmup };

    for (int turn = 0; turn < idle->turns; turn++) {
        figures_add (&f, idle->turn[turn] / owner->turn[turn]);
        figures_end_turn (&f);
    }
    print (r, (struct line){ .unit = "times", .figures = &f, .value = whole, .limit = aim }, what, r->who);
    figures_fini (&f);
}

static void print_rate_ratio (const struct result *r, const char *what, const struct figures *owner)
{
    double whole = figures_summary (&r->idle.rate, r->who).mean / figures_summary (owner, "the owner").mean;

    print_ratio (r, what, &r->idle.rate, owner, whole, r->phase->rate_aim);
}

static void print_ratios (const struct result *r)
{
    const struct phase *p = r->phase;
    const struct side *o = &r->owner, *i = &r->idle;
    struct summary times[] = { figures_summary (&i->us, r->who), figures_summary (&o->us, "the owner") };

    if (i->first == i->last) {
        print_ratio (r, "mean, relative to the owner: ", &i->us, &o->us, times[0].mean / times[1].mean, p->mean_aim);
        print_ratio (r, "p99, relative to the owner: ", &i->p99, &o->p99, times[0].p99 / times[1].p99, p->p99_aim);
    }
    print_rate_ratio (r, "ids, relative to the owner: ", &o->rate);
    if (r->untouched.rate.turns > 0)
        print_rate_ratio (r, "ids, relative to the owner, untouched: ", &r->untouched.rate);
}

/* --- all --------------------------------------------------------------------------------------------------------- */

static struct side side_of (const char *uri, const struct phase *p, bool idle)
{
    return (struct side){ .uri = uri,
                          .first = idle ? p->first : 0,
                          .last = idle ? p->last : 0,
                          .clients = p->last - p->first + 1,
                          .us = { .of = FIGURES_MEAN },
                          .p99 = { .of = FIGURES_P99 },
                          .rate = { .more = true } };
}

static void side_fini (struct side *s)
{
    figures_fini (&s->us);
    figures_fini (&s->p99);
    figures_fini (&s->rate);
}

static void measure (const char *uri, const struct instance *in)
{
    const struct phase *p = in->phase;
    bool shares = in->warmup_s > 0;
    double lead_s = shares ? LEAD_SHARED_S : LEAD_S;
    struct result r = {
        .instance = in,
        .phase = p,
        .who = p->first < p->last ? "ten idle ranks" : "an idle rank",
        .untouched = side_of (uri, p, false),
        .owner = side_of (uri, p, false),
        .idle = side_of (uri, p, true),
    };

    for (int turn = 0; turn < TURNS && shares && p->rate_aim > 0; turn++)
        run_turn (&r.untouched, p->under_way, LEAD_S);
    if (shares)
        warm_up (&r.idle, p->under_way, in->warmup_s);
    for (int turn = 0; turn < TURNS; turn++) {
        run_turn (&r.owner, p->under_way, lead_s);
        run_turn (&r.idle, p->under_way, lead_s);
    }
    write_note (&r);
    print_sides (&r);
    if (shares)
        print_ratios (&r);
    side_fini (&r.untouched);
    side_fini (&r.owner);
    side_fini (&r.idle);
}

/* Let this process, and all processes that it starts from now on, use only the processor on which it runs. */
static void stay_here (void)
{
    cpu_set_t set;

    CPU_ZERO (&set);
    CPU_SET (sched_getcpu (), &set);
    if (sched_setaffinity (0, sizeof (set), &set) < 0)
        die ("sched_setaffinity", strerror (errno));
}

static bool start (const char *self, size_t i)
{
    const char *idtree = getenv ("IDTREE") ? getenv ("IDTREE") : BUILDDIR "/src/cmd/idtree";
    const struct instance *in = &instances[i];
    char command[4096];
    cpu_set_t before;
    int status;

    snprintf (
        command, sizeof (command),
        "%s start -s %d --topology kary:%d -o log-stderr-level=0 -o fluid.max-generators=1 -o fluid.share=%s %s %zu",
        idtree, in->size, in->arity, in->share, self, i);
    if (sched_getaffinity (0, sizeof (before), &before) < 0)
        die ("sched_getaffinity", strerror (errno));
    if (in->one_processor)
        stay_here ();
    status = system (command);
    if (sched_setaffinity (0, sizeof (before), &before) < 0)
        die ("sched_setaffinity", strerror (errno));
    return status == 0;
}

/* Inside of an instance the argument is its number in 'instances'. Otherwise an argument is the shape of the only
 * instances to run.
 */
int main (int argc, char **argv)
{
    const char *uri = getenv ("IDTREE_URI"), *only = argc > 1 ? argv[1] : NULL;
    bool good = true, found = false;

    if (only && *only >= '0' && *only < '0' + (int)INSTANCES && uri) {
        measure (uri, &instances[*only - '0']);
        return 0;
    }
    for (size_t i = 0; i < INSTANCES; i++)
        if (!only || strcmp (only, instances[i].shape) == 0) {
            found = true;
            good = start (argv[0], i) && good;
        }
    if (!found)
        die (only, "there is no such shape: use loop, chain or star");
    return good ? 0 : 1;
}
