/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* node_test.c - one node: each rule of node.h */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test/tap.h"
#include "modules/flake/node.h"
#include "test/failing_alloc.h"

#define MS UINT64_C (1000)
#define SECOND UINT64_C (1000000)
#define T0 (100 * SECOND)
#define EPOCH_MS INT64_C (1795000000001) /* not a multiple of any step */

/* --- one node ---------------------------------------------------------------------------------- */

struct record {
    int answers, errnum;
    uint32_t ids;         /* in the answer */
    uint32_t first;       /* of a part of the parent's answer: the index of its first id */
    uint32_t got;         /* so far */
    uint32_t fingerprint; /* of the last uid */
    char text[256];
};

struct world {
    struct flake *f;
    struct record req[64];
    int order[64], nanswered; /* cookies in the order of their answers */
    uint64_t given;           /* number of ids in total */
    bool no_memory, no_way;
    struct flake_request up; /* the last forwarded request */
    int forwards, asks, claims, returns;
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
        r->fingerprint = run->first.uid.node.fingerprint; /* meaningful for uids only */
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

static int forward_cb (void *arg, uint32_t tag, const struct flake_request *req)
{
    struct world *w = arg;

    if (w->no_way)
        return -1;
    w->forwards++;
    w->tag = tag;
    w->up = *req;
    return 0;
}

/* The ids of the parent's answers are 0, 1, 2 ... */
static void pass_cb (void *arg, void *cookie, uint32_t first, uint32_t n)
{
    struct world *w = arg;
    struct record *r = &w->req[(size_t)cookie];

    r->answers++;
    r->first = first;
    r->ids = n;
    w->order[w->nanswered++ % 64] = (int)(size_t)cookie;
}

static int ask_time_cb (void *arg)
{
    ((struct world *)arg)->asks++;
    return 0;
}

static void return_time_cb (void *arg, uint64_t end_ms)
{
    struct world *w = arg;

    w->returns++;
    w->end_ms = end_ms;
}

static int claim_cb (void *arg, const struct claim *claim)
{
    ((struct world *)arg)->claims++;
    return 0;
}

static const struct flake_ops ops = { give_cb, reply_cb,    fail_cb,        forward_cb,
                                      pass_cb, ask_time_cb, return_time_cb, claim_cb };

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
    if (w->f)
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

/* Tick as the owner would, until nothing is due. */
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
    flake_claimed (w->f, at_us, &(struct naming_grant){ fingerprint, { lo_ms, hi_ms }, 8 });
}

/* Grant time. At 'at_us' the instance's time is at_us - T0 + 10 s. */
static void grant_time (struct world *w, uint64_t at_us, uint64_t lo_ms, uint64_t hi_ms)
{
    flake_time_granted (w->f, at_us,
                        &(struct time_answer){ .lo_ms = lo_ms,
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
    ok (r->answers == 0 && w.asks == 1 && flake_deadline (w.f) == T0 + 5 * SECOND,
        "a node requests time for its first request for ids");
    grant_time (&w, T0, 9990, 25000);
    ok (r->answers == 1 && r->ids == 10, "a request for ids is served when time is granted");
    r = ask (&w, T0 + SECOND, 2, SERIES_SNO, 65536);
    ok (r->ids == 65536 && w.asks == 1, "further requests for ids are served from the same time");
    r = ask (&w, T0 + SECOND, 3, SERIES_SNO, 65536);
    s = ask (&w, T0 + SECOND, 4, SERIES_SNO, 1);
    ok (r->answers == 0 && s->answers == 0 && flake_deadline (w.f) > T0 + SECOND
            && flake_deadline (w.f) <= T0 + SECOND + 4 * MS,
        "ids that do not fit into a unit wait for the next unit");
    tick_all (&w, flake_deadline (w.f));
    ok (r->ids == 65536 && s->answers == 0, "requests that wait for a unit are served one after another");
    tick_all (&w, flake_deadline (w.f));
    ok (s->ids == 1, "requests that wait for a unit are served in order of arrival");
    r = ask (&w, T0 + 12 * SECOND, 5, SERIES_SNO, 1);
    ok (r->ids == 1 && w.asks == 2, "in the last quarter of a grant a node requests the next one");
    flake_time_refused (w.f, T0 + 12 * SECOND, false);
    r = ask (&w, T0 + 15 * SECOND, 6, SERIES_SNO, 1);
    ok (r->answers == 0 && w.forwards == 0 && w.asks == 3,
        "after the end of the granted time a request waits for the next one");
    flake_time_refused (w.f, T0 + 15 * SECOND, false);
    ok (r->answers == 0 && w.forwards == 1, "if no time is granted, a request is forwarded to the parent");
    grant_time (&w, T0 + 15 * SECOND, 25000, 40000);
    flake_forwarded (w.f, T0 + 15 * SECOND, w.tag);
    flake_forwarded (w.f, T0 + 15 * SECOND, w.tag);
    ok (r->answers == 1 && r->ids == 1 && r->first == 0, "the parent's response is passed on once");
    r = ask (&w, T0 + 16 * SECOND, 7, SERIES_SNO, 0);
    s = ask (&w, T0 + 16 * SECOND, 8, SERIES_SNO, 65537);
    ok (r->errnum == EINVAL && s->errnum == EINVAL, "requests for 0 and 65537 ids are refused");
    flake_stop (w.f, T0 + 16 * SECOND);
    ok (w.returns == 1 && w.end_ms == 26001, "a node that stops returns the unused time");
    r = ask (&w, T0 + 16 * SECOND, 9, SERIES_SNO, 1);
    ok (r->errnum == EHOSTUNREACH, "a request to a node that has stopped fails with EHOSTUNREACH");
    flake_destroy (w.f);
}

static void test_forward (void)
{
    struct world w;
    struct record *r;

    create (&w, 3, 3);
    r = ask (&w, T0, 1, SERIES_SNO, 1);
    ok (w.forwards == 1, "a rank that is not below max_partitions forwards requests for snos");
    flake_forward_failed (w.f, T0, w.tag, EHOSTUNREACH, NULL);
    tick_all (&w, flake_deadline (w.f));
    ok (w.forwards == 2 && r->answers == 0, "a forwarded request whose connection broke is forwarded again");
    flake_forward_failed (w.f, T0 + SECOND, w.tag, EAGAIN, "no");
    ok (r->answers == 1 && r->errnum == EAGAIN && !strcmp (r->text, "no"),
        "an error in the parent's response is passed on");
    r = ask (&w, T0 + SECOND, 2, SERIES_SNO, 1);
    flake_tick (w.f, T0 + 6 * SECOND);
    flake_forwarded (w.f, T0 + 6 * SECOND, w.tag);
    ok (r->answers == 1 && r->errnum == EHOSTUNREACH,
        "a forwarded request without a response in time fails, and a later response is ignored");
    destroy (&w, T0 + 7 * SECOND);

    create (&w, 3, 65536);
    r = ask (&w, T0, 1, SERIES_UID, 1);
    flake_time_refused (w.f, T0, true);
    ok (w.forwards == 1 && r->answers == 0, "a rank that cannot get time forwards requests for uids, too");
    destroy (&w, T0);

    create (&w, 0, 65536);
    r = ask (&w, T0, 1, SERIES_SNO, 1);
    flake_time_refused (w.f, T0, false);
    ok (w.forwards == 0 && r->answers == 0 && flake_deadline (w.f) < T0 + SECOND,
        "a request at rank 0 waits for time, because rank 0 cannot forward it");
    flake_tick (w.f, T0 + SECOND);
    grant_time (&w, T0 + SECOND, 11000, 25000);
    tick_all (&w, flake_deadline (w.f));
    ok (r->ids == 1, "a waiting request at rank 0 is served when rank 0 gets time");
    destroy (&w, T0 + SECOND);
}

/* Uids with the rank's own number. */
static void test_own (void)
{
    struct world w;
    struct record *r;

    create (&w, 3, 65536);
    ok (w.claims == 1, "a rank requests the drift of the instance when it starts");
    r = ask (&w, T0, 1, SERIES_UID, 1);
    grant_time (&w, T0, 9990, 25000);
    ok (r->answers == 0 && w.forwards == 0, "requests for uids wait until the drift is known");
    answer_claim (&w, T0, naming_own (3), 0, UINT64_C (1) << 40);
    ok (r->ids == 1 && r->fingerprint == 0x80000003, "uids contain the rank's number when the drift is known");
    r = ask (&w, T0 + 14 * SECOND, 2, SERIES_UID, 1);
    ok (r->ids == 1 && w.claims == 1, "a claim of the rank's number need not be repeated");
    flake_generate (w.f, T0 + 14 * SECOND, &(struct flake_request){ (void *)3, SERIES_UID, 1, 0, 5, 0, 0 });
    ok (w.req[3].errnum == EINVAL && strstr (w.req[3].text, "drift 5") && strstr (w.req[3].text, "8 drift bits"),
        "a request for another drift is refused, and the error has the drift of the instance");
    flake_generate (w.f, T0 + 14 * SECOND, &(struct flake_request){ (void *)4, SERIES_UID, 1, 0, 8, 0, 0 });
    ok (w.req[4].ids == 1, "a request for the drift of the instance is served");
    destroy (&w, T0 + 14 * SECOND);

    create (&w, 3, 65536);
    flake_claim_failed (w.f, T0);
    grant_time (&w, T0, 10000, 25000);
    r = ask (&w, T0, 1, SERIES_UID, 1);
    for (uint64_t t = T0; t < T0 + 3 * SECOND; t += 10 * MS) {
        int claims = w.claims;

        tick_all (&w, t);
        if (w.claims > claims)
            flake_claim_failed (w.f, t);
    }
    ok (w.forwards == 1 && r->answers == 0 && w.claims >= 5 && w.claims <= 12,
        "a rank that does not know the drift forwards requests, and repeats its claim at growing intervals (%d)",
        w.claims);
    destroy (&w, T0 + 3 * SECOND);

    create (&w, 0, 65536);
    grant_time (&w, T0, 9990, 25000);
    r = ask (&w, T0, 1, SERIES_UID, 1);
    ok (r->ids == 1 && w.claims == 0 && r->fingerprint == 0x80000000, "rank 0 does not claim its own number");
    destroy (&w, T0);
}

static void test_given (void)
{
    struct world w;
    struct record *r;

    create_named (&w, 3, 65536, 7);
    r = ask (&w, T0, 1, SERIES_UID, 100);
    grant_time (&w, T0, 10000, 25000);
    ok (r->answers == 0 && w.claims == 1, "a rank with a configured name claims it at the first request");
    answer_claim (&w, T0, 7, 9000, 12000);
    tick_all (&w, flake_deadline (w.f));
    ok (r->ids == 100 && r->fingerprint == 7, "the configured name is used where granted time and claim overlap");
    r = ask (&w, T0 + 2 * SECOND - 100, 2, SERIES_UID, 1);
    ok (r->answers == 0 && flake_deadline (w.f) > T0 + 2 * SECOND,
        "the configured name is not used in a step that ends after the claim");
    tick_all (&w, flake_deadline (w.f));
    ok (r->answers == 0 && w.claims == 2, "the configured name is not used after the end of the claim");
    answer_claim (&w, T0 + 2 * SECOND, naming_own (3), 0, UINT64_C (1) << 40);
    ok (r->ids == 1 && r->fingerprint == 0x80000003,
        "if another rank holds the configured name, the rank's number is used");
    r = ask (&w, T0 + 2 * SECOND + MS, 3, SERIES_UID, 1);
    ok (r->ids == 1 && w.claims == 2,
        "while the claim of the name is refused, further requests get ids with the rank's number");
    r = ask (&w, T0 + 4 * SECOND, 4, SERIES_UID, 1);
    ok (r->ids == 1 && w.claims == 3, "a refused claim of the name is repeated a second later");
    answer_claim (&w, T0 + 4 * SECOND, 7, 14000, 25000);
    r = ask (&w, T0 + 4 * SECOND + 10, 5, SERIES_UID, 1);
    ok (r->answers == 0, "a name that was granted at last is used from the next whole step on");
    tick_all (&w, flake_deadline (w.f));
    ok (r->ids == 1 && r->fingerprint == 7, "in whole steps of the granted time the configured name is used");
    r = ask (&w, T0 + 6 * SECOND, 9, SERIES_UID, 20000);
    ok (r->answers == 0 && r->got == 16384 && r->fingerprint == 7,
        "a request for many ids is served in part under the name");
    answer_claim (&w, T0 + 6 * SECOND + 10, naming_own (3), 0, UINT64_C (1) << 40);
    for (int i = 0; i < 8 && !r->answers; i++)
        tick_all (&w, flake_deadline (w.f));
    ok (r->ids == 20000 && r->fingerprint == 0x80000003,
        "if the claim is refused during a request, all ids of the request are made again under the rank's number");
    r = ask (&w, T0 + 8 * SECOND, 10, SERIES_UID, 1);
    answer_claim (&w, T0 + 8 * SECOND, 7, 14000, 25000);
    grant_time (&w, T0 + 14 * SECOND, 25000, 40000);
    r = ask (&w, T0 + 15 * SECOND, 6, SERIES_UID, 1);
    ok (r->answers == 0 && w.claims == 5, "after the end of a claim a request waits for rank 0's answer");
    tick_all (&w, flake_deadline (w.f));
    ok (r->ids == 1 && r->fingerprint == 0x80000003 && w.forwards == 0,
        "after a second without an answer to the claim the rank's number is used");
    r = ask (&w, T0 + 17 * SECOND, 7, SERIES_UID, 1);
    ok (r->ids == 1, "while no answer to the claim arrives, later requests get ids with the rank's number");
    flake_claimed (w.f, T0 + 17 * SECOND, &(struct naming_grant){ 7, { 25000, 40000 }, 5 });
    r = ask (&w, T0 + 18 * SECOND, 8, SERIES_UID, 1);
    ok (r->ids == 1 && r->fingerprint == 0x80000003 && flake_drift (w.f) == 8,
        "a grant of a name with another drift is not used");
    destroy (&w, T0 + 18 * SECOND);
}

static void test_claims (void)
{
    const struct claim ours = { 7, 3, "me@here" }, theirs = { 7, 4, "you@there" }, own = { 0x80000009, 9, "n" },
                       stolen = { 0x80000009, 8, "n" };
    struct world w;
    struct naming_grant grant;
    idt_error_t err = { "" };

    create (&w, 0, 65536);
    flake_claim_request (w.f, T0, &ours, &grant, &err);
    grant_time (&w, T0, 10000, 10100);
    flake_tick (w.f, T0 + 90 * MS);
    ok (w.asks == 2 && flake_deadline (w.f) < T0 + SECOND,
        "rank 0 asks for more time for as long as a name is claimed");
    destroy (&w, T0 + 90 * MS);

    create (&w, 0, 65536);
    ok (flake_claim_request (w.f, T0, &own, &grant, &err) == 0 && grant.fingerprint == 0x80000009
            && grant.range.lo_ms == 0 && grant.range.hi_ms == UINT64_C (1) << 40 && grant.drift == 8 && w.asks == 0,
        "a rank's number is granted immediately and forever, with the drift");
    ok (flake_claim_request (w.f, T0, &stolen, &grant, &err) < 0 && errno == EINVAL,
        "a rank's number is not granted to another rank");
    ok (flake_claim_request (w.f, T0, &ours, &grant, &err) < 0 && errno == EAGAIN && w.asks == 1,
        "rank 0 grants no name before it has time");
    grant_time (&w, T0, 10000, 25000);
    err.text[0] = '\0';
    ok (flake_claim_request (w.f, T0, &ours, &grant, &err) == 0 && grant.fingerprint == 7 && grant.range.lo_ms == 10000
            && grant.range.hi_ms == 25000 && !err.text[0],
        "rank 0 grants a name for the time that it holds");
    ok (flake_claim_request (w.f, T0, &theirs, &grant, &err) == 0 && grant.fingerprint == 0x80000004
            && strstr (err.text, "me@here") && strstr (err.text, "you@there") && strstr (err.text, "rank 3"),
        "a rank that claims another rank's name gets its own number, and a text with both names");
    ok (flake_claim_request (w.f, T0, &ours, &grant, &err) == 0 && grant.fingerprint == 7,
        "a rank may claim the name that it holds again");
    grant_time (&w, T0 + 11 * SECOND, 25000, 40000);
    ok (flake_claim_request (w.f, T0 + 16 * SECOND, &theirs, &grant, &err) == 0 && grant.fingerprint == 7
            && grant.range.lo_ms == 25000 && grant.range.hi_ms == 40000,
        "after the end of a claim another rank may have the name, from that end on");
    grant_time (&w, T0 + 31 * SECOND, 40000, 55000);
    ok (flake_claim_request (w.f, T0 + 31 * SECOND, &ours, &grant, &err) == 0 && grant.range.lo_ms == 40000
            && flake_claim_request (w.f, T0 + 31 * SECOND, &ours, &grant, &err) == 0 && grant.range.lo_ms == 40000,
        "a rank may have its former name again, but not for the other rank's time");
    flake_stop (w.f, T0 + 32 * SECOND);
    ok (w.returns == 0, "rank 0 does not return time for which it has granted a name");
    flake_destroy (w.f);

    create (&w, 0, 65536);
    grant_time (&w, T0, 10000, 25000);
    grant_time (&w, T0 + 12 * SECOND, 25000, 37000);
    flake_stop (w.f, T0 + 13 * SECOND);
    ok (w.returns == 1 && w.end_ms <= 23001, "rank 0 returns all unused time that was granted in a row, from %d on",
        (int)w.end_ms);
    flake_destroy (w.f);

    create (&w, 0, 65536);
    grant_time (&w, T0, 10000, 25000);
    flake_claim_request (w.f, T0, &own, &grant, &err);
    flake_stop (w.f, T0 + SECOND);
    ok (w.returns == 1 && w.end_ms < 11002, "rank 0 returns unused time even if it has granted numbers of ranks");
    flake_destroy (w.f);
}

/* Add a request for flaxes, without the ticks that follow. */
static void put (struct world *w, size_t cookie, uint64_t asker, uint32_t count)
{
    flake_generate (w->f, T0, &(struct flake_request){ (void *)cookie, SERIES_FLAX, count, 0, 0, asker, 0 });
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
    ok (w.given == FLAKE_TURN_IDS && flake_deadline (w.f) <= T0,
        "a call makes FLAKE_TURN_IDS ids, and then the node is due again immediately");
    for (size_t i = 2; i < 10; i++)
        put (&w, i, 1, 65536);
    ok (w.given == FLAKE_TURN_IDS, "requests that arrive while a node is due do not make the call longer");
    put (&w, 10, 2, 2000);
    put (&w, 11, 2, 1);
    put (&w, 62, 3, 1);
    while (flake_deadline (w.f) <= T0) {
        uint64_t before = w.given;

        flake_tick (w.f, T0);
        most = w.given - before > most ? w.given - before : most;
    }
    ok (most <= 2 * FLAKE_TURN_IDS && w.nanswered == 12 && w.given == 9 * 65536 + 2002,
        "all ids of large requests are made, at most FLAKE_TURN_IDS per queue in a turn");
    ok (w.order[0] == 62, "a request for few ids does not wait for requests for many");
    ok (w.order[2] == 2 && w.order[3] == 10 && w.order[4] == 11,
        "a requester waits for at most two large requests of another, and the requests of each are served in order");
    int ticks = 0;
    for (size_t i = 12; i < 62; i++)
        put (&w, i, i, 1);
    for (; flake_deadline (w.f) <= T0; ticks++)
        flake_tick (w.f, T0);
    ok (w.nanswered == 62, "many small requests are all served");
    size_t gone = 3;
    put (&w, 1, 1, 65536);
    put (&w, 2, 1, 65536);
    put (&w, 3, 1, 65536);
    put (&w, 4, 1, 1);
    w.nanswered = 0;
    flake_cancel (w.f, T0, gone_cb, &gone);
    tick_all (&w, T0);
    tick_all (&w, T0);
    ok (w.nanswered == 3 && w.order[0] == 1 && w.order[2] == 4, "no ids are made for a requester that has gone");
    w.no_memory = true;
    put (&w, 5, 1, 1);
    ok (w.req[5].errnum == ENOMEM, "a request fails if ids cannot be added to its response");
    destroy (&w, T0);
}

static void test_waiting (void)
{
    struct world w;
    struct record *r;

    create (&w, 3, 65536);
    for (size_t i = 1; i < 13; i++)
        r = ask (&w, T0, i, SERIES_SNO, 1);
    ok (r->errnum == EAGAIN && w.req[11].answers == 0, "one requester may use half of the places of flake.max-waiting");
    flake_generate (w.f, T0, &(struct flake_request){ (void *)13, SERIES_SNO, 1, 0, 0, 1, 0 });
    ok (w.req[13].answers == 0, "when one requester has used its places, other requesters still have some");
    ok (ask (&w, T0, 14, SERIES_FLAX, 1)->ids == 1,
        "when the places of snos are used, other kinds of ids still have some");
    flake_tick (w.f, T0 + 5 * SECOND);
    ok (w.req[1].errnum == EHOSTUNREACH && w.req[11].errnum == EHOSTUNREACH && w.req[13].errnum == EHOSTUNREACH,
        "requests that wait for time are answered at their deadline");
    destroy (&w, T0 + 5 * SECOND);

    create (&w, 3, 65536);
    for (size_t i = 1; i < 13; i++)
        flake_generate (w.f, T0, &(struct flake_request){ (void *)i, SERIES_SNO, 1, 0, 0, i, 1001 });
    ok (w.req[12].errnum == EAGAIN && w.req[10].answers == 0,
        "all requesters of one user together may use half of the places of flake.max-waiting");
    flake_generate (w.f, T0, &(struct flake_request){ (void *)13, SERIES_SNO, 1, 0, 0, 13, 1002 });
    ok (w.req[13].answers == 0, "when one user has used its places, another user still has some");
    flake_tick (w.f, T0 + 5 * SECOND);
    destroy (&w, T0 + 5 * SECOND);

    create (&w, 3, 65536);
    grant_time (&w, T0, 9990, 25000);
    for (size_t i = 1; i < 9; i++)
        put (&w, i, 1, 65536);
    flake_tick (w.f, T0 + 5 * SECOND);
    ok (w.req[1].answers == 0 && w.req[8].answers == 0,
        "a request that waits for its turn may wait longer than one that waits for time");
    flake_tick (w.f, T0 + 30 * SECOND);
    ok (w.req[1].errnum == EAGAIN && w.req[8].errnum == EAGAIN && strstr (w.req[8].text, "try again"),
        "a request whose turn does not come fails with EAGAIN");
    destroy (&w, T0 + 30 * SECOND);

    create (&w, 3, 3);
    for (size_t i = 0; i < FLAKE_MAX_UP + 10; i++) {
        flake_generate (w.f, T0, &(struct flake_request){ (void *)(1 + i % 60), SERIES_SNO, FLAKE_FEW, 0, 0, i, 0 });
        tick_all (&w, T0);
    }
    ok (w.forwards == FLAKE_MAX_UP && w.nanswered == 0, "a node has at most FLAKE_MAX_UP forwarded requests under way");
    flake_forwarded (w.f, T0, w.tag);
    ok (w.nanswered == 1 && flake_deadline (w.f) <= T0, "the response to a forwarded request makes a place free");
    tick_all (&w, T0);
    ok (w.forwards == FLAKE_MAX_UP + 1, "when a place is free one more forwarded request is sent");
    destroy (&w, T0);
    ok (w.req[1].errnum == EHOSTUNREACH && w.req[60].errnum == EHOSTUNREACH, "a node that stops answers all requests");
}

static void put_meta (struct world *w, size_t cookie, uint32_t count, uint8_t meta)
{
    flake_generate (w->f, T0,
                    &(struct flake_request){ (void *)cookie, SERIES_SNO, count, .meta = meta, .asker = cookie });
    tick_all (w, T0);
}

static bool got (const struct world *w, size_t cookie, uint32_t first, uint32_t n)
{
    const struct record *r = &w->req[cookie];

    return r->answers == 1 && r->errnum == 0 && r->first == first && r->ids == n;
}

static void test_combine (void)
{
    struct world w;
    uint32_t tag;

    create (&w, 3, 3);
    put_meta (&w, 1, 1, 0);
    tag = w.tag;
    for (size_t i = 2; i < 12; i++)
        put_meta (&w, i, (uint32_t)i, 0);
    ok (w.forwards == 1 && w.up.count == 1, "while a forwarded request is under way, further requests are collected");
    put_meta (&w, 12, 5, 7);
    ok (w.forwards == 2 && w.up.count == 5 && w.up.meta == 7,
        "requests with another meta are not combined with collected ones");
    flake_cancel (w.f, T0, gone_cb, &(size_t){ 4 });
    flake_forwarded (w.f, T0, tag);
    tick_all (&w, T0);
    ok (got (&w, 1, 0, 1) && w.forwards == 3 && w.up.count == 65 - 4 && flake_forward_count (w.f, w.tag) == 61,
        "ten collected requests are forwarded as one, without the cancelled one");
    tag = w.tag;
    put_meta (&w, 13, 1000, 0);
    put_meta (&w, 14, 25, 0);
    ok (w.forwards == 4 && w.up.count == 1000,
        "collected requests that are a full batch are forwarded without waiting");
    flake_cancel (w.f, T0, gone_cb, &(size_t){ 3 });
    flake_forwarded (w.f, T0, tag);
    ok (got (&w, 2, 0, 2) && w.req[3].answers == 0 && w.req[4].answers == 0 && got (&w, 5, 5, 5)
            && got (&w, 11, 50, 11),
        "each collected request gets its part of the response, and the part of a cancelled one is dropped");
    tick_all (&w, T0);
    ok (flake_stats (w.f)->forwards == 4 && flake_stats (w.f)->combined == 8,
        "the node counts forwarded and combined requests");
    destroy (&w, T0);
    ok (w.req[13].errnum == EHOSTUNREACH && w.req[14].errnum == EHOSTUNREACH && w.req[3].answers == 0,
        "a node that stops answers the collected requests");
}

static void test_combine_failed (void)
{
    struct world w;

    create (&w, 3, 3);
    w.no_way = true;
    for (size_t i = 1; i < 4; i++)
        put_meta (&w, i, 2, 0);
    w.no_way = false;
    flake_tick (w.f, flake_deadline (w.f));
    ok (w.forwards == 1 && w.up.count == 6, "requests that could not be sent are later forwarded as one");
    flake_forward_failed (w.f, T0 + SECOND, w.tag, EHOSTUNREACH, NULL);
    flake_cancel (w.f, T0 + SECOND, gone_cb, &(size_t){ 2 });
    flake_tick (w.f, flake_deadline (w.f));
    ok (w.forwards == 2 && w.up.count == 4 && w.req[1].answers == 0,
        "after a broken connection requests that were forwarded as one are forwarded as one again");
    flake_forward_failed (w.f, T0 + 2 * SECOND, w.tag, EAGAIN, "no");
    ok (w.req[1].errnum == EAGAIN && w.req[3].errnum == EAGAIN && !strcmp (w.req[3].text, "no")
            && w.req[2].answers == 0,
        "an error of the parent answers all requests that were forwarded as one");
    ok (flake_forward_count (w.f, w.tag) == 0,
        "after an error of the parent the node no longer waits for the forwarded request");
    destroy (&w, T0 + 2 * SECOND);

    create (&w, 3, 3);
    put_meta (&w, 1, 1, 0);
    put_meta (&w, 2, 1, 0);
    flake_tick (w.f, T0 + 5 * SECOND);
    ok (w.req[1].errnum == EHOSTUNREACH && w.req[2].errnum == EHOSTUNREACH, "collected requests have a deadline");
    flake_forwarded (w.f, T0 + 5 * SECOND, w.tag);
    flake_tick (w.f, T0 + 5 * SECOND);
    ok (w.forwards == 1, "collected requests whose deadline has passed are not sent");
    destroy (&w, T0 + 5 * SECOND);
}

/* The number of microseconds in [lo_us, hi_us) that give ids, or -1 if these are not exactly the whole steps in it. */
static int usable (const struct series *s, int64_t lo_us, int64_t hi_us, int64_t step_us)
{
    int n = 0;

    for (int64_t us = lo_us - step_us; us < hi_us + step_us; us++) {
        int64_t from = us - us % 1000000 % step_us, to = from + step_us, wait_us = 0;
        struct flake_run run;

        if (to / 1000000 > from / 1000000) /* the last step of a second may be shorter */
            to = to / 1000000 * 1000000;
        if (series_reserve (s, lo_us, hi_us, us, 0, 1, &run, &wait_us) < 0) {
            if (errno != ERANGE || wait_us <= 0 || (from >= lo_us && to <= hi_us))
                return -1;
        }
        else if (from < lo_us || to > hi_us)
            return -1;
        else
            n++;
    }
    return n;
}

static void test_series (void)
{
    const int64_t second = INT64_C (1795000000) * 1000000;
    struct series sno = { .sno = sno_gen_create (&(struct sno_gen_config){ .start = { .partition = 3 } }) };
    struct series uid = { .uid = uid_gen_create (&(struct uid_gen_config){ .node = { .fingerprint = 7 } }) };

    ok (usable (&sno, second + 1000, second + 11000, 4000) == 4000,
        "of granted 10 ms only the whole unit of 4 ms is used for snos");
    ok (usable (&sno, second + 20000, second + 28000, 4000) == 8000,
        "time that begins and ends with units is used completely for snos");
    ok (usable (&sno, second + 31000, second + 34000, 4000) == 0, "time without a whole unit is not used for snos");
    ok (usable (&uid, second + 1000, second + 4000, 1024) == 2 * 1024,
        "of granted 3 ms only the whole steps of 1.024 ms are used for uids");
    ok (usable (&uid, second + 998000, second + 1002000, 1024) == 1024 + 576 + 1024,
        "the shorter last step of a second is used for uids");
    sno_gen_destroy (sno.sno);
    uid_gen_destroy (uid.uid);
}

static void test_registry (void)
{
    struct registry registry = { 0 }, *r = &registry;
    struct span range, held = { 100, 200 }, later = { 150, 300 };
    struct claim claim = { 0, 1, "n" };
    char name[CLAIM_NAME_MAX + 2];
    idt_error_t err;
    bool good = true;

    memset (name, 'x', sizeof (name) - 1);
    name[sizeof (name) - 1] = '\0';
    claim.node = name;
    ok (registry_claim (r, 150, &held, &claim, &range, &err) < 0 && errno == EINVAL,
        "a claim of a name that is too long is refused");
    claim.node = "n";
    for (uint32_t i = 0; i < REGISTRY_MAX; i++) {
        claim.fingerprint = i * 40503u;
        good = good && registry_claim (r, 150, &held, &claim, &range, &err) == 0;
    }
    ok (good && r->count == REGISTRY_MAX, "the registry holds up to %u fingerprints", REGISTRY_MAX);
    claim.fingerprint = 1;
    ok (registry_claim (r, 150, &held, &claim, &range, &err) < 0 && errno == ENOSPC,
        "a fingerprint above the limit of the registry is refused");
    claim.rank = 2;
    ok (registry_claim (r, 200, &later, &claim, &range, &err) == 0 && r->count == 1 && range.lo_ms == 200,
        "expired fingerprints of the registry are dropped, and their time is not granted again");
    registry_fini (r);
}

/* Rank 0 makes ids of all kinds, and grants a name. Returns whether the node could be created. '*granted' is 0 or the
 * errno of flake_claim_request ().
 */
static bool make_all_kinds (struct world *w, int *granted)
{
    const struct claim claim = { 7, 4, "you@there" };
    struct naming_grant grant;
    idt_error_t err;

    create_named (w, 0, 10, 9);
    if (!w->f)
        return false;
    for (size_t i = 0; i < SERIES_KINDS; i++)
        ask (w, T0, i + 1, (enum series_kind)i, 2);
    grant_time (w, T0, 9990, 25000);
    answer_claim (w, T0, 9, 9990, 25000);
    tick_all (w, T0);
    errno = 0;
    *granted = flake_claim_request (w->f, T0, &claim, &grant, &err) == 0 ? 0 : errno;
    destroy (w, T0 + SECOND);
    return true;
}

static void test_memory (void)
{
    int lives = 0, short_of_memory = 0, granted = 0;
    bool good = true;
    struct world w;

    for (failures = 1; failures > 0;) {
        failures = 0;
        countdown = lives++;
        bool lived = make_all_kinds (&w, &granted);
        countdown = -1;
        short_of_memory += lived && granted == ENOMEM;
        good = good && (lived ? granted == 0 || granted == ENOMEM : failures > 0);
        for (size_t i = 1; lived && i <= SERIES_KINDS; i++) {
            const struct record *r = &w.req[i];

            short_of_memory += r->errnum == ENOMEM;
            good = good && r->answers == 1 && (r->ids == 2 || r->errnum == ENOMEM);
        }
    }
    ok (good && lives > 10, "if any allocation of a node fails, each request is answered once (%d allocations)", lives);
    ok (short_of_memory >= SERIES_KINDS + 2, "requests whose allocation fails get ENOMEM");
}

int main (void)
{
    test_make ();
    test_forward ();
    test_combine ();
    test_combine_failed ();
    test_own ();
    test_given ();
    test_claims ();
    test_turns ();
    test_waiting ();
    test_series ();
    test_registry ();
    test_memory ();
    return done_testing ();
}
