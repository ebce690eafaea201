/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document.c - a client's own id compressor, as doc/design/compressor.md describes: life, and blocking calls */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libidtree/document_private.h"
#include "libutil/errprintf.h"

static_assert (IDT_DOCUMENT_NAME_MAX == DOCWIRE_NAME_MAX, "client and broker must have the same limit");

/* --- opening ---------------------------------------------------------------------------------- */

/* Wait for a response. Returns its future, or NULL with errno and 'errp' set. */
static idt_future_t *wait_answer (idt_future_t *f, double timeout_ms, const char *what, idt_error_t *errp)
{
    if (!f || idt_future_wait (f, timeout_ms) < 0)
        errprintf (errp, "%s: %s", what, strerror (errno));
    else if (idt_future_errnum (f) != 0) {
        errno = idt_future_errnum (f);
        errprintf (errp, "%s: %s", what,
                   errno == ENOSYS ? "neither this broker nor an ancestor has loaded the compressor module"
                                   : idt_future_error (f));
    }
    else
        return f;
    idt_future_destroy (f);
    return NULL;
}

static int subscribe_and_wait (idt_document_t *d, double timeout_ms, idt_error_t *errp)
{
    const char *topic;

    while ((topic = docwork_subscription (d))) {
        idt_future_t *f = wait_answer (idt_event_subscribe (d->h, topic), timeout_ms, "cannot subscribe", errp);
        if (!f)
            return -1;
        idt_future_destroy (f);
        docwork_subscribed (d);
    }
    return 0;
}

static int join_step (idt_document_t *d, double timeout_ms, idt_error_t *errp)
{
    idt_future_t *f = wait_answer (docwork_ask (d), timeout_ms, d->session.name, errp);

    if (!f)
        return -1;
    int rc = docwork_take (d, f, NULL);
    if (rc < 0) {
        errno = idcomp_errno (errno);
        errprintf (errp, "%s: cannot read the response: %s", d->session.name, strerror (errno));
    }
    idt_future_destroy (f);
    return rc;
}

/* If rank 0 no longer has the state that this session fetches in pieces (EAGAIN), fetching starts again. */
static int join (idt_document_t *d, double timeout_ms, idt_error_t *errp)
{
    while (!d->session.replica) {
        bool in_pieces = docsession_in_pieces (&d->session);

        if (join_step (d, timeout_ms, errp) < 0) {
            if (!in_pieces || errno != EAGAIN)
                return -1;
            docsession_failed (&d->session);
        }
    }
    return 0;
}

idt_document_t *idt_document_open (idt_t *h, const char *name, double timeout_ms, idt_error_t *errp)
{
    idt_document_t *d = calloc (1, sizeof (*d));

    if (!d) {
        errprintf (errp, "%s: %s", name, strerror (errno));
        return NULL;
    }
    if (docsession_init (&d->session, name, errp) < 0)
        goto error;
    snprintf (d->topic, sizeof (d->topic), DOCWIRE_EVENT_PREFIX "%s", name);
    if (idt_document_attach (d, h) < 0) {
        errprintf (errp, "%s: %s", name, strerror (errno));
        goto error;
    }
    if (subscribe_and_wait (d, timeout_ms, errp) < 0 || join (d, timeout_ms, errp) < 0)
        goto error;
    return d;
error:
    idt_document_close (d);
    return NULL;
}

void idt_document_close (idt_document_t *d)
{
    if (!d)
        return;
    int saved_errno = errno;
    docwork_detach (d);
    docsession_fini (&d->session);
    free (d);
    errno = saved_errno;
}

/* --- inspection --------------------------------------------------------------------------------- */

struct idcomp *idt_document_ids (const idt_document_t *d)
{
    return replica_ids (d->session.replica);
}

const char *idt_document_name (const idt_document_t *d)
{
    return d->session.name;
}

const char *idt_document_uuid (const idt_document_t *d)
{
    return d->session.uuid;
}

int64_t idt_document_seq (const idt_document_t *d)
{
    return replica_seq (d->session.replica);
}

bool idt_document_settled (const idt_document_t *d)
{
    return replica_settled (d->session.replica);
}

int idt_document_errnum (const idt_document_t *d)
{
    return d->errnum;
}

const char *idt_document_error (const idt_document_t *d)
{
    return d->errnum != 0 ? d->error.text : NULL;
}

void idt_document_set_changed (idt_document_t *d, idt_document_f cb, void *arg)
{
    d->changed_cb = cb;
    d->arg = arg;
}

/* --- waiting ---------------------------------------------------------------------------------- */

static void time_over (idt_watcher_t *w, int revents, void *arg)
{
    *(bool *)arg = true;
}

static bool is_synced (const idt_document_t *d)
{
    return !d->fetch && !docsession_topic (&d->session);
}

/* Run the reactor once. Returns 0, or -1 with errno set if running it again cannot help. */
static int wait_turn (idt_document_t *d, const bool *over)
{
    int errnum = 0;

    if (replica_broken (d->session.replica))
        errnum = EPIPE;
    else if (d->h->lost && !connection_is_sought (d->h))
        errnum = docwork_of_connection (d->h->lost);
    else if (*over)
        errnum = ETIMEDOUT;
    else if (idt_reactor_run (d->h->reactor, IDT_REACTOR_ONCE) < 0)
        errnum = docwork_of_connection (errno);
    return errnum == 0 ? 0 : errset (errnum);
}

static int wait_until (idt_document_t *d, bool (*done) (const idt_document_t *d), double timeout_ms)
{
    bool over = false;
    idt_watcher_t *timer = NULL;
    int rc = 0;

    if (!d->h || d->h->depth > 0)
        return errset (d->h ? EDEADLK : ENOTCONN);
    if (timeout_ms >= 0) {
        if (!(timer = idt_timer_watcher_create (d->h->reactor, timeout_ms, 0, time_over, &over)))
            return -1;
        idt_watcher_start (timer);
    }
    while (rc == 0 && (replica_broken (d->session.replica) || !done (d)))
        rc = wait_turn (d, &over);
    idt_watcher_destroy (timer);
    return rc;
}

int idt_document_settle (idt_document_t *d, double timeout_ms)
{
    return wait_until (d, idt_document_settled, timeout_ms);
}

int idt_document_sync (idt_document_t *d, double timeout_ms)
{
    d->session.ask = true;
    return wait_until (d, is_synced, timeout_ms);
}
