/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pending_test.c - the table of unanswered requests against a plain list that does the same slowly */
#include <errno.h>
#include <string.h>

#include "broker/pending.h"
#include "libutil/tap.h"

static idt_msg_t *make_request (unsigned asker, uint32_t tag, int flags)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);
    char uuid[IDT_MSG_UUID_LEN + 1];

    snprintf (uuid, sizeof (uuid), "%08x-0000-4000-8000-000000000000", asker);
    idt_msg_set_topic (msg, "a.b");
    idt_msg_set_matchtag (msg, tag);
    if (flags)
        idt_msg_set_flag (msg, flags);
    idt_msg_route_clear (msg);
    idt_msg_route_push (msg, uuid);
    idt_msg_route_push (msg, "ffffffff-0000-4000-8000-000000000000"); /* of a child that all share */
    return msg;
}

static int add (struct pending *p, unsigned asker, uint32_t tag, int flags, const void *to)
{
    idt_msg_t *msg = make_request (asker, tag, flags);
    int rc = pending_add (p, msg, to);

    idt_msg_unref (msg);
    return rc;
}

static bool answered (struct pending *p, unsigned asker, uint32_t tag, int flags, int errnum, const void *from)
{
    idt_msg_t *request = make_request (asker, tag, flags);
    idt_msg_t *response = idt_msg_respond (request, errnum);
    bool known = pending_answered (p, response, from);

    idt_msg_unref (request);
    idt_msg_unref (response);
    return known;
}

static void test_rules (void)
{
    struct pending *p = pending_create (3);
    int a, b;

    ok (!answered (p, 1, 1, 0, 0, &a), "an empty table knows no request");
    add (p, 1, 1, 0, &a);
    ok (!answered (p, 2, 1, 0, 0, &a) && !answered (p, 1, 2, 0, 0, &a) && !answered (p, 1, 1, 0, 0, &b),
        "another asker, matchtag, or answerer is another request");
    ok (answered (p, 1, 1, 0, 0, &a) && !answered (p, 1, 1, 0, 0, &a), "a request is answered once");
    add (p, 1, 1, IDT_MSGFLAG_STREAMING, &a);
    ok (answered (p, 1, 1, IDT_MSGFLAG_STREAMING, 0, &a) && answered (p, 1, 1, IDT_MSGFLAG_STREAMING, 61, &a)
            && !answered (p, 1, 1, IDT_MSGFLAG_STREAMING, 0, &a),
        "a streaming one until an error ends it");
    for (uint32_t tag = 1; tag <= 3; tag++)
        add (p, 1, tag, 0, &a);
    ok (add (p, 1, 4, 0, &a) < 0 && errno == ENOBUFS && pending_count (p) == 3, "a full table is ENOBUFS");
    pending_destroy (p);
    pending_destroy (NULL);
    ok (true, "a table is destroyed with what is in it");
}

/* --- a random history ------------------------------------------------------------------------------------- */

#define ASKERS 7
#define TAGS 500
#define TARGETS 4
#define STEPS 60000

struct model {
    int open[ASKERS][TAGS][TARGETS]; /* how often the request is in the table */
    size_t count;
    unsigned seed;
    int pick; /* asker or target that pending_take takes */
    size_t taken;
};

static char targets[TARGETS];

static int draw (struct model *m, int n)
{
    return rand_r (&m->seed) % n;
}

static bool goes_to (const idt_msg_t *request, const void *to, void *arg)
{
    struct model *m = arg;

    return to == &targets[m->pick];
}

static void count_taken (const idt_msg_t *request, const void *to, void *arg)
{
    struct model *m = arg;
    unsigned asker;

    sscanf (idt_msg_route_oldest (request), "%x", &asker);
    m->open[asker][idt_msg_matchtag (request)][(const char *)to - targets]--;
    m->taken++;
}

static bool step (struct pending *p, struct model *m)
{
    int asker = draw (m, ASKERS), tag = draw (m, TAGS), to = draw (m, TARGETS), what = draw (m, 1000);
    int *open = &m->open[asker][tag][to];

    if (what == 0) {
        m->pick = to;
        m->taken = 0;
        pending_take (p, goes_to, count_taken, m);
        m->count -= m->taken;
        for (int i = 0; i < ASKERS; i++)
            for (int j = 0; j < TAGS; j++)
                if (m->open[i][j][to] != 0)
                    return false;
    } else if (what < 600) {
        if (add (p, asker, tag, 0, &targets[to]) < 0)
            return false;
        ++*open;
        m->count++;
    } else {
        bool known = answered (p, asker, tag, 0, 0, &targets[to]);

        if (known != (*open > 0))
            return false;
        *open -= known;
        m->count -= known;
    }
    return pending_count (p) == m->count;
}

static void test_history (unsigned seed)
{
    struct pending *p = pending_create (1000000);
    struct model *m = calloc (1, sizeof (*m));
    int n = 0;
    size_t most = 0;

    m->seed = seed;
    while (n < STEPS && step (p, m)) {
        n++;
        most = m->count > most ? m->count : most;
    }
    ok (n == STEPS && most > 256, "history %u: the table does what a list does (%d steps, up to %zu entries)", seed, n,
        most);
    free (m);
    pending_destroy (p);
}

/* Entries that a callback adds are not taken in the same pass. */
static struct pending *reentered;

static bool all (const idt_msg_t *request, const void *to, void *arg)
{
    return true;
}

static void add_again (const idt_msg_t *request, const void *to, void *arg)
{
    pending_add (reentered, request, to);
    ++*(int *)arg;
}

static void test_reentry (void)
{
    int n = 0;

    reentered = pending_create (100);
    for (uint32_t tag = 1; tag <= 10; tag++)
        add (reentered, 1, tag, 0, &n);
    pending_take (reentered, all, add_again, &n);
    ok (n == 10 && pending_count (reentered) == 10, "a callback may add to the table; that stays in it");
    pending_destroy (reentered);
}

int main (void)
{
    test_rules ();
    for (unsigned seed = 1; seed <= 3; seed++)
        test_history (seed);
    test_reentry ();
    return done_testing ();
}
