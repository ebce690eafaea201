/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* range_relay_test.c - elements are sent up together, in order, and each is answered once */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test/tap.h"
#include "modules/compressor/order/range_relay.h"

#define MAX 16

/* The answers to elements 1 ... MAX - 1. */
struct answers {
    int count[MAX];
    int errnum[MAX];
    int64_t seq[MAX];
    struct range_relay *add_to; /* the reply function adds element 9 to this relay */
};

static void reply_cb (void *arg, size_t i, const struct range_relay_result *result);

static int add_text (struct range_relay *r, struct answers *a, size_t i, char *text, size_t nranges,
                     uint64_t deadline_ms)
{
    struct range_relay_element element = {
        .reply = reply_cb, .arg = a, .index = i, .text = text, .nranges = nranges, .deadline_ms = deadline_ms
    };

    return range_relay_add_new (r, element) ? 0 : -1;
}

static int add (struct range_relay *r, struct answers *a, size_t i, size_t nranges, uint64_t deadline_ms)
{
    return add_text (r, a, i, strdup ("{}"), nranges, deadline_ms);
}

static void reply_cb (void *arg, size_t i, const struct range_relay_result *result)
{
    struct answers *a = arg;

    a->count[i]++;
    a->errnum[i] = result->errnum;
    a->seq[i] = result->seq;
    if (a->add_to) {
        add (a->add_to, a, 9, 1, RANGE_RELAY_NEVER);
        a->add_to = NULL;
    }
}

static struct range_relay *create (size_t limit)
{
    struct range_relay *r = range_relay_create (limit);

    if (!r)
        bail_out ("cannot create a relay");
    return r;
}

/* The numbers of the elements that are sent now, as digits. */
static const char *next (struct range_relay *r)
{
    static char buf[MAX];
    size_t n = 0;

    for (const struct range_relay_element *e = range_relay_next (r); e; e = range_relay_following (e))
        buf[n++] = '0' + e->index;
    buf[n] = '\0';
    return buf;
}

static void check_combining (void)
{
    struct answers a = { 0 };
    struct range_relay *r = create (100);
    const struct range_relay_result results[] = { { .seq = 5 }, { .errnum = EINVAL, .text = "no" } };

    ok (strcmp (next (r), "") == 0, "a relay without ranges sends nothing");
    add (r, &a, 1, 1, RANGE_RELAY_NEVER);
    ok (strcmp (next (r), "1") == 0, "a single range is sent immediately");
    add (r, &a, 2, 1, RANGE_RELAY_NEVER);
    add (r, &a, 3, 1, RANGE_RELAY_NEVER);
    ok (strcmp (next (r), "") == 0, "further ranges wait while a request is under way");
    range_relay_answered (r, results);
    ok (a.count[1] == 1 && a.seq[1] == 5 && a.errnum[1] == 0, "the sender of a range gets a response");
    ok (strcmp (next (r), "23") == 0 && range_relay_under_way (r) == 2, "the waiting ranges are sent in one request");
    range_relay_failed (r);
    add (r, &a, 4, 1, RANGE_RELAY_NEVER);
    ok (a.count[2] + a.count[3] == 0 && strcmp (next (r), "234") == 0,
        "ranges of a failed request are sent again, before later ones");
    range_relay_failed (r);
    next (r);
    a.add_to = r;
    range_relay_answered (r, (struct range_relay_result[]){ results[0], results[1], results[0] });
    ok (a.errnum[2] == 0 && a.errnum[3] == EINVAL && a.errnum[4] == 0,
        "the sender of each range gets its own response");
    ok (strcmp (next (r), "9") == 0, "a reply function may add a range");
    ok (range_relay_stats (r).elements == 1 && range_relay_stats (r).ranges == 1,
        "a relay counts the ranges that it holds");
    range_relay_destroy (r);
    ok (a.count[9] == 1 && a.errnum[9] == ECANCELED, "the sender of a range that is left at the end gets a response");
}

static void check_limits (void)
{
    struct answers a = { 0 };
    struct range_relay *r = create (10);

    ok (add (r, &a, 1, 11, RANGE_RELAY_NEVER) == 0,
        "a range larger than the limit is accepted if the relay holds no other");
    ok (add (r, &a, 2, 1, RANGE_RELAY_NEVER) < 0 && errno == EAGAIN, "a range above the limit of the relay is refused");
    ok (add_text (r, &a, 3, NULL, 1, RANGE_RELAY_NEVER) < 0 && errno == ENOMEM,
        "a range whose text could not be allocated is refused with ENOMEM");
    range_relay_destroy (r);
    ok (a.count[1] == 1 && a.count[2] == 0, "the reply function is not called for a refused range");

    r = create (100000);
    add (r, &a, 1, RANGE_RELAY_BATCH_RANGES, RANGE_RELAY_NEVER);
    add (r, &a, 2, 1, RANGE_RELAY_NEVER);
    ok (strcmp (next (r), "1") == 0, "a request has at most RANGE_RELAY_BATCH_RANGES ranges");
    range_relay_answered (r, &(struct range_relay_result){ .seq = 1 });
    next (r);
    range_relay_answered (r, &(struct range_relay_result){ .seq = 1 });
    char *big = malloc (RANGE_RELAY_BATCH_BYTES + 1);
    memset (big, ' ', RANGE_RELAY_BATCH_BYTES);
    big[RANGE_RELAY_BATCH_BYTES] = '\0';
    add_text (r, &a, 3, big, 1, RANGE_RELAY_NEVER);
    add (r, &a, 4, 1, RANGE_RELAY_NEVER);
    ok (strcmp (next (r), "3") == 0, "a request has at most RANGE_RELAY_BATCH_BYTES bytes");
    range_relay_destroy (r);
    ok (a.count[3] == 1 && a.count[4] == 1, "at the end the senders of all ranges get a response");

    r = create (100);
    struct range_relay_element *e = range_relay_add_new (
        r, (struct range_relay_element){ .reply = reply_cb, .arg = &a, .index = 5, .text = strdup ("{}") });
    e->arg = NULL;
    range_relay_destroy (r);
    ok (a.count[5] == 0, "the reply function is not called for a range whose arg was set to NULL");
}

static void check_deadlines (void)
{
    struct answers a = { 0 };
    struct range_relay *r = create (100);

    add (r, &a, 1, 1, 1000);
    next (r);
    add (r, &a, 2, 1, 1000);
    add (r, &a, 3, 1, 2000);
    add (r, &a, 4, 1, RANGE_RELAY_NEVER);
    range_relay_expire (r, 999);
    ok (a.count[2] == 0, "a range waits until its deadline");
    range_relay_expire (r, 1000);
    ok (a.count[2] == 1 && a.errnum[2] == EHOSTUNREACH && a.count[3] == 0, "a range fails at its deadline");
    ok (a.count[1] == 0, "a range in a request that is under way does not fail at its deadline");
    range_relay_failed (r);
    range_relay_expire (r, UINT64_MAX - 1);
    ok (a.count[1] == 1 && a.count[3] == 1 && a.count[4] == 0, "a range without a deadline does not fail");
    range_relay_destroy (r);
    errno = EINTR;
    range_relay_destroy (NULL);
    ok (errno == EINTR, "range_relay_destroy (NULL) does nothing and keeps errno");
}

int main (void)
{
    check_combining ();
    check_limits ();
    check_deadlines ();
    return done_testing ();
}
