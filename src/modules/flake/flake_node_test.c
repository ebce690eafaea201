/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flake_node_test.c - one node by the letter, then random histories of a small instance
 *
 * The histories: five ranks, each with a lender that keeps the rules of the fluid service (loans are disjoint, what was
 * lent is never given back, a broker that crashed gets time that nobody had).  Brokers crash and start again, with
 * another clock and another fingerprint; modules are loaded anew; messages are late or lost.  Each id is noted, and none may
 * be there twice; each request is answered once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/tap.h"
#include "modules/flake/flake_node.h"

#define MS UINT64_C (1000)
#define SECOND UINT64_C (1000000)
#define T0 (100 * SECOND)
#define EPOCH_MS INT64_C (1795000000001) /* aligned to no step */

/* --- one node ---------------------------------------------------------------------------------- */

struct record {
    int answers, errnum;
    uint32_t ids;         /* of the answer */
    uint32_t got;         /* so far */
    uint32_t fingerprint; /* of uids */
    char text[256];
};

struct world {
    struct flake *f;
    struct record req[64];
    int order[64], nanswered; /* cookies in the order of answers */
    uint64_t given;           /* ids, in all */
    bool no_memory;
    int forwards, borrows, claims, backs;
    uint32_t tag;
    uint64_t end_ms;
};

static int give_cb (void *arg, void *cookie, const struct flake_run *run, uint32_t got)
{
    struct world *w = arg;
    struct record *r = &w->req[(size_t)cookie];

    r->got = got + run->n;
    w->given += run->n;
    if (got == 0)
        r->fingerprint = run->first.uid.node.fingerprint; /* if it is a uid */
    errno = ENOMEM;
    return w->no_memory ? -1 : 0;
}

static void reply_cb (void *arg, void *cookie)
{
    struct record *r = &((struct world *)arg)->req[(size_t)cookie];

    r->answers++;
    r->ids = r->got;
    ((struct world *)arg)->order[((struct world *)arg)->nanswered++ % 64] = (int)(size_t)cookie;
}

static void fail_cb (void *arg, void *cookie, int errnum, const char *text)
{
    struct record *r = &((struct world *)arg)->req[(size_t)cookie];

    r->answers++;
    r->errnum = errnum;
    snprintf (r->text, sizeof (r->text), "%s", text ? text : "");
}

static int forward_cb (void *arg, uint32_t tag, void *cookie)
{
    struct world *w = arg;

    w->forwards++;
    w->tag = tag;
    return 0;
}

static int borrow_cb (void *arg)
{
    ((struct world *)arg)->borrows++;
    return 0;
}

static void give_back_cb (void *arg, uint64_t end_ms)
{
    struct world *w = arg;

    w->backs++;
    w->end_ms = end_ms;
}

static int claim_cb (void *arg, const struct claim *claim)
{
    ((struct world *)arg)->claims++;
    return 0;
}

static const struct flake_ops ops = { give_cb, reply_cb, fail_cb, forward_cb, borrow_cb, give_back_cb, claim_cb };

static void create_named (struct world *w, uint32_t rank, uint32_t max_partitions, uint32_t fingerprint)
{
    const struct flake_config config = { .rank = rank,
                                         .max_partitions = max_partitions,
                                         .max_waiting = 20,
                                         .timeout_us = 5 * SECOND,
                                         .drift = 8,
                                         .fingerprint = fingerprint,
                                         .node = "me@here" };

    *w = (struct world){ .f = flake_create (&config, &ops, w) };
    flake_tick (w->f, T0);
}

static void create (struct world *w, uint32_t rank, uint32_t max_partitions)
{
    create_named (w, rank, max_partitions, naming_own (rank));
}

static void destroy (struct world *w, uint64_t at_us)
{
    flake_stop (w->f, at_us);
    flake_destroy (w->f);
}

/* As its owner would: what is left over is for the next turn. */
static void tick_all (struct world *w, uint64_t at_us)
{
    for (int i = 0; i < 40 && flake_deadline (w->f) <= at_us; i++)
        flake_tick (w->f, at_us);
}

static struct record *ask (struct world *w, uint64_t at_us, size_t cookie, enum series_kind kind, uint32_t count)
{
    flake_generate (w->f, at_us, &(struct flake_request){ .cookie = (void *)cookie, .kind = kind, .count = count });
    tick_all (w, at_us);
    return &w->req[cookie];
}

static void answer_claim (struct world *w, uint64_t at_us, uint32_t fingerprint, uint64_t lo_ms, uint64_t hi_ms)
{
    flake_claimed (w->f, at_us, &(struct grant){ fingerprint, { lo_ms, hi_ms }, 8 });
}

/* At 'at_us' the instance's time is at_us - T0 + 10 s. */
static void lend (struct world *w, uint64_t at_us, uint64_t lo_ms, uint64_t hi_ms)
{
    flake_lent (w->f, at_us,
                &(struct term_loan){ .lo_ms = lo_ms,
                                     .hi_ms = hi_ms,
                                     .boot_us = at_us,
                                     .inst_us = at_us - T0 + 10 * SECOND,
                                     .epoch_ms = EPOCH_MS });
}

static void test_make (void)
{
    struct world w;
    struct record *r, *s;

    create (&w, 3, 65536);
    r = ask (&w, T0, 1, SERIES_SNO, 10);
    ok (r->answers == 0 && w.borrows == 1 && flake_deadline (w.f) == T0 + 5 * SECOND, "the first request borrows time");
    lend (&w, T0, 9990, 25000);
    ok (r->answers == 1 && r->ids == 10, "and is served from it");
    r = ask (&w, T0 + SECOND, 2, SERIES_SNO, 65536);
    ok (r->ids == 65536 && w.borrows == 1, "so are others, without asking again");
    r = ask (&w, T0 + SECOND, 3, SERIES_SNO, 65536);
    s = ask (&w, T0 + SECOND, 4, SERIES_SNO, 1);
    ok (r->answers == 0 && s->answers == 0 && flake_deadline (w.f) > T0 + SECOND
            && flake_deadline (w.f) <= T0 + SECOND + 4 * MS,
        "what does not fit in a unit waits for the next one");
    tick_all (&w, flake_deadline (w.f));
    ok (r->ids == 65536 && s->answers == 0, "in order");
    tick_all (&w, flake_deadline (w.f));
    ok (s->ids == 1, "of arrival");
    r = ask (&w, T0 + 12 * SECOND, 5, SERIES_SNO, 1);
    ok (r->ids == 1 && w.borrows == 2, "the last quarter of a loan is time to ask for the next");
    flake_not_lent (w.f, T0 + 12 * SECOND, false);
    r = ask (&w, T0 + 15 * SECOND, 6, SERIES_SNO, 1);
    ok (r->answers == 0 && w.forwards == 0 && w.borrows == 3, "after the loan's end the next one is waited for");
    flake_not_lent (w.f, T0 + 15 * SECOND, false);
    ok (r->answers == 0 && w.forwards == 1, "where nothing is lent it goes up");
    lend (&w, T0 + 15 * SECOND, 25000, 40000);
    ok (flake_forwarded (w.f, T0 + 15 * SECOND, w.tag) == (void *)6 && !flake_forwarded (w.f, T0 + 15 * SECOND, w.tag), "its answer is for it, once");
    r = ask (&w, T0 + 16 * SECOND, 7, SERIES_SNO, 0);
    s = ask (&w, T0 + 16 * SECOND, 8, SERIES_SNO, 65537);
    ok (r->errnum == EINVAL && s->errnum == EINVAL, "0 and 65537 ids are refused");
    flake_stop (w.f, T0 + 16 * SECOND);
    ok (w.backs == 1 && w.end_ms == 26001, "what is not used is given back at the end");
    r = ask (&w, T0 + 16 * SECOND, 9, SERIES_SNO, 1);
    ok (r->errnum == EHOSTUNREACH, "and nothing is made any more");
    flake_destroy (w.f);
}

static void test_forward (void)
{
    struct world w;
    struct record *r;

    create (&w, 3, 3);
    r = ask (&w, T0, 1, SERIES_SNO, 1);
    ok (w.forwards == 1, "a rank at the limit of partitions forwards");
    flake_forward_failed (w.f, T0, w.tag, EHOSTUNREACH, NULL);
    tick_all (&w, flake_deadline (w.f));
    ok (w.forwards == 2 && r->answers == 0, "again, where the way was broken");
    flake_forward_failed (w.f, T0 + SECOND, w.tag, EAGAIN, "no");
    ok (r->answers == 1 && r->errnum == EAGAIN && !strcmp (r->text, "no"), "what the parent says is the answer");
    r = ask (&w, T0 + SECOND, 2, SERIES_SNO, 1);
    flake_tick (w.f, T0 + 6 * SECOND);
    ok (r->answers == 1 && r->errnum == EHOSTUNREACH && !flake_forwarded (w.f, T0 + 6 * SECOND, w.tag),
        "no answer in time is one, and a late one is nobody's");
    destroy (&w, T0 + 7 * SECOND);

    create (&w, 3, 65536);
    r = ask (&w, T0, 1, SERIES_UID, 1);
    flake_not_lent (w.f, T0, true);
    ok (w.forwards == 1 && r->answers == 0, "a rank that can't borrow forwards uid too");
    destroy (&w, T0);

    create (&w, 0, 65536);
    r = ask (&w, T0, 1, SERIES_SNO, 1);
    flake_not_lent (w.f, T0, false);
    ok (w.forwards == 0 && r->answers == 0 && flake_deadline (w.f) < T0 + SECOND, "rank 0 can't forward: it waits");
    flake_tick (w.f, T0 + SECOND);
    lend (&w, T0 + SECOND, 11000, 25000);
    tick_all (&w, flake_deadline (w.f));
    ok (r->ids == 1, "until something is lent");
    destroy (&w, T0 + SECOND);
}

/* The rank's own number. */
static void test_own (void)
{
    struct world w;
    struct record *r;

    create (&w, 3, 65536);
    ok (w.claims == 1, "a rank asks for the drift before anybody wants a uid");
    r = ask (&w, T0, 1, SERIES_UID, 1);
    lend (&w, T0, 9990, 25000);
    ok (r->answers == 0 && w.forwards == 0, "until it is told, uids wait");
    answer_claim (&w, T0, naming_own (3), 0, UINT64_C (1) << 40);
    ok (r->ids == 1 && r->fingerprint == 0x80000003, "then they name the rank's number");
    r = ask (&w, T0 + 14 * SECOND, 2, SERIES_UID, 1);
    ok (r->ids == 1 && w.claims == 1, "and rank 0 is asked no more: they last as long as loans do");
    flake_generate (w.f, T0 + 14 * SECOND, &(struct flake_request){ (void *)3, SERIES_UID, 1, 0, 5, 0 });
    ok (w.req[3].errnum == EINVAL && strstr (w.req[3].text, "drift 5") && strstr (w.req[3].text, "8 drift bits"),
        "those of another drift are refused, with the one that there is");
    flake_generate (w.f, T0 + 14 * SECOND, &(struct flake_request){ (void *)4, SERIES_UID, 1, 0, 8, 0 });
    ok (w.req[4].ids == 1, "the same one is taken");
    destroy (&w, T0 + 14 * SECOND);

    create (&w, 3, 65536);
    flake_claim_failed (w.f, T0);
    lend (&w, T0, 10000, 25000);
    r = ask (&w, T0, 1, SERIES_UID, 1);
    for (uint64_t t = T0; t < T0 + 3 * SECOND; t += 10 * MS) {
        int claims = w.claims;

        tick_all (&w, t);
        if (w.claims > claims)
            flake_claim_failed (w.f, t);
    }
    ok (w.forwards == 1 && r->answers == 0 && w.claims >= 5 && w.claims <= 12,
        "a rank that rank 0 does not tell forwards, and goes on asking, less and less often (%d)", w.claims);
    destroy (&w, T0 + 3 * SECOND);

    create (&w, 0, 65536);
    lend (&w, T0, 9990, 25000);
    r = ask (&w, T0, 1, SERIES_UID, 1);
    ok (r->ids == 1 && w.claims == 0 && r->fingerprint == 0x80000000, "rank 0 asks nobody");
    destroy (&w, T0);
}

static void test_given (void)
{
    struct world w;
    struct record *r;

    create_named (&w, 3, 65536, 7);
    r = ask (&w, T0, 1, SERIES_UID, 100);
    lend (&w, T0, 10000, 25000);
    ok (r->answers == 0 && w.claims == 1, "a given name needs a claim");
    answer_claim (&w, T0, 7, 9000, 12000);
    tick_all (&w, flake_deadline (w.f));
    ok (r->ids == 100 && r->fingerprint == 7, "and is used where both overlap");
    r = ask (&w, T0 + 2 * SECOND, 2, SERIES_UID, 1);
    ok (r->answers == 0 && w.claims == 2, "not beyond");
    answer_claim (&w, T0 + 2 * SECOND, naming_own (3), 0, UINT64_C (1) << 40);
    ok (r->ids == 1 && r->fingerprint == 0x80000003, "where it is another's, the rank's number is there");
    r = ask (&w, T0 + 2 * SECOND + MS, 3, SERIES_UID, 1);
    ok (r->ids == 1 && w.claims == 2, "for all who ask");
    r = ask (&w, T0 + 4 * SECOND, 4, SERIES_UID, 1);
    ok (r->ids == 1 && w.claims == 3, "and the claim is made again a second later");
    answer_claim (&w, T0 + 4 * SECOND, 7, 14000, 25000);
    r = ask (&w, T0 + 5 * SECOND, 5, SERIES_UID, 1);
    ok (r->ids == 1 && r->fingerprint == 7, "until it is granted");
    lend (&w, T0 + 14 * SECOND, 25000, 40000);
    r = ask (&w, T0 + 15 * SECOND, 6, SERIES_UID, 1);
    ok (r->answers == 0 && w.claims == 4, "after the end of what was granted rank 0 is waited for");
    tick_all (&w, flake_deadline (w.f));
    ok (r->ids == 1 && r->fingerprint == 0x80000003 && w.forwards == 0, "a second, then the rank goes on without");
    r = ask (&w, T0 + 17 * SECOND, 7, SERIES_UID, 1);
    ok (r->ids == 1, "also for those who come then");
    flake_claimed (w.f, T0 + 17 * SECOND, &(struct grant){ 7, { 25000, 40000 }, 5 });
    r = ask (&w, T0 + 18 * SECOND, 8, SERIES_UID, 1);
    ok (r->ids == 1 && r->fingerprint == 0x80000003 && flake_drift (w.f) == 8,
        "under another drift than was told first nothing is granted");
    destroy (&w, T0 + 18 * SECOND);
}

static void test_claims (void)
{
    const struct claim ours = { 7, 3, "me@here" }, theirs = { 7, 4, "you@there" }, own = { 0x80000009, 9, "n" },
                       stolen = { 0x80000009, 8, "n" };
    struct world w;
    struct grant grant;
    idt_error_t err = { "" };

    create (&w, 0, 65536);
    flake_claim_request (w.f, T0, &ours, &grant, &err);
    lend (&w, T0, 10000, 10100);
    flake_tick (w.f, T0 + 90 * MS);
    ok (w.borrows == 2 && flake_deadline (w.f) < T0 + SECOND, "a short loan is renewed until the claim is made again");
    destroy (&w, T0 + 90 * MS);

    create (&w, 0, 65536);
    ok (flake_claim_request (w.f, T0, &own, &grant, &err) == 0 && grant.fingerprint == 0x80000009
            && grant.range.lo_ms == 0 && grant.range.hi_ms == UINT64_C (1) << 40 && grant.drift == 8 && w.borrows == 0,
        "a rank's number is granted at once and for good, with the drift");
    ok (flake_claim_request (w.f, T0, &stolen, &grant, &err) < 0 && errno == EINVAL, "to another rank never");
    ok (flake_claim_request (w.f, T0, &ours, &grant, &err) < 0 && errno == EAGAIN && w.borrows == 1,
        "rank 0 grants no name before it has borrowed");
    lend (&w, T0, 10000, 25000);
    err.text[0] = '\0';
    ok (flake_claim_request (w.f, T0, &ours, &grant, &err) == 0 && grant.fingerprint == 7 && grant.range.lo_ms == 10000
            && grant.range.hi_ms == 25000 && !err.text[0],
        "and then for what it has");
    ok (flake_claim_request (w.f, T0, &theirs, &grant, &err) == 0 && grant.fingerprint == 0x80000004
            && strstr (err.text, "me@here") && strstr (err.text, "you@there") && strstr (err.text, "rank 3"),
        "another rank gets its number, and is told both names");
    ok (flake_claim_request (w.f, T0, &ours, &grant, &err) == 0 && grant.fingerprint == 7, "the same one gets its name");
    lend (&w, T0 + 11 * SECOND, 25000, 40000);
    ok (flake_claim_request (w.f, T0 + 16 * SECOND, &theirs, &grant, &err) == 0 && grant.fingerprint == 7
            && grant.range.lo_ms == 25000 && grant.range.hi_ms == 40000,
        "when the claim has ended another one may have it, from there");
    lend (&w, T0 + 31 * SECOND, 40000, 55000);
    ok (flake_claim_request (w.f, T0 + 31 * SECOND, &ours, &grant, &err) == 0 && grant.range.lo_ms == 40000
            && flake_claim_request (w.f, T0 + 31 * SECOND, &ours, &grant, &err) == 0 && grant.range.lo_ms == 40000,
        "and back again, but for what was another's");
    flake_stop (w.f, T0 + 32 * SECOND);
    ok (w.backs == 0, "what was granted is not given back");
    flake_destroy (w.f);

    create (&w, 0, 65536);
    lend (&w, T0, 10000, 25000);
    flake_claim_request (w.f, T0, &own, &grant, &err);
    flake_stop (w.f, T0 + SECOND);
    ok (w.backs == 1 && w.end_ms < 11002, "to grant numbers keeps no time back");
    flake_destroy (w.f);
}

/* Put a request of so many flaxes, without the turns that follow. */
static void put (struct world *w, size_t cookie, uint64_t asker, uint32_t count)
{
    flake_generate (w->f, T0, &(struct flake_request){ (void *)cookie, SERIES_FLAX, count, 0, 0, asker });
}

static bool gone_cb (void *cookie, void *arg)
{
    return (size_t)cookie == *(size_t *)arg;
}

static void test_turns (void)
{
    struct world w;
    uint64_t most = 0;

    create (&w, 3, 65536);
    put (&w, 1, 1, 65536);
    ok (w.given == FLAKE_TURN_IDS && flake_deadline (w.f) <= T0, "a call makes so many ids, and is due again at once");
    for (size_t i = 2; i < 10; i++)
        put (&w, i, 1, 65536);
    ok (w.given == FLAKE_TURN_IDS, "requests that come meanwhile make it do no more");
    put (&w, 10, 2, 2000);
    put (&w, 11, 2, 1);
    put (&w, 62, 3, 1);
    while (flake_deadline (w.f) <= T0) {
        uint64_t before = w.given;

        flake_tick (w.f, T0);
        most = w.given - before > most ? w.given - before : most;
    }
    ok (most <= 2 * FLAKE_TURN_IDS && w.nanswered == 12 && w.given == 9 * 65536 + 2002, "all are made, so many in a turn");
    ok (w.order[0] == 62, "who wants few ids waits for nobody who wants many");
    ok (w.order[2] == 2 && w.order[3] == 10 && w.order[4] == 11, "others for two of a greedy one at most, each in order");
    int ticks = 0;
    for (size_t i = 12; i < 62; i++)
        put (&w, i, i, 1);
    for (; flake_deadline (w.f) <= T0; ticks++)
        flake_tick (w.f, T0);
    ok (w.nanswered == 62, "many small ones, too");
    size_t gone = 3;
    put (&w, 1, 1, 65536);
    put (&w, 2, 1, 65536);
    put (&w, 3, 1, 65536);
    put (&w, 4, 1, 1);
    w.nanswered = 0;
    flake_cancel (w.f, T0, gone_cb, &gone);
    tick_all (&w, T0);
    tick_all (&w, T0);
    ok (w.nanswered == 3 && w.order[0] == 1 && w.order[2] == 4, "nothing is made for an asker that went");
    w.no_memory = true;
    put (&w, 5, 1, 1);
    ok (w.req[5].errnum == ENOMEM, "what cannot be given is an error");
    destroy (&w, T0);
}

static void test_waiting (void)
{
    struct world w;
    struct record *r;

    create (&w, 3, 65536);
    for (size_t i = 1; i < 13; i++)
        r = ask (&w, T0, i, SERIES_SNO, 1);
    ok (r->errnum == EAGAIN && w.req[11].answers == 0, "one asker has a half of flake.max-waiting");
    flake_generate (w.f, T0, &(struct flake_request){ (void *)13, SERIES_SNO, 1, 0, 0, 1 });
    ok (w.req[13].answers == 0, "there is room for others");
    ok (ask (&w, T0, 14, SERIES_FLAX, 1)->ids == 1, "and for other kinds");
    flake_tick (w.f, T0 + 5 * SECOND);
    ok (w.req[1].errnum == EHOSTUNREACH && w.req[11].errnum == EHOSTUNREACH && w.req[13].errnum == EHOSTUNREACH,
        "all are answered by their deadline");
    destroy (&w, T0 + 5 * SECOND);

    create (&w, 3, 65536);
    lend (&w, T0, 9990, 25000);
    for (size_t i = 1; i < 9; i++)
        put (&w, i, 1, 65536);
    flake_tick (w.f, T0 + 5 * SECOND);
    ok (w.req[1].answers == 0 && w.req[8].answers == 0, "who waits for a turn may do so for longer");
    flake_tick (w.f, T0 + 30 * SECOND);
    ok (w.req[1].errnum == EAGAIN && w.req[8].errnum == EAGAIN && strstr (w.req[8].text, "ask again"),
        "so are those whose turn does not come: too much is asked for");
    destroy (&w, T0 + 30 * SECOND);

    create (&w, 3, 3);
    for (size_t i = 1; i < 64; i++)
        flake_generate (w.f, T0, &(struct flake_request){ (void *)i, SERIES_SNO, 1, 0, 0, i });
    for (size_t i = 0; i < 5; i++)
        tick_all (&w, T0);
    ok (w.forwards == 63 && w.nanswered == 0, "requests go up, too");
    destroy (&w, T0);
    ok (w.req[1].errnum == EHOSTUNREACH && w.req[63].errnum == EHOSTUNREACH, "and are answered at the end");
}

/* How many microseconds of [lo_us, hi_us) give ids, and are those all whole steps of it? */
static int usable (struct series *s, int64_t lo_us, int64_t hi_us, int64_t step_us)
{
    int n = 0;

    for (int64_t us = lo_us - step_us; us < hi_us + step_us; us++) {
        int64_t from = us - us % 1000000 % step_us, to = from + step_us, wait_us = 0;
        struct flake_run run;

        if (to / 1000000 > from / 1000000) /* the last step of a second may be short */
            to = to / 1000000 * 1000000;
        if (series_reserve (s, lo_us, hi_us, us, 0, 1, &run, &wait_us) < 0) {
            if (errno != ERANGE || wait_us <= 0 || (from >= lo_us && to <= hi_us))
                return -1;
        } else if (from < lo_us || to > hi_us)
            return -1;
        else
            n++;
    }
    return n;
}

static void test_series (void)
{
    const int64_t second = INT64_C (1795000000) * 1000000;
    struct series *sno = series_create_sno (3), *uid = series_create_uid (&(struct uid_node){ .fingerprint = 7 });

    ok (usable (sno, second + 1000, second + 11000, 4000) == 4000, "of 10 ms only the whole unit of 4 ms is used");
    ok (usable (sno, second + 20000, second + 28000, 4000) == 8000, "all where the range begins and ends with units");
    ok (usable (sno, second + 31000, second + 34000, 4000) == 0, "none of a range without one");
    ok (usable (uid, second + 1000, second + 4000, 1024) == 2 * 1024, "of 3 ms only the whole steps of 1.024 ms");
    ok (usable (uid, second + 998000, second + 1002000, 1024) == 1024 + 576 + 1024, "the short one of a second, too");
    series_destroy (sno);
    series_destroy (uid);
}

static void test_registry (void)
{
    struct registry *r = registry_create ();
    struct span range, held = { 100, 200 }, later = { 150, 300 };
    struct claim claim = { 0, 1, "n" };
    char name[CLAIM_NAME_MAX + 2];
    idt_error_t err;
    bool good = true;

    memset (name, 'x', sizeof (name) - 1);
    name[sizeof (name) - 1] = '\0';
    claim.node = name;
    ok (registry_claim (r, 150, &held, &claim, &range, &err) < 0 && errno == EINVAL, "a name may not be too long");
    claim.node = "n";
    for (uint32_t i = 0; i < REGISTRY_MAX; i++) {
        claim.fingerprint = i * 40503u;
        good = good && registry_claim (r, 150, &held, &claim, &range, &err) == 0;
    }
    ok (good && registry_count (r) == REGISTRY_MAX, "%u fingerprints have room", REGISTRY_MAX);
    claim.fingerprint = 1;
    ok (registry_claim (r, 150, &held, &claim, &range, &err) < 0 && errno == ENOSPC, "one more has not");
    claim.rank = 2;
    ok (registry_claim (r, 200, &later, &claim, &range, &err) == 0 && registry_count (r) == 1 && range.lo_ms == 200,
        "those that have expired are forgotten, but not what was granted");
    registry_destroy (r);
}

/* --- histories ----------------------------------------------------------------------------------- */

enum { NRANKS = 5, MAX_EVENTS = 4096, MAX_REQUESTS = 20000 };
#define LEASE_MS 400

/* What a run of ids takes: of one maker, in one step, sequences seq ... seq + n - 1. */
struct used {
    uint64_t owner; /* kind, and partition or fingerprint */
    uint64_t step;
    uint32_t seq, n;
};

enum event_type { EV_LOAN, EV_CLAIM, EV_CLAIMED, EV_FORWARD, EV_FORWARDED };

struct event {
    uint64_t at_us;
    enum event_type type;
    int rank, life;  /* of whom it is for, or from: one that is no more hears nothing */
    int to, to_life; /* forwards: who serves it */
    uint32_t tag;
    size_t cookie;
    struct grant grant;
    int errnum;
    struct claim claim;
};

struct lender {
    struct span lease; /* of this life of the broker; empty: none */
    uint64_t given_ms; /* the root's table: end of all leases given for this rank */
    struct span lent;
    int borrower; /* life of the module */
};

struct history {
    uint64_t seed, now_us;
    struct node {
        struct flake *f;
        struct history *history;
        int rank, life;
        int64_t skew_us;
        uint32_t fingerprint;
        struct lender lender;
    } node[NRANKS];
    struct event event[MAX_EVENTS];
    int nevents;
    struct {
        int answers;
        int origin; /* where it came from: a node, or with 'serves' a forward's */
        bool serves;
        struct event forward; /* to be answered */
        enum series_kind kind;
        uint32_t count, got;
        bool lost; /* its broker crashed: nobody answers */
    } req[MAX_REQUESTS];
    size_t nreq;
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
    } else {
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

static int h_forward_cb (void *arg, uint32_t tag, void *cookie)
{
    struct node *n = arg;

    n->history->forwards++;
    post (n->history, (struct event){ .type = EV_FORWARD,
                                      .rank = n->rank,
                                      .life = n->life,
                                      .to = (n->rank - 1) / 2,
                                      .tag = tag,
                                      .cookie = (size_t)cookie });
    return below (n->history, 50) == 0 ? -1 : 0;
}

static int h_borrow_cb (void *arg)
{
    struct node *n = arg;

    post (n->history, (struct event){ .type = EV_LOAN, .rank = n->rank, .life = n->life });
    return 0;
}

static void h_give_back_cb (void *arg, uint64_t end_ms)
{
    struct node *n = arg;
    struct lender *l = &n->lender;

    if (below (n->history, 3) > 0 && l->borrower == n->life && end_ms >= l->lent.lo_ms && end_ms < l->lent.hi_ms)
        l->lent.hi_ms = end_ms;
}

static int h_claim_cb (void *arg, const struct claim *claim)
{
    struct node *n = arg;

    post (n->history,
          (struct event){ .type = EV_CLAIM, .rank = n->rank, .life = n->life, .claim = *claim });
    return 0;
}

static const struct flake_ops history_ops
    = { h_give_cb, h_reply_cb, h_fail_cb, h_forward_cb, h_borrow_cb, h_give_back_cb, h_claim_cb };

static void load (struct node *n)
{
    const struct flake_config config = { .rank = (uint32_t)n->rank,
                                         .max_partitions = 4,
                                         .max_waiting = 100,
                                         .timeout_us = 300 * MS,
                                         .drift = 8,
                                         .fingerprint = n->fingerprint ? n->fingerprint : naming_own ((uint32_t)n->rank),
                                         .node = "n" };

    n->life++;
    n->f = flake_create (&config, &history_ops, n);
}

/* The broker's fluid service is gone with it: its lease is lost, or part of it given back, but never what it lent. */
static void lose_lease (struct history *h, struct lender *l)
{
    if (l->lease.hi_ms == l->given_ms && l->lease.hi_ms > 0 && below (h, 2)) {
        uint64_t end = l->lent.hi_ms > l->lease.lo_ms ? l->lent.hi_ms : l->lease.lo_ms;

        if (end < l->given_ms)
            l->given_ms = end;
    }
    l->lease = l->lent = (struct span){ 0, 0 };
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
    /* What it has of memory is lost: nothing is told to anybody. */
    n->life++;
    flake_cancel (n->f, h->now_us, all_gone, NULL);
    flake_destroy (n->f);
    lose_lease (h, &n->lender);
    n->skew_us = (int64_t)below (h, 100 * MS) - (int64_t)(50 * MS);
    n->fingerprint = (uint32_t)below (h, 3); /* 0: its number */
    load (n);
}

static void reload (struct history *h, struct node *n)
{
    flake_stop (n->f, h->now_us);
    flake_destroy (n->f);
    if (below (h, 3) == 0)
        n->fingerprint = (uint32_t)below (h, 3); /* 0: its number */
    load (n);
}

/* As fluid does: a lease from the root, of which a quarter is lent. */
static void serve_loan (struct history *h, struct node *n)
{
    struct lender *l = &n->lender;
    uint64_t now_ms = inst_us (n) / 1000, lo, hi;

    if (now_ms >= l->lease.hi_ms && below (h, 4) > 0 && now_ms + LEASE_MS > l->given_ms) {
        l->lease = (struct span){ l->given_ms, now_ms + LEASE_MS };
        l->given_ms = l->lease.hi_ms;
    }
    lo = l->lease.lo_ms > l->lent.hi_ms ? l->lease.lo_ms : l->lent.hi_ms;
    hi = l->lease.hi_ms < now_ms + LEASE_MS / 4 ? l->lease.hi_ms : now_ms + LEASE_MS / 4;
    if (now_ms < l->lease.lo_ms || now_ms >= l->lease.hi_ms || lo >= hi) {
        flake_not_lent (n->f, h->now_us, false);
        return;
    }
    l->lent = (struct span){ lo, hi };
    l->borrower = n->life;
    flake_lent (n->f, h->now_us, &(struct term_loan){ lo, hi, h->now_us, inst_us (n), EPOCH_MS });
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

    if (e.type == EV_CLAIM) { /* rank 0 answers, whoever lives */
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
        size_t c = lost ? 0 : new_request (h, &h->node[e.to], h->req[e.cookie].kind, h->req[e.cookie].count);

        e.type = EV_FORWARDED;
        if (c == 0) {
            e.errnum = EHOSTUNREACH;
            post (h, e);
            return;
        }
        h->req[c].serves = true;
        h->req[c].forward = e;
        flake_generate (h->node[e.to].f, h->now_us,
                        &(struct flake_request){ (void *)c, h->req[c].kind, h->req[c].count, 0, 0, 100 + below (h, 4) });
        return;
    }
    if (n->life != e.life)
        return;
    if (e.type == EV_LOAN)
        serve_loan (h, n);
    else if (e.type == EV_CLAIMED && e.errnum)
        flake_claim_failed (n->f, h->now_us);
    else if (e.type == EV_CLAIMED)
        flake_claimed (n->f, h->now_us, &e.grant);
    else if (e.errnum)
        flake_forward_failed (n->f, h->now_us, e.tag, e.errnum, "no");
    else {
        size_t c = (size_t)flake_forwarded (n->f, h->now_us, e.tag);

        if (c)
            answered (h, c);
        if (c && h->req[c].serves) {
            h->req[c].forward.errnum = 0;
            post (h, h->req[c].forward);
        }
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
                            &(struct flake_request){ (void *)c, h->req[c].kind, h->req[c].count, 0, 0, below (h, 4) });
    } else if (dice < 303)
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

/* All that was asked and not lost with its broker was answered, once. */
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
    h->nreq = 1; /* cookie 0 is none */
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
        ok (false, "seed %d: %zu ids twice, %zu requests not answered once", (int)seed, twice, open);
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
    test_make ();
    test_forward ();
    test_own ();
    test_given ();
    test_claims ();
    test_turns ();
    test_waiting ();
    test_series ();
    test_registry ();
    for (uint64_t seed = first; seed < first + count; seed++)
        test_history (seed, totals);
    ok (totals[0] > 0 && totals[1] > 0 && totals[2] > 0,
        "%d histories: %d ids, none twice; %d claims refused for a fingerprint, %d forwards", (int)count,
        (int)totals[0], (int)totals[1], (int)totals[2]);
    return done_testing ();
}
