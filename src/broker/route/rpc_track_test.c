/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rpc_track_test.c - the table of unanswered requests, compared with a plain list that gives the same results slowly */
#include <errno.h>
#include <string.h>

#include "broker/route/rpc_track.h"
#include "test/tap.h"

static idt_msg_t *make_request (unsigned requester, uint32_t tag, int flags)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);
    char uuid[IDT_MSG_UUID_LEN + 1];

    snprintf (uuid, sizeof (uuid), "%08x-0000-4000-8000-000000000000", requester);
    idt_msg_set_topic (msg, "a.b");
    idt_msg_set_matchtag (msg, tag);
    if (flags)
        idt_msg_set_flag (msg, flags);
    idt_msg_route_clear (msg);
    idt_msg_route_push (msg, uuid);
    idt_msg_route_push (msg, "ffffffff-0000-4000-8000-000000000000"); /* route of 'child' */
    return msg;
}

static struct rpc_track_party child; /* party through which all requests come */

static int add (struct rpc_track *p, unsigned requester, uint32_t tag, int flags, struct rpc_track_party *to)
{
    idt_msg_t *msg = make_request (requester, tag, flags);
    int rc = rpc_track_add (p, msg, &child, to);

    idt_msg_unref (msg);
    return rc;
}

static bool answered (struct rpc_track *p, unsigned requester, uint32_t tag, int flags, int errnum,
                      const struct rpc_track_party *from)
{
    idt_msg_t *request = make_request (requester, tag, flags);
    idt_msg_t *response = idt_msg_respond (request, errnum);
    bool known = rpc_track_answered (p, response, from);

    idt_msg_unref (request);
    idt_msg_unref (response);
    return known;
}

static void party_init (struct rpc_track_party *party)
{
    rpc_track_party_init (party, NULL);
}

static void test_rules (void)
{
    struct rpc_track *p = rpc_track_create (3);
    struct rpc_track_party a, b;
    idt_msg_t *proxied = make_request (1, 1, 0);

    party_init (&a);
    party_init (&b);
    ok (!answered (p, 1, 1, 0, 0, &a), "an empty table knows no request");
    add (p, 1, 1, 0, &a);
    ok (!answered (p, 2, 1, 0, 0, &a) && !answered (p, 1, 2, 0, 0, &a) && !answered (p, 1, 1, 0, 0, &b),
        "a response from another responder, or with another requester or matchtag, belongs to another request");
    idt_msg_route_push (proxied, "eeeeeeee-0000-4000-8000-000000000000");
    ok (!rpc_track_forget (p, proxied, &a), "a request whose route has a further hop is another request");
    ok (answered (p, 1, 1, 0, 0, &a) && !answered (p, 1, 1, 0, 0, &a), "a request is answered once");
    add (p, 1, 1, IDT_MSGFLAG_STREAMING, &a);
    ok (answered (p, 1, 1, IDT_MSGFLAG_STREAMING, 0, &a) && answered (p, 1, 1, IDT_MSGFLAG_STREAMING, 61, &a)
            && !answered (p, 1, 1, IDT_MSGFLAG_STREAMING, 0, &a),
        "a streaming request is answered until a response with an error ends it");
    add (p, 1, 1, IDT_MSGFLAG_STREAMING, &a);
    ok (answered (p, 1, 1, 0, 0, &a) && rpc_track_count (p) == 0,
        "a streaming request is answered until a response without STREAMING ends it");
    add (p, 1, 1, 0, &a);
    ok (answered (p, 1, 1, IDT_MSGFLAG_STREAMING, 0, &a) && rpc_track_count (p) == 0,
        "a response with STREAMING to a request without STREAMING ends that request");
    add (p, 1, 1, 0, &a);
    add (p, 1, 2, 0, &a);
    ok (add (p, 1, 3, 0, &a) < 0 && errno == EXFULL && rpc_track_count (p) == 2,
        "a requester that already has entries does not get the last place: EXFULL");
    ok (add (p, 2, 1, 0, &a) == 0, "a requester that has no entry gets the last place");
    idt_msg_unref (proxied);
    rpc_track_destroy (p);
    rpc_track_destroy (NULL);
}

/* When a peer ends, the work is proportional to the number of its own entries.  The test counts the work, and does not
 * measure time.
 */
static void test_ends (void)
{
    struct rpc_track *p = rpc_track_create (100000);
    struct rpc_track_party a, b;
    idt_msg_t *disconnect = make_request (1, 0, IDT_MSGFLAG_NORESPONSE);
    int wrong = 0;

    party_init (&a);
    party_init (&b);
    idt_msg_set_topic (disconnect, "a.disconnect");
    for (uint32_t tag = 1; tag <= 20000; tag++)
        wrong += add (p, 1 + tag % 2, tag, 0, &a) < 0;
    ok (wrong == 0 && rpc_track_buckets (p) >= 16384, "the table of requests grows to 20,000 entries");
    rpc_track_disconnect (p, disconnect, &b);
    ok (rpc_track_count (p) == 20000, "a disconnect that arrived over another route ends no request");
    idt_msg_set_topic (disconnect, "aa.disconnect");
    rpc_track_disconnect (p, disconnect, &child);
    ok (rpc_track_count (p) == 20000, "a disconnect for another service ends no request");
    idt_msg_set_topic (disconnect, "a.disconnect");
    rpc_track_disconnect (p, disconnect, &child);
    ok (rpc_track_count (p) == 10000 && answered (p, 2, 1, 0, 0, &a),
        "a disconnect ends the requests of its sender for that service");
    rpc_track_take (p, &b.owes, NULL, NULL);
    ok (rpc_track_count (p) == 9999, "the end of a party that has no request to answer ends no request");
    rpc_track_take (p, &child.asked, NULL, NULL);
    ok (rpc_track_count (p) == 0 && rpc_track_buckets (p) <= 1024,
        "the table of requests shrinks when its requests have ended");
    idt_msg_unref (disconnect);
    rpc_track_destroy (p);
}

/* --- a random history ------------------------------------------------------------------------------------- */

#define REQUESTERS 7
#define TAGS 500
#define TARGETS 4
#define STEPS 60000

struct model {
    int open[REQUESTERS][TAGS][TARGETS]; /* how often this request is in the table */
    size_t count;
    unsigned seed;
    size_t taken;
};

static struct rpc_track_party targets[TARGETS];

static int draw (struct model *m, int n)
{
    return rand_r (&m->seed) % n;
}

static void count_taken (const idt_msg_t *request, struct rpc_track_party *to, void *arg)
{
    struct model *m = arg;
    unsigned requester;

    sscanf (idt_msg_route_oldest (request), "%x", &requester);
    m->open[requester][idt_msg_matchtag (request)][to - targets]--;
    m->taken++;
}

static bool step (struct rpc_track *p, struct model *m)
{
    int requester = draw (m, REQUESTERS), tag = draw (m, TAGS), to = draw (m, TARGETS), what = draw (m, 1000);
    int *open = &m->open[requester][tag][to];

    if (what == 0) {
        m->taken = 0;
        rpc_track_take (p, &targets[to].owes, count_taken, m);
        m->count -= m->taken;
        for (int i = 0; i < REQUESTERS; i++)
            for (int j = 0; j < TAGS; j++)
                if (m->open[i][j][to] != 0)
                    return false;
    }
    else if (what < 600) {
        if (add (p, requester, tag, 0, &targets[to]) < 0)
            return false;
        ++*open;
        m->count++;
    }
    else {
        bool known = answered (p, requester, tag, 0, 0, &targets[to]);

        if (known != (*open > 0))
            return false;
        *open -= known;
        m->count -= known;
    }
    return rpc_track_count (p) == m->count;
}

static void test_history (unsigned seed)
{
    struct rpc_track *p = rpc_track_create (1000000);
    struct model *m = calloc (1, sizeof (*m));
    int n = 0;
    size_t most = 0;

    m->seed = seed;
    party_init (&child);
    for (int i = 0; i < TARGETS; i++)
        party_init (&targets[i]);
    while (n < STEPS && step (p, m)) {
        n++;
        most = m->count > most ? m->count : most;
    }
    ok (n == STEPS && most > 256, "history %u: the table agrees with a plain list (%d steps, up to %zu entries)", seed,
        n, most);
    free (m);
    rpc_track_destroy (p);
}

/* A callback of rpc_track_take () adds entries.  The same call does not take these. */
static struct rpc_track *reentered;

static void add_again (const idt_msg_t *request, struct rpc_track_party *to, void *arg)
{
    rpc_track_add (reentered, request, &child, to);
    ++*(int *)arg;
}

static void test_reentry (void)
{
    struct rpc_track_party a;
    int n = 0;

    party_init (&a);
    party_init (&child);
    reentered = rpc_track_create (100);
    for (uint32_t tag = 1; tag <= 10; tag++)
        add (reentered, 1, tag, 0, &a);
    rpc_track_take (reentered, &a.owes, add_again, &n);
    ok (n == 10 && rpc_track_count (reentered) == 10,
        "requests that a callback adds while others end stay in the table");
    rpc_track_destroy (reentered);
}

int main (void)
{
    party_init (&child);
    test_rules ();
    party_init (&child);
    test_ends ();
    for (unsigned seed = 1; seed <= 3; seed++)
        test_history (seed);
    test_reentry ();
    return done_testing ();
}
