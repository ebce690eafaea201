/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* alloc_test.c - fail the 1st, 2nd, 3rd ... allocation of each call until the call succeeds: a failed call changes
 * nothing
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test/tap.h"
#include "modules/compressor/order/orderer.h"
#include "modules/compressor/order/range_relay.h"
#include "test/failing_alloc.h"

#define SESSIONS 12
#define ROUNDS 40
#define STORED_EACH 5 /* rounds between two stores */

static const struct orderer_limits limits = { .sessions = 100, .clusters = 1000, .window = 4 };

/* The visible state of an orderer. */
struct view {
    int64_t seq;
    uint64_t digest;
    void *form; /* owned by the caller */
    size_t size;
};

static struct view view_of (const struct orderer *o)
{
    struct view v = { .seq = orderer_seq (o) };

    if (!(v.form = orderer_save (o, &v.size)) || orderer_digest (o, v.seq, &v.digest) < 0)
        bail_out ("cannot read the state of an orderer");
    return v;
}

static bool unchanged (const struct orderer *o, const struct view *before)
{
    struct view now = view_of (o);
    bool same = now.seq == before->seq && now.digest == before->digest && now.size == before->size
                && memcmp (now.form, before->form, now.size) == 0;

    free (now.form);
    return same;
}

/* A call; 'n' is its number. Returns 0, or -1 with errno set. */
typedef int (*call_f) (struct orderer *o, int n);

static int call_add (struct orderer *o, int n)
{
    struct idcomp_range range = { .has_ids = true, .count = 3, .cluster_size = 1 + n % 4 };
    idt_error_t error;

    snprintf (range.session, sizeof (range.session), "%08x-8888-4888-b188-888888888888", n * 5 % SESSIONS);
    range.first = idcomp_expected (orderer_ids (o), range.session);
    return orderer_add (o, &range, &error) == 1 ? 0 : -1;
}

static int call_save (struct orderer *o, int n)
{
    size_t size;
    void *form = orderer_save (o, &size);

    free (form);
    return form ? 0 : -1;
}

static int call_save_stored (struct orderer *o, int n)
{
    size_t size;
    void *form = orderer_save_stored (o, &size);

    free (form);
    return form ? 0 : -1;
}

static int call_load (struct orderer *o, int n)
{
    size_t size;
    void *form = orderer_save (o, &size);
    struct orderer *p = form ? orderer_create (&limits, form, size, orderer_seq (o)) : NULL;
    int rc = p ? 0 : -1;

    orderer_destroy (p);
    free (form);
    return rc;
}

static int call_create (struct orderer *o, int n)
{
    struct orderer *p = orderer_create (&limits, NULL, 0, 0);

    orderer_destroy (p);
    return p ? 0 : -1;
}

static void reply_cb (void *arg, size_t index, const struct range_relay_result *result)
{
    ++*(int *)arg;
}

/* An element that the relay accepted must be answered once, and a refused one never. */
static int call_relay (struct orderer *o, int n)
{
    int answers = 0;
    struct range_relay *r = range_relay_create (10);

    if (!r)
        return -1;
    int rc = range_relay_add_new (r, (struct range_relay_element){ .reply = reply_cb,
                                                                   .arg = &answers,
                                                                   .text = strdup ("{}"),
                                                                   .nranges = 1,
                                                                   .deadline_ms = RANGE_RELAY_NEVER })
                 ? 0
                 : -1;
    range_relay_destroy (r);
    if (answers != (rc == 0))
        bail_out ("an element is lost, or answered twice");
    return rc;
}

static const struct {
    const char *name;
    call_f call;
} calls[] = {
    { "add", call_add },   { "save", call_save },     { "save the stored form", call_save_stored },
    { "load", call_load }, { "create", call_create }, { "relay", call_relay },
};

/* Repeat the call with failing allocations until it succeeds. */
static bool survives (struct orderer *o, call_f call, int n)
{
    struct view before = view_of (o);
    bool good = true, done = false;

    for (int allowed = 0; !done && good; allowed++) {
        countdown = allowed;
        done = call (o, n) == 0;
        int error = errno;
        countdown = -1;
        good = done || (error == ENOMEM && unchanged (o, &before));
    }
    free (before.form);
    return good;
}

static void check_call (const char *name, call_f call)
{
    struct orderer *o = orderer_create (&limits, NULL, 0, 0);
    bool good = true;

    failures = 0;
    for (int n = 0; n < ROUNDS && good; n++) {
        if (n % STORED_EACH == 0)
            orderer_stored (o);
        good = survives (o, call, n) && (call == call_add || call_add (o, n) == 0);
    }
    ok (good && failures >= ROUNDS, "%s: each of %d failed allocations gives ENOMEM and changes nothing", name,
        failures);
    orderer_destroy (o);
}

int main (void)
{
    for (size_t i = 0; i < sizeof (calls) / sizeof (calls[0]); i++)
        check_call (calls[i].name, calls[i].call);
    return done_testing ();
}
