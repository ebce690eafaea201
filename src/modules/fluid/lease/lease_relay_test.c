/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lease_relay_test.c - lease requests are combined, their answers split, and each request is answered once */
#include <string.h>

#include "test/tap.h"
#include "modules/fluid/lease/lease_relay.h"

#define LEASE 60000
#define NREQ 64

/* The answers, by cookie. */
struct heard {
    int answers[NREQ];
    size_t grants[NREQ];
    uint64_t sum[NREQ]; /* sum of lo_ms */
    uint64_t received_us[NREQ];
};

static void reply_cb (void *arg, uint64_t now_us, void *cookie, uint64_t received_us, const struct grant *grant,
                      size_t ngrant)
{
    struct heard *heard = arg;
    size_t i = (size_t)cookie;

    heard->answers[i]++;
    heard->grants[i] = ngrant;
    heard->received_us[i] = received_us;
    for (size_t k = 0; k < ngrant; k++)
        heard->sum[i] += grant[k].box.range.lo_ms;
}

static struct want want (uint32_t g, uint64_t end_ms)
{
    struct want w = { .rank = g, .number = 1, .size = BOX_WHOLE, .end_ms = end_ms };

    snprintf (w.incarnation, sizeof (w.incarnation), "%036u", (unsigned)g);
    return w;
}

static struct grant grant (const struct want *w)
{
    struct grant g = { .rank = w->rank, .number = w->number, .box = { w->rank, UINT64_MAX, { w->rank, 99 } } };

    memcpy (g.incarnation, w->incarnation, sizeof (g.incarnation));
    return g;
}

static struct lease_relay *new_relay (struct lease_relay *r, struct heard *heard)
{
    lease_relay_init (r, LEASE, reply_cb, heard);
    return r;
}

static int add (struct lease_relay *r, uint64_t now_us, size_t cookie, uint32_t g, uint64_t end_ms)
{
    struct want w = want (g, end_ms);
    struct lease_request req = { .want = &w, .nwant = 1 };

    return lease_relay_add (r, now_us, 1000, (void *)cookie, &req);
}

static void test_combine (void)
{
    struct heard heard = { 0 };
    struct lease_relay relay, *r = new_relay (&relay, &heard);
    struct want own = want (9, 0);
    struct lease_request req;
    uint32_t tag;

    ok (r->due_us == UINT64_MAX && lease_relay_flush (r, 0, NULL, &req) == 0, "a relay without requests sends nothing");
    add (r, 100, 1, 11, 40000);
    ok (r->due_us == 100 + LEASE * 1000 / 12, "a request for a renewal waits up to a twelfth of a lease for others");
    add (r, 200, 2, 12, 40000);
    ok (r->due_us == 100 + LEASE * 1000 / 12, "the first waiting request decides when all are sent");
    add (r, 300, 3, 13, 20000);
    ok (r->due_us == 300, "a request of a rank that has less than a third of its lease left does not wait");
    tag = lease_relay_flush (r, 300, &own, &req);
    ok (tag != 0 && req.nwant == 4 && req.want[0].rank == 11 && req.want[3].rank == 9,
        "waiting requests are sent in one message, together with the request of this node");
    ok (r->due_us == UINT64_MAX, "after a message was sent no request waits");

    struct grant g[3] = { grant (&req.want[2]), grant (&req.want[0]), grant (&req.want[3]) };
    lease_relay_answered (r, 900, tag + 1, g, 3);
    ok (heard.answers[1] == 0, "an answer with another tag than the message is ignored");
    lease_relay_answered (r, 900, tag, g, 3);
    ok (heard.grants[1] == 1 && heard.sum[1] == 11 && heard.grants[3] == 1 && heard.sum[3] == 13,
        "each request in a message gets its own grants of the answer");
    ok (heard.answers[2] == 1 && heard.grants[2] == 0, "a request without a grant in the answer gets an answer, too");
    lease_relay_answered (r, 900, tag, g, 3);
    ok (heard.answers[1] == 1 && heard.answers[2] == 1 && heard.answers[3] == 1,
        "each request in a message is answered once");
    lease_relay_fini (r);
}

/* An instance starts: each of 40 children requests 25 generators, one after the other, and all requests are urgent. */
static void test_pace (void)
{
    struct heard heard = { 0 };
    struct lease_relay relay, *r = new_relay (&relay, &heard);
    struct lease_request req;
    size_t sent = 0, messages = 0;
    uint64_t late_us = 0, pace_us = lease_relay_pace_us (r);

    for (uint32_t i = 0; i < 1000; i++) {
        uint64_t now_us = 1000000 + i * 100;

        add (r, now_us, 1 + i % 40, i, 0);
        late_us = r->due_us > now_us + late_us ? r->due_us - now_us : late_us;
        if (r->due_us <= now_us && lease_relay_flush (r, now_us, NULL, &req) != 0) {
            sent += req.nwant;
            messages++;
        }
    }
    ok (pace_us == 20000 && messages == 100000 / pace_us && late_us <= pace_us,
        "a thousand urgent requests in 100 ms are sent in %d messages, and none waits longer than %d us", (int)messages,
        (int)late_us);
    lease_relay_flush (r, 2000000, NULL, &req);
    ok (sent + req.nwant == 1000, "each of a thousand urgent requests is sent once");
    ok (relay.waiting == NULL && relay.nwaiting == 0, "after the last of a thousand urgent requests no request waits");
    add (r, 3000000, 1, 7, 0);
    ok (r->due_us == 3000000, "a later urgent request that is alone is sent immediately");
    add (r, 3000001, 2, 8, 0);
    lease_relay_drop_old (r, 3000002, 3000001);
    ok (lease_relay_flush (r, 3000002, NULL, &req) != 0 && req.nwant == 1 && req.want[0].rank == 8,
        "a dropped request is not sent, and a later request is");
    add (r, 3000003, 3, 9, 0);
    lease_relay_drop_old (r, 3000004, UINT64_MAX);
    ok (relay.waiting == NULL && relay.nwaiting == 0 && r->due_us == UINT64_MAX,
        "a dropped request does not count as waiting");
    lease_relay_fini (r);
    lease_relay_init (r, 1000, reply_cb, &heard);
    ok (lease_relay_pace_us (r) == 1000000 / 240, "with shorter leases messages are sent at shorter intervals");
    lease_relay_fini (r);
}

static void test_returns (void)
{
    struct heard heard = { 0 };
    struct lease_relay relay, *r = new_relay (&relay, &heard);
    struct want wants[] = { want (4, 17), want (6, 40000) }, own = want (5, 18);
    struct lease_request req = { .want = wants, .nwant = 2, .has_epoch = true, .epoch_ms = 77 };

    wants[0].size = own.size = 0;
    wants[0].left_ms = 30;
    lease_relay_add (r, 100, 1000, (void *)1, &req);
    ok (r->due_us == 100 + LEASE * 1000 / 12, "a return is not urgent, and waits for other requests");
    ok (lease_relay_add_return (r, &own) == 0 && lease_relay_flush (r, 200, NULL, &req) != 0 && req.nwant == 3
            && req.want[0].rank == 4 && req.want[0].size == 0 && req.want[0].end_ms == 17 && req.want[0].left_ms == 30
            && req.want[1].rank == 5 && req.want[1].end_ms == 18 && req.want[2].rank == 6
            && req.want[2].size == BOX_WHOLE,
        "returns are sent before requests, in the same message");
    ok (req.has_epoch && req.epoch_ms == 77, "an epoch that a child reported is sent with requests");
    ok (lease_relay_flush (r, 300, NULL, &req) == 0, "a return is sent once");
    lease_relay_drop_old (r, 400, UINT64_MAX);
    ok (heard.answers[1] == 1, "a request whose answer does not arrive in time is answered without a grant");
    req = (struct lease_request){ .want = wants, .nwant = 1 };
    lease_relay_add (r, 500, 1000, (void *)2, &req);
    uint32_t tag = lease_relay_flush (r, 600, NULL, &req);
    ok (tag != 0 && req.nwant == 1 && req.want[0].size == 0, "a return that is alone is sent, too");
    lease_relay_answered (r, 700, tag, NULL, 0);
    ok (heard.answers[2] == 1 && heard.grants[2] == 0, "the message of a return is answered without a grant");
    lease_relay_fini (r);
}

/* The answer contains the arrival of the request, from which a jump of the clock must be left out. */
static void test_jump (void)
{
    struct heard heard = { .answers = { 0 } };
    struct lease_relay r;

    new_relay (&r, &heard);
    add (&r, 1000, 1, 1, 0);
    add (&r, 7000, 2, 2, 0);
    lease_relay_jumped (&r, 508000, 500000);
    ok (lease_relay_oldest (&r) == 501000, "if CLOCK_BOOTTIME jumped, the arrival of a request is moved by the jump");
    lease_relay_drop_old (&r, 508000, UINT64_MAX - 1);
    ok (heard.received_us[1] == 501000 && heard.received_us[2] == 507000,
        "the answer to a request contains the moved time of its arrival");
    add (&r, 600000, 3, 3, 0);
    lease_relay_jumped (&r, 601000, 500000);
    lease_relay_drop_old (&r, 601000, UINT64_MAX - 1);
    ok (heard.received_us[3] == 601000, "the moved time of an arrival is never after now");
    lease_relay_fini (&r);
}

static void test_limit (void)
{
    struct heard heard = { 0 };
    struct lease_relay relay, *r = new_relay (&relay, &heard);
    struct want *w = calloc (LEASE_RELAY_MAX_WANTS, sizeof (*w));
    struct lease_request req = { .want = w, .nwant = LEASE_RELAY_MAX_WANTS };

    for (size_t i = 0; w && i < LEASE_RELAY_MAX_WANTS; i++)
        w[i].size = BOX_WHOLE;

    ok (lease_relay_add (r, 0, 0, (void *)1, &req) == 0 && add (r, 0, 2, 1, 0) < 0,
        "the number of waiting requests is limited");
    lease_relay_drop_old (r, 1, 1);
    ok (heard.answers[1] == 1 && heard.answers[2] == 0 && add (r, 0, 2, 1, 0) == 0,
        "a request that was refused because too many wait gets no answer");
    for (size_t i = 0; w && i < LEASE_RELAY_MAX_WANTS; i++)
        w[i].size = 0;
    lease_relay_drop_old (r, 2, UINT64_MAX);
    ok (lease_relay_add (r, 0, 0, (void *)3, &req) == 0 && lease_relay_add (r, 0, 0, (void *)4, &req) < 0,
        "the number of waiting returns is limited");
    lease_relay_fini (r);
    free (w);
}

/* Requests, flushes, answers and losses in any order. */
static void test_random (void)
{
    uint64_t seed = 1;
    int wrong = 0;

    for (int run = 0; run < 2000; run++) {
        struct heard heard = { 0 };
        struct lease_relay relay, *r = new_relay (&relay, &heard);
        struct grant g[NREQ];
        uint32_t tags[NREQ] = { 0 };
        size_t ngrant[NREQ] = { 0 }, from[NREQ] = { 0 }, ntags = 0, sent = 0;

        for (size_t i = 1; i < NREQ; i++) {
            seed = seed * UINT64_C (6364136223846793005) + 1442695040888963407;
            struct lease_request req;

            add (r, i, i, (uint32_t)i, 0);
            if ((seed >> 33) % 3 == 0 && (tags[ntags] = lease_relay_flush (r, i, NULL, &req))) {
                from[ntags] = sent;
                for (size_t k = 0; k < req.nwant; k++)
                    g[sent + ngrant[ntags]++] = grant (&req.want[k]);
                sent += ngrant[ntags++];
            }
            if ((seed >> 40) % 3 == 0 && ntags > 0) {
                size_t k = (seed >> 45) % ntags;
                lease_relay_answered (r, i, tags[k], &g[from[k]], (seed >> 50) % 4 ? ngrant[k] : 0);
            }
        }
        lease_relay_drop_old (r, NREQ, UINT64_MAX);
        for (size_t i = 1; i < NREQ; i++)
            if (heard.answers[i] != 1 || heard.grants[i] > 1 || (heard.grants[i] == 1 && heard.sum[i] != i))
                wrong++;
        lease_relay_fini (r);
    }
    ok (wrong == 0, "in 2000 random histories each request is answered once, with its own grants or none");
}

int main (void)
{
    test_combine ();
    test_pace ();
    test_returns ();
    test_jump ();
    test_limit ();
    test_random ();
    return done_testing ();
}
