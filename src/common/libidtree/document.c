/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document.c - a client's own id compressor, as doc/design/compressor.md describes
 *
 * libdocument/document.h decides. This file sends and receives for it while the reactor of the handle runs.
 * idt_document_open () sends its requests itself and waits. All later requests are sent by work (), which runs before
 * the reactor sleeps and sends the requests that are due:
 *
 * 1. Subscriptions come first, one after the other. Then the session fetches the ranges that were ordered before, or
 *    loads a newer stored form, so that no announcement is missed.
 * 2. At most one fetch and one submit are in progress.
 * 3. After a failure no request is sent for a pause. Each failure doubles the next pause.
 * 4. Without a connection no request is sent; a broken document sends no further request.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <idtree/document.h>

#include "libdocument/document.h"
#include "libidtree/handle.h"
#include "libutil/errprintf.h"

#define TIMEOUT_MS 30000.0 /* timeout of a request; a broker answers much earlier if it finds that a request was lost */
#define PAUSE_MIN_MS 50.0  /* pause after the first failure */
#define PAUSE_MAX_MS 5000.0

static_assert (IDT_DOCUMENT_NAME_MAX == DOCWIRE_NAME_MAX, "client and broker must have the same limit");

/* Shared by all documents of a handle. */
struct siblings {
    TAILQ_HEAD (, idt_document) list;
    bool hear_lost; /* whether the handle is subscribed to event.lost */
};

struct idt_document {
    idt_t *h; /* NULL: the document is not attached to a handle */
    TAILQ_ENTRY (idt_document) link;
    struct docsession session;
    char topic[sizeof (DOCWIRE_EVENT_PREFIX) + IDT_DOCUMENT_NAME_MAX];

    bool subscribed;            /* whether the handle is subscribed to 'topic' */
    idt_future_t *subscription; /* these three are requests in progress; NULL: none */
    idt_future_t *fetch;
    idt_future_t *submit;
    idt_watcher_t *prepare; /* calls work () before the reactor sleeps */
    idt_watcher_t *pause;   /* while it is started, no request is sent */
    bool paused;
    double pause_ms; /* length of the pause after the next failure */

    int errnum;
    idt_error_t error;
    idt_document_f changed_cb;
    void *arg;
};

/* --- reporting ------------------------------------------------------------------------------- */

static void changed (idt_document_t *d)
{
    if (d->changed_cb)
        d->changed_cb (d, d->arg);
}

static void set_error (idt_document_t *d, int errnum, const char *text)
{
    bool is_new = errnum != d->errnum;

    d->errnum = errnum;
    errprintf (&d->error, "%s", text);
    if (is_new)
        changed (d);
}

/* Report that the document is broken, if the replica has found a contradiction. */
static void look_at_replica (idt_document_t *d)
{
    const char *why = replica_broken (d->session.replica);

    if (why && d->errnum != EPIPE)
        set_error (d, EPIPE, why);
}

/* --- pauses ---------------------------------------------------------------------------------- */

static void pause_over (idt_watcher_t *w, int revents, void *arg)
{
    idt_document_t *d = arg;

    d->paused = false;
}

/* The errno that the caller sees for a lost connection. EPIPE becomes ECONNRESET, since EPIPE would mean that the
 * document is broken.
 */
static int of_connection (int errnum)
{
    return errnum == EPIPE ? ECONNRESET : errnum;
}

/* Report that a request failed; it will be repeated. */
static void fail_for_now (idt_document_t *d, int errnum, const char *text)
{
    if (!d->h->lost) {
        d->paused = true;
        idt_timer_watcher_reset (d->pause, d->pause_ms, 0);
        idt_watcher_start (d->pause);
        d->pause_ms = 2 * d->pause_ms < PAUSE_MAX_MS ? 2 * d->pause_ms : PAUSE_MAX_MS;
    }
    set_error (d, of_connection (errnum), text);
}

/* Handle the failure of a request. The document becomes broken if repeating the request would fail again
 * (docsession_is_final ()), if this client has no permission (EPERM), or if a message is not valid (EPROTO). Otherwise
 * the request is repeated.
 */
static void fail (idt_document_t *d, int errnum, const char *text)
{
    if (docsession_is_final (errnum) || errnum == EPERM || errnum == EPROTO) {
        replica_break (d->session.replica, text);
        look_at_replica (d);
    }
    else
        fail_for_now (d, errnum, text);
}

static void succeed (idt_document_t *d)
{
    d->pause_ms = PAUSE_MIN_MS;
    if (d->errnum != 0 && d->errnum != EPIPE)
        set_error (d, 0, "");
}

/* Returns whether a request succeeded. If it failed, calls fail (). */
static bool answered (idt_document_t *d, idt_future_t *f)
{
    if (idt_future_errnum (f) == 0)
        return true;
    fail (d, idt_future_errnum (f), idt_future_error (f));
    return false;
}

/* Set the callback for a request that was just sent. If 'f' is NULL because the request could not be sent, errno is the
 * reason, and the failure is handled here.
 */
static idt_future_t *expect (idt_document_t *d, idt_future_t *f, idt_future_f cb)
{
    if (f && idt_future_then (f, TIMEOUT_MS, cb, d) == 0)
        return f;
    int errnum = errno;
    idt_future_destroy (f);
    fail_for_now (d, errnum, strerror (errnum));
    return NULL;
}

static void forget (idt_future_t **slot)
{
    idt_future_destroy (*slot);
    *slot = NULL;
}

/* --- events ---------------------------------------------------------------------------------- */

static void take_event (idt_document_t *d, const idt_msg_t *msg)
{
    int64_t before = idt_document_seq (d);
    json_t *event = idt_msg_json (msg, NULL);

    if (event)
        (void)docsession_hear (&d->session, event, NULL); /* if this fails, the ranges of the event are fetched later */
    json_decref (event);
    look_at_replica (d);
    if (idt_document_seq (d) > before)
        changed (d);
}

void document_event (idt_t *h, const idt_msg_t *msg)
{
    const char *topic = idt_msg_topic (msg);
    idt_document_t *d;

    TAILQ_FOREACH (d, &h->documents->list, link) {
        if (strcmp (topic, d->topic) == 0)
            take_event (d, msg);
        else if (strcmp (topic, "event.lost") == 0)
            d->session.ask = true;
    }
}

/* The handle has a new connection: fetch the ranges that were announced while there was no connection. */
void document_connected (idt_t *h)
{
    idt_document_t *d;

    TAILQ_FOREACH (d, &h->documents->list, link) {
        d->session.ask = true;
        if (d->prepare)
            idt_watcher_start (d->prepare);
    }
}

/* --- subscriptions --------------------------------------------------------------------------- */

/* The topic to subscribe to next; NULL: all subscriptions are made. */
static const char *next_subscription (const idt_document_t *d)
{
    return !d->subscribed ? d->topic : !d->h->documents->hear_lost ? "event.lost" : NULL;
}

static void unsubscribe (idt_t *h, const char *topic)
{
    idt_future_destroy (idt_event_unsubscribe (h, topic));
}

/* Note that the subscription to next_subscription () succeeded. */
static void subscribed (idt_document_t *d)
{
    if (!d->subscribed)
        d->subscribed = true;
    else if (!d->h->documents->hear_lost)
        d->h->documents->hear_lost = true;
    else
        unsubscribe (d->h, "event.lost"); /* meanwhile another document of the handle has subscribed */
}

static void subscribed_cb (idt_future_t *f, void *arg)
{
    idt_document_t *d = arg;

    if (answered (d, f))
        subscribed (d);
    forget (&d->subscription);
}

/* --- requests -------------------------------------------------------------------------------- */

/* If the document was renamed, subscribe to events under the new name. The session then fetches the ranges that were
 * ordered meanwhile.
 */
static void follow_name (idt_document_t *d)
{
    char *name = d->topic + strlen (DOCWIRE_EVENT_PREFIX);

    _Static_assert(sizeof (d->topic) == sizeof (DOCWIRE_EVENT_PREFIX) - 1 + sizeof (d->session.name),
                   "the topic must have space for the longest name");
    if (strcmp (name, d->session.name) == 0)
        return;
    if (d->subscribed)
        unsubscribe (d->h, d->topic);
    d->subscribed = false;
    memcpy (name, d->session.name, sizeof (d->session.name));
    d->session.ask = true;
}

/* Process the response. Returns 0, or -1 with errno set: the error in the response, or as docsession_take (). */
static int take_answer (idt_document_t *d, idt_future_t *f, idt_error_t *errp)
{
    json_t *answer;

    return idt_rpc_get_unpack (f, "o", &answer) < 0 ? -1 : docsession_take (&d->session, answer, errp);
}

static void take_fetched (idt_document_t *d, idt_future_t *f)
{
    idt_error_t error;

    if (take_answer (d, f, &error) == 0) {
        succeed (d);
        return;
    }
    int errnum = errno;
    docsession_failed (&d->session);
    if (errnum == ESTALE)
        fail (d, ESTALE, error.text);
    else
        fail (d, errnum == ENOMEM || errnum == EAGAIN ? errnum : EPROTO, "cannot read the missed announcements");
}

static void fetched_cb (idt_future_t *f, void *arg)
{
    idt_document_t *d = arg;
    int64_t before = idt_document_seq (d);

    if (answered (d, f))
        take_fetched (d, f);
    else
        docsession_failed (&d->session);
    forget (&d->fetch);
    follow_name (d);
    if (idt_document_seq (d) > before)
        changed (d);
}

static void submitted_cb (idt_future_t *f, void *arg)
{
    idt_document_t *d = arg;
    json_int_t seq;

    if (!answered (d, f))
        replica_announce_again (d->session.replica);
    else if (idt_rpc_get_unpack (f, "{s:I}", "seq", &seq) < 0)
        fail (d, EPROTO, "cannot read the response to an announcement");
    else {
        replica_heard (d->session.replica, seq);
        succeed (d);
    }
    forget (&d->submit);
}

/* Send 'text' (stolen). If 'text' is NULL because it could not be made, errno is the reason. */
static idt_future_t *send_new (idt_document_t *d, const char *topic, char *text)
{
    idt_future_t *f = text ? idt_rpc (d->h, topic, text, IDT_NODEID_ANY, 0) : NULL;
    int saved = errno;

    free (text);
    errno = saved;
    return f;
}

/* Send the session's next request. NULL with errno set. */
static idt_future_t *ask (idt_document_t *d)
{
    const char *topic = docsession_topic (&d->session);

    return send_new (d, topic, docsession_request (&d->session));
}

static void send_fetch (idt_document_t *d)
{
    d->fetch = expect (d, ask (d), fetched_cb);
    if (!d->fetch)
        docsession_failed (&d->session);
}

static void send_submit (idt_document_t *d, const struct idcomp_range *range)
{
    idt_future_t *f = send_new (d, "compressor.submit", docsession_announcement (&d->session, range));

    d->submit = expect (d, f, submitted_cb);
    if (!d->submit)
        replica_announce_again (d->session.replica);
}

static void work (idt_document_t *d)
{
    const struct idcomp_range *range;
    const char *topic;

    if (d->h->lost || replica_broken (d->session.replica)) {
        idt_watcher_stop (d->prepare);
        return;
    }
    if (d->paused)
        return;
    if ((topic = next_subscription (d))) {
        if (!d->subscription)
            d->subscription = expect (d, idt_event_subscribe (d->h, topic), subscribed_cb);
        return;
    }
    if (!d->fetch && docsession_topic (&d->session))
        send_fetch (d);
    if (!d->submit && !d->paused && (range = replica_announce (d->session.replica)))
        send_submit (d, range);
}

static void prepare_cb (idt_watcher_t *w, int revents, void *arg)
{
    work (arg);
}

/* --- attaching ------------------------------------------------------------------------------- */

static int join_siblings (idt_document_t *d, idt_t *h)
{
    if (!h->documents) {
        if (!(h->documents = calloc (1, sizeof (*h->documents))))
            return -1;
        TAILQ_INIT (&h->documents->list);
        handle_interest (h, 1);
    }
    TAILQ_INSERT_TAIL (&h->documents->list, d, link);
    d->h = h;
    return 0;
}

static void leave_siblings (idt_document_t *d)
{
    struct siblings *siblings = d->h->documents;

    TAILQ_REMOVE (&siblings->list, d, link);
    if (TAILQ_EMPTY (&siblings->list)) {
        if (siblings->hear_lost)
            unsubscribe (d->h, "event.lost");
        d->h->documents = NULL;
        handle_interest (d->h, -1);
        free (siblings);
    }
    d->h = NULL;
}

/* Detach from the handle, if attached. */
static void detach (idt_document_t *d)
{
    if (!d->h)
        return;
    forget (&d->subscription);
    forget (&d->fetch);
    forget (&d->submit);
    docsession_failed (&d->session);
    if (d->session.replica)
        replica_announce_again (d->session.replica);
    if (d->subscribed)
        unsubscribe (d->h, d->topic);
    d->subscribed = false;
    idt_watcher_destroy (d->prepare);
    idt_watcher_destroy (d->pause);
    d->prepare = d->pause = NULL;
    d->paused = false;
    leave_siblings (d);
}

int idt_document_attach (idt_document_t *d, idt_t *h)
{
    detach (d);
    if (!h)
        return 0;
    idt_reactor_t *r = idt_get_reactor (h);
    if (!r || join_siblings (d, h) < 0)
        return -1;
    d->pause_ms = PAUSE_MIN_MS;
    d->session.ask = true;
    if (!(d->prepare = idt_prepare_watcher_create (r, prepare_cb, d))
        || !(d->pause = idt_timer_watcher_create (r, PAUSE_MIN_MS, 0, pause_over, d))) {
        detach (d);
        return -1;
    }
    idt_watcher_start (d->prepare);
    return 0;
}

/* --- opening --------------------------------------------------------------------------------- */

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

    while ((topic = next_subscription (d))) {
        idt_future_t *f = wait_answer (idt_event_subscribe (d->h, topic), timeout_ms, "cannot subscribe", errp);
        if (!f)
            return -1;
        idt_future_destroy (f);
        subscribed (d);
    }
    return 0;
}

static int join_step (idt_document_t *d, double timeout_ms, idt_error_t *errp)
{
    idt_future_t *f = wait_answer (ask (d), timeout_ms, d->session.name, errp);

    if (!f)
        return -1;
    int rc = take_answer (d, f, NULL);
    if (rc < 0) {
        errno = idcomp_errno (errno);
        errprintf (errp, "%s: cannot read the response: %s", d->session.name, strerror (errno));
    }
    idt_future_destroy (f);
    return rc;
}

/* Receive the first stored form. If rank 0 no longer has the state that this session fetches in pieces (EAGAIN),
 * fetching starts again.
 */
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
    detach (d);
    docsession_fini (&d->session);
    free (d);
    errno = saved_errno;
}

/* --- inspection ------------------------------------------------------------------------------ */

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

/* --- waiting --------------------------------------------------------------------------------- */

static void time_over (idt_watcher_t *w, int revents, void *arg)
{
    *(bool *)arg = true;
}

static bool is_synced (const idt_document_t *d)
{
    return !d->fetch && !docsession_topic (&d->session);
}

/* Run the reactor once. Returns 0, or -1 with errno set if running it again would not help. */
static int wait_turn (idt_document_t *d, const bool *over)
{
    int errnum = 0;

    if (replica_broken (d->session.replica))
        errnum = EPIPE;
    else if (d->h->lost && !handle_is_sought (d->h))
        errnum = of_connection (d->h->lost);
    else if (*over)
        errnum = ETIMEDOUT;
    else if (idt_reactor_run (d->h->reactor, IDT_REACTOR_ONCE) < 0)
        errnum = of_connection (errno);
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
