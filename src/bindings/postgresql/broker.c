/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* broker.c - ids and the epoch by message, from a backend
 *
 * What waits does so by slices, and asks between them whether the query was cancelled: an error that is thrown there
 * leaves what is under way in 'session', where the next call finds it.
 */
#include "broker.h"

#include <errno.h>

#include "miscadmin.h"

#include "library.h"

#define SLICE_MS 100      /* of waiting for an answer */
#define OPEN_FIRST_MS 250 /* for a connection, and ever longer */
#define OPEN_MOST_MS 1000
#define PAUSE_MS 20 /* between two attempts */

static struct {
    idt_t *h;
    idt_future_t *f; /* what is under way */
    char instance[40];
} session;

static const struct library *library (void)
{
    const char *why = NULL;
    const struct library *lib = library_load (&why);

    if (!lib)
        complain (ELIBACC, psprintf ("no page of ids is at hand, and libidtree can't be loaded: %s", why));
    return lib;
}

static void drop_future (const struct library *lib)
{
    lib->future_destroy (session.f);
    session.f = NULL;
}

void broker_leave (void)
{
    if (!session.h)
        return;
    const struct library *lib = library ();
    drop_future (lib);
    lib->close (session.h);
    session.h = NULL;
}

/* --- waiting ----------------------------------------------------------------------------------- */

/* Whether an error is of a broker that will be back. */
static bool may_pass (int errnum, bool patient)
{
    switch (errnum) {
    case EAGAIN:
    case ETIMEDOUT:
    case ECONNRESET:
        return true;
    case ENOENT:
    case ECONNREFUSED:
    case EHOSTDOWN:
    case EPIPE:
        return patient;
    default:
        return false;
    }
}

/* Wait for session.f until it has an answer.  Returns 0, or -1 with errno set. */
static int await (const struct library *lib, int64 end_ms)
{
    if (!session.f)
        return -1;
    for (;;) {
        CHECK_FOR_INTERRUPTS ();
        if (lib->future_wait (session.f, SLICE_MS) == 0 || lib->future_is_ready (session.f))
            break;
        if ((errno != ETIMEDOUT && errno != EINTR) || now_ms () >= end_ms)
            return -1;
    }
    errno = lib->future_errnum (session.f);
    return errno == 0 ? 0 : -1;
}

static char *explain (const struct library *lib, int errnum)
{
    const char *lost = lib->lost_error (session.h);

    if (session.f && lib->future_is_ready (session.f))
        return psprintf ("%s: %s", settings_place (), lib->future_error (session.f));
    if (errnum == ETIMEDOUT)
        return psprintf ("%s: %s within %d ms", settings_place (), lost ? lost : "the broker did not answer",
                         settings.timeout_ms);
    return psprintf ("%s: %s", settings_place (), lost ? lost : strerror (errnum));
}

/* After an attempt that failed: wait for the next one, or end the query. */
static void try_again (const struct library *lib, int errnum, int64 end_ms, bool patient)
{
    char *sentence = explain (lib, errnum);

    drop_future (lib);
    if (!may_pass (errnum, patient) || now_ms () >= end_ms)
        complain (errnum, sentence);
    pfree (sentence);
    pause_ms (PAUSE_MS);
}

/* --- connection --------------------------------------------------------------------------------- */

static void connect_to (const struct library *lib, int64 end_ms, bool patient)
{
    int64 slice_ms = OPEN_FIRST_MS;
    idt_error_t error = { "" };

    while (!session.h) {
        CHECK_FOR_INTERRUPTS ();
        int64 left_ms = Max (end_ms - now_ms (), 1);
        session.h = lib->open_within (settings_uri (), IDT_O_NOSHM, (double)Min (slice_ms, left_ms), &error);
        if (session.h)
            return;
        int errnum = errno;
        if (!may_pass (errnum, patient) || now_ms () >= end_ms)
            complain (errnum, error.text);
        slice_ms = Min (slice_ms * 2, OPEN_MOST_MS);
        pause_ms (PAUSE_MS);
    }
}

/* A handle that has its connection anew refuses another instance by itself. */
static void learn_instance (const struct library *lib, int64 end_ms)
{
    const char *uuid = "";

    session.f = lib->rpc (session.h, "attr.get", "{\"name\":\"instance.uuid\"}", IDT_NODEID_ANY, 0);
    if ((await (lib, end_ms) < 0 || lib->rpc_get_unpack (session.f, "{s:s}", "value", &uuid) < 0) && errno != ENOENT) {
        int errnum = errno;
        char *sentence = explain (lib, errnum);
        broker_leave ();
        complain (errnum, sentence);
    }
    strlcpy (session.instance, uuid, sizeof (session.instance));
    drop_future (lib);
}

static const struct library *enter (int64 end_ms, bool patient)
{
    const struct library *lib = library ();

    if (session.h && session.f && !*session.instance)
        broker_leave (); /* a query was cancelled before it knew the instance */
    drop_future (lib);
    if (!session.h) {
        session.instance[0] = '\0';
        connect_to (lib, end_ms, patient);
        learn_instance (lib, end_ms);
    }
    return lib;
}

const char *broker_instance (void)
{
    return session.instance;
}

/* --- what is asked for --------------------------------------------------------------------------- */

void broker_ids (uint32 n, fluid_t *ids, bool patient)
{
    int64 end_ms = now_ms () + settings.timeout_ms;
    const struct library *lib = enter (end_ms, patient);

    for (;;) {
        session.f = lib->generate_async (session.h, n);
        if (await (lib, end_ms) == 0 && lib->generate_get (session.f, n, ids) == 0)
            break;
        try_again (lib, errno, end_ms, patient);
    }
    drop_future (lib);
}

char *broker_epoch (bool patient)
{
    int64 end_ms = now_ms () + settings.timeout_ms;
    const struct library *lib = enter (end_ms, patient);
    const char *text = NULL;

    for (;;) {
        session.f = lib->rpc (session.h, "fluid.info", "{}", IDT_NODEID_ANY, 0);
        if (await (lib, end_ms) == 0 && lib->rpc_get_unpack (session.f, "{s:s}", "epoch", &text) == 0)
            break;
        try_again (lib, errno == EPROTO ? EAGAIN : errno, end_ms, patient); /* it does not know it yet */
    }
    char *copy = pstrdup (text);
    drop_future (lib);
    return copy;
}
