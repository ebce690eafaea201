/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* idload.c - request ids from many ranks without pause, until standard input ends; then check the ids
 *
 *     idload [-ap] [-c MOST] [-w PENDING] [-g MS] URI-PREFIX RANK...    such as idload local:///tmp/x/local- 0 3 7
 *
 * A request is for at most MOST (300) ids. With -p, a client also makes ids in the page after each answer, if the
 * broker shares a page; each of these must be above all ids that arrived before. Each rank has PENDING (4) requests at
 * a time. If a connection is lost, the client reconnects. The last line of the output has the totals, the lines before
 * it the figures of each rank, with the longest time between two answers with ids on a connection. With -g, a line
 * reports each such time of MS or more when it has ended. The exit status is 0 if and only if every request was
 * answered once (by ids or an error), no id was issued twice, and the ids of each connection increased.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <idtree/idtree.h>
#include <idtree/page.h>

#define PENDING 4
#define MAX_COUNT 300
#define REOPEN_MS 10.
#define PAGE_IDS 8 /* ids that are made in a page after an answer */
#define PAGE_OPEN_MS 1000
#define PAUSE_MS 1. /* between a failure and the next request, to limit the load */

struct load;

struct counts {
    unsigned long ids, by_page, asked, answered, failed, lost, disorder;
};

struct client {
    struct load *load;
    char uri[256];
    const char *rank;
    idt_t *h; /* NULL: not connected */
    idt_watcher_t *timer;
    bool lost;
    fluid_t last;
    double got_ms, gap_ms; /* when the connection last got ids (0: never), and the longest time without */
    size_t run;            /* index of its last run, plus 1; 0: it has no run */
    idt_page_t *page;      /* NULL: there is no page, or pages are not used */
    size_t page_run;
    int outstanding;
    struct counts counts;
};

struct load {
    idt_reactor_t *reactor;
    struct client *clients;
    int nclients;
    int most;    /* most ids of a request */
    int pending; /* requests of a rank at a time */
    int gap_ms;  /* report longer times without ids; 0: never */
    bool use_pages;
    bool each; /* stop only after each rank has got ids */
    bool stopping;
    struct run *runs;
    size_t n, size;
};

/* Consecutive ids. They are kept as runs, because a long test makes more ids than memory could hold one by one. */
struct run {
    fluid_t first;
    fluid_t last;
};

struct request {
    struct client *c;
    uint32_t count;
    bool done;
};

static void die (const char *what)
{
    fprintf (stderr, "idload: %s: %s\n", what, strerror (errno));
    exit (2);
}

static void add_run (struct load *l, fluid_t id)
{
    if (l->n == l->size) {
        l->size = l->size ? l->size * 2 : 1 << 16;
        if (!(l->runs = realloc (l->runs, l->size * sizeof (l->runs[0]))))
            die ("realloc");
    }
    l->runs[l->n++] = (struct run){ id, id };
}

/* Keep ids of an answer. The ids of many answers of a rank are consecutive. */
static void keep (struct load *l, size_t *run, const fluid_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (*run == 0 || ids[i] != l->runs[*run - 1].last + 1) {
            add_run (l, ids[i]);
            *run = l->n;
        }
        l->runs[*run - 1].last = ids[i];
    }
}

static void check_order (struct client *c, const fluid_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        c->counts.disorder += ids[i] <= c->last;
        c->last = ids[i];
    }
}

/* Make ids in the page. Answers to pending requests may have ids below these, so the last id of the connection is not
 * changed.
 */
static void use_page (struct client *c)
{
    fluid_t ids[PAGE_IDS], last = c->last;
    int n;

    if (!c->load->use_pages)
        return;
    if (!c->page)
        c->page = idt_page_open (c->uri, PAGE_OPEN_MS);
    n = c->page ? idt_page_generate (c->page, 0, PAGE_IDS, ids) : 0;
    if (n < 0 && errno == ESTALE) {
        idt_page_close (c->page);
        c->page = NULL;
    }
    for (int i = 0; i < n; i++) {
        c->counts.disorder += ids[i] <= last;
        last = ids[i];
    }
    if (n > 0) {
        keep (c->load, &c->page_run, ids, n);
        c->counts.by_page += n;
    }
}

static void note_gap (struct client *c)
{
    struct timespec ts;

    clock_gettime (CLOCK_MONOTONIC, &ts);
    double now_ms = (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
    double gap_ms = c->got_ms > 0. ? now_ms - c->got_ms : 0.;
    if (gap_ms > c->gap_ms)
        c->gap_ms = gap_ms;
    if (c->load->gap_ms > 0 && gap_ms >= c->load->gap_ms)
        printf ("gap of rank %s: %.0f ms, until uptime %.3f s\n", c->rank, gap_ms, now_ms / 1e3);
    c->got_ms = now_ms;
}

static bool is_stopping (const struct client *c)
{
    return c->load->stopping && (!c->load->each || c->counts.ids > 0);
}

static void maybe_finish (struct load *l)
{
    for (int i = 0; i < l->nclients; i++)
        if (l->clients[i].outstanding > 0 || !is_stopping (&l->clients[i]))
            return;
    idt_reactor_stop (l->reactor);
}

static void ask (struct client *c);

static void answered (idt_future_t *f, void *arg)
{
    struct request *r = arg;
    struct client *c = r->c;
    fluid_t ids[MAX_COUNT];
    bool good;

    if (r->done)
        abort (); /* a request was answered twice */
    r->done = true;
    c->counts.answered++;
    c->outstanding--;
    if ((good = idt_fluid_generate_get (f, r->count, ids) == 0)) {
        keep (c->load, &c->run, ids, r->count);
        c->counts.ids += r->count;
        note_gap (c);
        check_order (c, ids, r->count);
    }
    else
        c->counts.failed++;
    use_page (c); /* the page does not need the broker */
    idt_future_destroy (f);
    free (r);
    if (good && !c->lost)
        ask (c);
    else
        idt_watcher_start (c->timer);
    maybe_finish (c->load);
}

static void ask (struct client *c)
{
    while (c->h && !c->lost && !is_stopping (c) && c->outstanding < c->load->pending) {
        struct request *r = calloc (1, sizeof (*r));
        idt_future_t *f;

        if (!r)
            die ("calloc");
        r->c = c;
        r->count = 1 + rand () % c->load->most;
        if (!(f = idt_fluid_generate_async (c->h, r->count)) || idt_future_then (f, -1., answered, r) < 0) {
            idt_future_destroy (f);
            free (r);
            idt_watcher_start (c->timer);
            return;
        }
        c->counts.asked++;
        c->outstanding++;
    }
}

/* A handle must not be closed in its own callbacks, so the timer closes it. */
static void lost (idt_t *h, int errnum, void *arg)
{
    struct client *c = arg;

    c->lost = true;
    c->counts.lost++;
    idt_watcher_start (c->timer);
}

static void open_client (struct client *c)
{
    c->lost = false;
    c->last = 0; /* ids need to increase only within a connection and the page of its broker */
    c->got_ms = 0.;
    idt_page_close (c->page);
    c->page = NULL;
    if (!(c->h = idt_open (c->uri, NULL)) || idt_set_reactor (c->h, c->load->reactor) < 0) {
        idt_close (c->h);
        c->h = NULL;
        idt_timer_watcher_reset (c->timer, REOPEN_MS, 0.);
        idt_watcher_start (c->timer);
        return;
    }
    idt_timer_watcher_reset (c->timer, PAUSE_MS, 0.);
    idt_watcher_stop (c->timer);
    idt_set_lost (c->h, lost, c);
}

static void timer_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct client *c = arg;

    if (c->lost && c->outstanding > 0) /* the last of these callbacks starts the timer */
        return;
    if (c->lost) {
        idt_close (c->h);
        c->h = NULL;
    }
    if (!c->h && !is_stopping (c))
        open_client (c);
    if (c->h)
        ask (c);
}

static void stdin_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct load *l = arg;
    char buf[256];

    if (read (STDIN_FILENO, buf, sizeof (buf)) > 0)
        return;
    idt_watcher_stop (w);
    l->stopping = true;
    maybe_finish (l);
}

static int compare (const void *a, const void *b)
{
    fluid_t x = ((const struct run *)a)->first, y = ((const struct run *)b)->first;

    return (x > y) - (x < y);
}

static unsigned long count_duplicates (struct load *l)
{
    unsigned long n = 0;
    fluid_t last = 0; /* last id of all runs so far */

    qsort (l->runs, l->n, sizeof (l->runs[0]), compare);
    for (const struct run *r = l->runs; r < l->runs + l->n; r++) {
        if (r->first <= last)
            n += (r->last < last ? r->last : last) - r->first + 1;
        if (r->last > last)
            last = r->last;
    }
    return n;
}

static void print_counts (const struct counts *n)
{
    printf ("ids %lu by-page %lu asked %lu answered %lu failed %lu connections-lost %lu disorder %lu", n->ids,
            n->by_page, n->asked, n->answered, n->failed, n->lost, n->disorder);
}

static void add_counts (struct counts *sum, const struct counts *n)
{
    sum->ids += n->ids;
    sum->by_page += n->by_page;
    sum->asked += n->asked;
    sum->answered += n->answered;
    sum->failed += n->failed;
    sum->lost += n->lost;
    sum->disorder += n->disorder;
}

static int report (struct load *l, char **ranks)
{
    unsigned long duplicates = count_duplicates (l);
    struct counts all = { 0 };

    for (int i = 0; i < l->nclients; i++) {
        printf ("rank %s: ", ranks[i]);
        print_counts (&l->clients[i].counts);
        printf (" longest-gap-ms %.0f\n", l->clients[i].gap_ms);
        add_counts (&all, &l->clients[i].counts);
    }
    print_counts (&all);
    printf (" duplicates %lu\n", duplicates);
    return all.asked != all.answered || all.disorder > 0 || duplicates > 0;
}

/* Read the options. Returns the number of words up to the first operand, or -1. */
static int parse_options (struct load *l, int argc, char **argv)
{
    int c;

    while ((c = getopt (argc, argv, "apc:w:g:")) != -1) {
        if (c == 'a')
            l->each = true;
        else if (c == 'p')
            l->use_pages = true;
        else if (c == 'c')
            l->most = atoi (optarg);
        else if (c == 'w')
            l->pending = atoi (optarg);
        else if (c == 'g')
            l->gap_ms = atoi (optarg);
        else
            return -1;
    }
    return l->most >= 1 && l->most <= MAX_COUNT && l->pending >= 1 && argc >= optind + 2 ? optind : -1;
}

int main (int argc, char **argv)
{
    struct load l = { .reactor = idt_reactor_create (), .most = MAX_COUNT, .pending = PENDING };
    int n = parse_options (&l, argc, argv);

    errno = EINVAL;
    if (n < 0)
        die ("usage: idload [-p] [-c MOST] [-w PENDING] [-g MS] URI-PREFIX RANK...");
    argc -= n - 1;
    argv += n - 1;
    l.nclients = argc - 2;
    idt_watcher_t *in = idt_fd_watcher_create (l.reactor, STDIN_FILENO, IDT_POLLIN, stdin_cb, &l);

    if (!(l.clients = calloc (l.nclients, sizeof (l.clients[0]))) || !in)
        die ("cannot start");
    for (int i = 0; i < l.nclients; i++) {
        struct client *c = &l.clients[i];

        c->load = &l;
        c->rank = argv[i + 2];
        snprintf (c->uri, sizeof (c->uri), "%s%s", argv[1], argv[i + 2]);
        if (!(c->timer = idt_timer_watcher_create (l.reactor, PAUSE_MS, 0., timer_cb, c)))
            die ("timer");
        idt_watcher_start (c->timer);
    }
    idt_watcher_start (in);
    if (idt_reactor_run (l.reactor, IDT_REACTOR_DEFAULT) < 0)
        die ("reactor");
    for (int i = 0; i < l.nclients; i++) {
        idt_watcher_destroy (l.clients[i].timer);
        idt_page_close (l.clients[i].page);
        idt_close (l.clients[i].h);
    }
    idt_watcher_destroy (in);
    idt_reactor_destroy (l.reactor);
    int status = report (&l, argv + 2);
    free (l.runs);
    free (l.clients);
    return status;
}
