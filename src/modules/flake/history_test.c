/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* history_test.c - random histories of a small instance
 *
 * Five ranks, each with a granter that keeps the rules of the fluid service: no time is granted twice, granted time is
 * never returned to the root, and a broker that crashed gets time that no rank had. Brokers crash and restart with
 * another clock and another fingerprint; modules are reloaded; messages are delayed or lost. All ids are recorded, and
 * no id may be made twice. Each request is answered once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test/tap.h"
#include "modules/flake/node.h"

#define MS UINT64_C (1000)
#define SECOND UINT64_C (1000000)
#define T0 (100 * SECOND)
#define EPOCH_MS INT64_C (1795000000001) /* not a multiple of any step */

enum { NRANKS = 5, MAX_EVENTS = 4096, MAX_REQUESTS = 20000 };
#define LEASE_MS 400

/* The ids of a run: of one maker, in one step, with the sequences seq ... seq + n - 1. */
struct used {
    uint64_t owner; /* kind, and partition or fingerprint */
    uint64_t step;
    uint32_t seq, n;
};

enum event_type { EV_TIME, EV_CLAIM, EV_CLAIMED, EV_FORWARD, EV_FORWARDED };

struct event {
    uint64_t at_us;
    enum event_type type;
    int rank, life;  /* receiver or sender; an earlier life gets no messages */
    int to, to_life; /* of a forward: the rank that serves it */
    uint32_t tag;
    enum series_kind kind;
    uint32_t count;
    struct naming_grant grant;
    int errnum;
    struct claim claim;
};

struct granter {
    struct span lease;   /* in this life of the broker; empty: none */
    uint64_t given_ms;   /* in the root's table: end of all leases of this rank */
    struct span granted; /* in a row, to the last holder */
    int holder;          /* the life of the module */
};

struct history {
    uint64_t seed, now_us;
    struct node {
        struct flake *f;
        struct history *history;
        int rank, life;
        int64_t skew_us;
        uint32_t fingerprint;
        struct granter granter;
    } node[NRANKS];
    struct event event[MAX_EVENTS];
    int nevents;
    struct {
        int answers;
        int origin; /* the rank that sent it, or, with 'serves', that serves a forward */
        bool serves;
        struct event forward; /* to be answered */
        enum series_kind kind;
        uint32_t count, got;
        bool lost; /* its broker crashed: it is not answered */
    } req[MAX_REQUESTS];
    size_t nreq;
    uint32_t dealt; /* ids of the current answer that were passed on */
    struct used *used;
    size_t nused, room;
    uint64_t ids, collisions, forwards;
    bool sound;
};

static uint64_t rnd (struct history *h)
{
    h->seed ^= h->seed << 13;
    h->seed ^= h->seed >> 7;
    h->seed ^= h->seed << 17;
    return h->seed * UINT64_C (0x2545f4914f6cdd1d) >> 16;
}

static uint64_t below (struct history *h, uint64_t n)
{
    return rnd (h) % n;
}

static uint64_t inst_us (const struct node *n)
{
    return (uint64_t)((int64_t)(n->history->now_us - T0 + 10 * SECOND) + n->skew_us);
}

static void post (struct history *h, struct event e)
{
    if (h->nevents == MAX_EVENTS)
        return; /* lost */
    e.at_us = h->now_us + below (h, below (h, 20) == 0 ? 300 * MS : 2 * MS);
    h->event[h->nevents++] = e;
}

static void note (struct history *h, enum series_kind kind, const struct flake_run *run)
{
    struct used u = { .n = run->n };

    if (kind == SERIES_SNO) {
        struct sno_fields f = sno_split (&run->first.sno);

        u.owner = f.partition;
        u.step = f.unit << 1 | f.tick;
        u.seq = f.sequence;
    }
    else {
        u.owner = UINT64_C (1) << 32 | run->first.uid.node.fingerprint;
        u.step = (uint64_t)((run->first.uid.a * 1000000 + run->first.uid.b) * 1024 + (run->first.uid.c >> 10));
        u.seq = (uint32_t)run->first.uid.sequence;
    }
    if (h->nused == h->room)
        h->used = realloc (h->used, (h->room = 2 * h->room + 1024) * sizeof (h->used[0]));
    h->used[h->nused++] = u;
    h->ids += run->n;
}

static void answered (struct history *h, size_t cookie)
{
    if (h->req[cookie].answers++)
        h->sound = false;
}

static int h_give_cb (void *arg, void *cookie, const struct flake_run *run, uint32_t got)
{
    struct node *n = arg;
    struct history *h = n->history;
    size_t c = (size_t)cookie;

    h->sound = h->sound && (got == 0 || got == h->req[c].got);
    h->req[c].got = got + run->n;
    if (h->req[c].kind != SERIES_FLAX)
        note (h, h->req[c].kind, run);
    return 0;
}

static void h_reply_cb (void *arg, void *cookie)
{
    struct node *n = arg;
    struct history *h = n->history;
    size_t c = (size_t)cookie;

    h->sound = h->sound && h->req[c].got == h->req[c].count;
    answered (h, c);
    if (h->req[c].serves) {
        h->req[c].forward.errnum = 0;
        post (h, h->req[c].forward);
    }
}

static void h_fail_cb (void *arg, void *cookie, int errnum, const char *text)
{
    struct node *n = arg;
    struct history *h = n->history;
    size_t c = (size_t)cookie;

    answered (h, c);
    if (h->req[c].serves) {
        h->req[c].forward.errnum = errnum;
        post (h, h->req[c].forward);
    }
}

static void h_pass_cb (void *arg, void *cookie, uint32_t first, uint32_t count)
{
    struct node *n = arg;
    struct history *h = n->history;
    size_t c = (size_t)cookie;

    h->sound = h->sound && h->req[c].count == count && first >= h->dealt;
    h->dealt = first + count;
    answered (h, c);
    if (h->req[c].serves) {
        h->req[c].forward.errnum = 0;
        post (h, h->req[c].forward);
    }
}

static int h_forward_cb (void *arg, uint32_t tag, const struct flake_request *req)
{
    struct node *n = arg;

    n->history->forwards++;
    post (n->history, (struct event){ .type = EV_FORWARD,
                                      .rank = n->rank,
                                      .life = n->life,
                                      .to = (n->rank - 1) / 2,
                                      .tag = tag,
                                      .kind = req->kind,
                                      .count = req->count });
    return below (n->history, 50) == 0 ? -1 : 0;
}

static int h_ask_time_cb (void *arg)
{
    struct node *n = arg;

    post (n->history, (struct event){ .type = EV_TIME, .rank = n->rank, .life = n->life });
    return 0;
}

static void h_return_time_cb (void *arg, uint64_t end_ms)
{
    struct node *n = arg;
    struct granter *g = &n->granter;

    if (below (n->history, 3) > 0 && g->holder == n->life && end_ms < g->granted.hi_ms)
        g->granted.hi_ms = end_ms > g->granted.lo_ms ? end_ms : g->granted.lo_ms;
}

static int h_claim_cb (void *arg, const struct claim *claim)
{
    struct node *n = arg;

    post (n->history, (struct event){ .type = EV_CLAIM, .rank = n->rank, .life = n->life, .claim = *claim });
    return 0;
}

static const struct flake_ops history_ops = { h_give_cb, h_reply_cb,    h_fail_cb,        h_forward_cb,
                                              h_pass_cb, h_ask_time_cb, h_return_time_cb, h_claim_cb };

static void load (struct node *n)
{
    const struct flake_config config = { .rank = (uint32_t)n->rank,
                                         .max_partitions = 4,
                                         .max_waiting = 100,
                                         .timeout_us = 300 * MS,
                                         .drift = 8,
                                         .fingerprint = n->fingerprint ? n->fingerprint
                                                                       : naming_own ((uint32_t)n->rank),
                                         .node = "n" };

    n->life++;
    n->f = flake_create (&config, &history_ops, n);
}

/* The broker's fluid service ends with the broker. Its lease is lost, or what was not granted of it is returned.
 */
static void lose_lease (struct history *h, struct granter *g)
{
    if (g->lease.hi_ms == g->given_ms && g->lease.hi_ms > 0 && below (h, 2)) {
        uint64_t end = g->granted.hi_ms > g->lease.lo_ms ? g->granted.hi_ms : g->lease.lo_ms;

        if (end < g->given_ms)
            g->given_ms = end;
    }
    g->lease = g->granted = (struct span){ 0, 0 };
}

static bool all_gone (void *cookie, void *arg)
{
    return true;
}

static void crash (struct history *h, struct node *n)
{
    for (size_t i = 0; i < h->nreq; i++)
        if (h->req[i].origin == n->rank && !h->req[i].answers)
            h->req[i].lost = true;
    /* A crash loses the memory of the broker, so requests are not answered. */
    n->life++;
    flake_cancel (n->f, h->now_us, all_gone, NULL);
    flake_destroy (n->f);
    lose_lease (h, &n->granter);
    n->skew_us = (int64_t)below (h, 100 * MS) - (int64_t)(50 * MS);
    n->fingerprint = (uint32_t)below (h, 3); /* 0: the rank's number */
    load (n);
}

static void reload (struct history *h, struct node *n)
{
    flake_stop (n->f, h->now_us);
    flake_destroy (n->f);
    if (below (h, 3) == 0)
        n->fingerprint = (uint32_t)below (h, 3); /* 0: the rank's number */
    load (n);
}

/* Grant time as fluid does: up to a quarter of a lease from now. */
static void serve_time (struct history *h, struct node *n)
{
    struct granter *g = &n->granter;
    uint64_t now_ms = inst_us (n) / 1000, lo, hi;

    if (now_ms >= g->lease.hi_ms && below (h, 4) > 0 && now_ms + LEASE_MS > g->given_ms) {
        g->lease = (struct span){ g->given_ms, now_ms + LEASE_MS };
        g->given_ms = g->lease.hi_ms;
    }
    lo = g->lease.lo_ms > g->granted.hi_ms ? g->lease.lo_ms : g->granted.hi_ms;
    hi = g->lease.hi_ms < now_ms + LEASE_MS / 4 ? g->lease.hi_ms : now_ms + LEASE_MS / 4;
    if (now_ms < g->lease.lo_ms || now_ms >= g->lease.hi_ms || lo >= hi) {
        flake_time_refused (n->f, h->now_us, false);
        return;
    }
    bool in_a_row = g->holder == n->life && lo == g->granted.hi_ms;
    g->granted = (struct span){ in_a_row ? g->granted.lo_ms : lo, hi };
    g->holder = n->life;
    flake_time_granted (n->f, h->now_us, &(struct time_answer){ lo, hi, h->now_us, inst_us (n), EPOCH_MS });
}

static size_t new_request (struct history *h, struct node *n, enum series_kind kind, uint32_t count)
{
    size_t c = h->nreq;

    if (c == MAX_REQUESTS)
        return 0;
    h->nreq++;
    h->req[c].kind = kind;
    h->req[c].count = count;
    h->req[c].origin = n->rank;
    return c;
}

static void handle (struct history *h, struct event e)
{
    struct node *n = &h->node[e.rank];
    idt_error_t err;

    if (e.type == EV_CLAIM) { /* rank 0 answers in any life of the claiming rank */
        e.type = EV_CLAIMED;
        e.errnum = flake_claim_request (h->node[0].f, h->now_us, &e.claim, &e.grant, &err) < 0 ? errno : 0;
        h->collisions += !e.errnum && e.grant.fingerprint != e.claim.fingerprint;
        if (below (h, 20) == 0)
            e.errnum = EHOSTUNREACH;
        post (h, e);
        return;
    }
    if (e.type == EV_FORWARD) {
        bool lost = below (h, 20) == 0;
        size_t c = lost ? 0 : new_request (h, &h->node[e.to], e.kind, e.count);

        e.type = EV_FORWARDED;
        if (c == 0) {
            e.errnum = EHOSTUNREACH;
            post (h, e);
            return;
        }
        h->req[c].serves = true;
        h->req[c].forward = e;
        flake_generate (h->node[e.to].f, h->now_us,
                        &(struct flake_request){ (void *)c, h->req[c].kind, h->req[c].count, 0, 0, 100 + below (h, 4),
                                                 0 });
        return;
    }
    if (n->life != e.life)
        return;
    if (e.type == EV_TIME)
        serve_time (h, n);
    else if (e.type == EV_CLAIMED && e.errnum)
        flake_claim_failed (n->f, h->now_us);
    else if (e.type == EV_CLAIMED)
        flake_claimed (n->f, h->now_us, &e.grant);
    else if (e.errnum)
        flake_forward_failed (n->f, h->now_us, e.tag, e.errnum, "no");
    else {
        uint32_t count = flake_forward_count (n->f, e.tag);

        h->sound = h->sound && (count == 0 || count == e.count);
        h->dealt = 0;
        flake_forwarded (n->f, h->now_us, e.tag);
        h->sound = h->sound && h->dealt <= e.count;
    }
}

static void run_due (struct history *h)
{
    for (int i = 0; i < h->nevents; i++)
        if (h->event[i].at_us <= h->now_us) {
            struct event e = h->event[i];

            h->event[i--] = h->event[--h->nevents];
            handle (h, e);
        }
    for (int r = 0; r < NRANKS; r++)
        if (flake_deadline (h->node[r].f) <= h->now_us)
            flake_tick (h->node[r].f, h->now_us);
}

static void step (struct history *h)
{
    struct node *n = &h->node[below (h, NRANKS)];
    uint64_t dice = below (h, 1000);

    h->now_us += below (h, 100) == 0 ? below (h, 100 * MS) : below (h, 1500);
    run_due (h);
    if (dice < 300) {
        size_t c = new_request (h, n, (enum series_kind)below (h, SERIES_KINDS), 1 + (uint32_t)below (h, 3000));

        if (c)
            flake_generate (n->f, h->now_us,
                            &(struct flake_request){ (void *)c, h->req[c].kind, h->req[c].count, 0, 0, below (h, 4),
                                                     0 });
    }
    else if (dice < 303)
        crash (h, n);
    else if (dice < 308)
        reload (h, n);
}

static int compare_used (const void *a, const void *b)
{
    const struct used *x = a, *y = b;

    if (x->owner != y->owner)
        return x->owner < y->owner ? -1 : 1;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static size_t doubles (struct history *h)
{
    size_t n = 0;

    qsort (h->used, h->nused, sizeof (h->used[0]), compare_used);
    for (size_t i = 1; i < h->nused; i++) {
        const struct used *x = &h->used[i - 1], *y = &h->used[i];

        n += x->owner == y->owner && x->step == y->step && x->seq + x->n > y->seq;
    }
    return n;
}

/* The number of requests that were not answered exactly once, except those lost in crashes. */
static size_t unanswered (const struct history *h)
{
    size_t n = 0;

    for (size_t i = 1; i < h->nreq; i++)
        n += h->req[i].answers != 1 && !h->req[i].lost;
    return n;
}

static void test_history (uint64_t seed, uint64_t totals[3])
{
    struct history *h = calloc (1, sizeof (*h));

    h->seed = seed * UINT64_C (0x9e3779b97f4a7c15) + 1;
    h->now_us = T0;
    h->sound = true;
    h->nreq = 1; /* cookie 0 means none */
    for (int r = 0; r < NRANKS; r++) {
        h->node[r] = (struct node){ .history = h, .rank = r, .fingerprint = (uint32_t)r % 3 };
        h->node[r].skew_us = (int64_t)below (h, 40 * MS) - (int64_t)(20 * MS);
        load (&h->node[r]);
    }
    for (int i = 0; i < 20000; i++)
        step (h);
    for (int r = NRANKS - 1; r >= 0; r--) {
        flake_stop (h->node[r].f, h->now_us);
        flake_destroy (h->node[r].f);
    }
    size_t twice = doubles (h), open = unanswered (h);
    if (twice || open || !h->sound)
        ok (false, "seed %d: %zu ids were made twice, %zu requests were not answered exactly once", (int)seed, twice,
            open);
    totals[0] += h->ids;
    totals[1] += h->collisions;
    totals[2] += h->forwards;
    free (h->used);
    free (h);
}

int main (int argc, char **argv)
{
    uint64_t totals[3] = { 0 }, first = argc > 1 ? strtoull (argv[1], NULL, 10) : 1, count = 30;

    if (argc > 2)
        count = strtoull (argv[2], NULL, 10);
    for (uint64_t seed = first; seed < first + count; seed++)
        test_history (seed, totals);
    ok (totals[0] > 0 && totals[1] > 0 && totals[2] > 0,
        "in %d random histories with %d ids no id is made twice; %d claims are refused for a fingerprint, and %d "
        "requests are forwarded",
        (int)count, (int)totals[0], (int)totals[1], (int)totals[2]);
    return done_testing ();
}
