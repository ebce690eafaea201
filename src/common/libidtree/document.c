/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document.c - a compressor of one's own, as doc/design/compressor.md describes
 *
 * libcompressor/replica.h thinks; this file talks for it.  All requests are made in work (), which runs before
 * the reactor sleeps and sends what is due:
 *
 * 1. Subscriptions come first, one after the other; then all that was ordered before is fetched or loaded, so
 *    that nothing falls between.
 * 2. At most one fetch and one submit are under way.
 * 3. After a failure nothing is sent for a pause, which doubles from failure to failure.
 * 4. Without connection, and once broken, nothing is sent at all.
 */
#include "config.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <idtree/document.h>

#include "libcompressor/pieces.h"
#include "libcompressor/replica.h"
#include "libidtree/document.h"
#include "libidtree/private.h"
#include "libutil/errprintf.h"

#define TOPIC_PREFIX "compressor.ranges."
#define TIMEOUT_MS 30000.0 /* of a request; brokers answer for those that they lost long before */
#define PAUSE_MIN_MS 50.0  /* after the first failure */
#define PAUSE_MAX_MS 5000.0
#define SUBSCRIPTIONS 2 /* to the topic, then to event.lost */
#define LOST 1

struct idt_document {
    idt_t *h;                        /* NULL: none */
    TAILQ_ENTRY (idt_document) link; /* in the handle's list */
    char name[IDT_DOCUMENT_NAME_MAX + 1];
    char uuid[IDCOMP_UUID_TEXT_MAX];
    char topic[sizeof (TOPIC_PREFIX) + IDT_DOCUMENT_NAME_MAX];
    struct replica *replica;
    struct pieces pieces; /* of a stored form that is fetched */

    int subscribed;             /* of SUBSCRIPTIONS */
    bool owns_lost;             /* the subscription to event.lost that all documents of the handle share */
    bool ask_newest;            /* fetch, even if nothing is known to be missing */
    idt_future_t *subscription; /* requests under way; NULL: none */
    idt_future_t *fetch;
    idt_future_t *submit;
    idt_watcher_t *prepare; /* work () */
    idt_watcher_t *pause;   /* started: nothing is sent */
    bool paused;
    double pause_ms; /* of the next failure */

    int errnum;
    idt_error_t error;
    idt_document_f changed_cb;
    void *arg;
};

/* --- telling ---------------------------------------------------------------------------------- */

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

/* The replica may have found what can't be. */
static void look_at_replica (idt_document_t *d)
{
    const char *why = replica_broken (d->replica);

    if (why && d->errnum != EPIPE)
        set_error (d, EPIPE, why);
}

/* --- pauses ----------------------------------------------------------------------------------- */

static void pause_over (idt_watcher_t *w, int revents, void *arg)
{
    idt_document_t *d = arg;

    d->paused = false;
}

/* EPIPE says that a document is broken; of a connection it says the same as ECONNRESET. */
static int of_connection (int errnum)
{
    return errnum == EPIPE ? ECONNRESET : errnum;
}

/* A request failed, and will be repeated. */
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

/* True for what no repetition will change. */
static bool is_final (int errnum)
{
    return errnum == EINVAL || errnum == ESTALE || errnum == ENOENT || errnum == EPERM || errnum == EPROTO;
}

static void fail (idt_document_t *d, int errnum, const char *text)
{
    if (is_final (errnum)) {
        replica_break (d->replica, text);
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

/* True if a request succeeded; else what went wrong is dealt with. */
static bool answered (idt_document_t *d, idt_future_t *f)
{
    if (idt_future_errnum (f) == 0)
        return true;
    fail (d, idt_future_errnum (f), idt_future_error (f));
    return false;
}

/* A request was sent, or not. */
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

/* --- ranges and states ------------------------------------------------------------------------ */

static int malformed (void)
{
    errno = EPROTO;
    return -1;
}

/* Apply the ranges of an array, the first with number 'seq', as far as they follow. */
static int apply_ranges (struct replica *r, int64_t seq, const json_t *ranges)
{
    size_t i;
    json_t *o;

    json_array_foreach ((json_t *)ranges, i, o) {
        struct idcomp_range range;
        char *text = json_dumps (o, JSON_COMPACT);
        if (!text || idcomp_range_parse (text, strlen (text), &range, NULL) < 0) {
            bool no_memory = !text || errno == ENOMEM;
            free (text);
            return no_memory ? -1 : malformed ();
        }
        free (text);
        int rc = replica_apply (r, seq + (int64_t)i, &range);
        idcomp_range_fini (&range);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* What rank 0 and this rank know about the document is of one life of it. */
static bool is_ours (idt_document_t *d, const char *uuid)
{
    if (strcmp (uuid, d->uuid) == 0)
        return true;
    fail (d, ESTALE, "another document has its name now");
    return false;
}

/* --- events ----------------------------------------------------------------------------------- */

/* Whether the ranges of an event go on where we are.  What does not is asked for: it may be known, some may be missing, or it
 * is of another history.
 */
static bool continues (idt_document_t *d, int64_t seq, const char *digest)
{
    char ours[REPLICA_DIGEST_TEXT];

    replica_digest (d->replica, ours);
    if (seq == replica_seq (d->replica) + 1 && (!digest || strcmp (digest, ours) == 0))
        return true;
    d->ask_newest = true;
    return false;
}

static void take_event (idt_document_t *d, const idt_msg_t *msg)
{
    const char *name, *uuid, *digest = NULL;
    json_int_t seq;
    json_t *o, *ranges;

    if (idt_msg_unpack (msg, &o, NULL, "{s:s s:s s:I s?s s:o}", "document", &name, "uuid", &uuid, "seq", &seq, "digest",
                        &digest, "ranges", &ranges)
        < 0)
        return;
    if (strcmp (name, d->name) == 0 && seq >= 1 && is_ours (d, uuid)) {
        int64_t before = replica_seq (d->replica);
        if (continues (d, seq, digest))
            (void)apply_ranges (d->replica, seq, ranges); /* what could not be applied will be fetched */
        replica_heard (d->replica, seq + (int64_t)json_array_size (ranges) - 1);
        look_at_replica (d);
        if (replica_seq (d->replica) > before)
            changed (d);
    }
    json_decref (o);
}

void document_dispatch (idt_t *h, const idt_msg_t *msg)
{
    const char *topic = idt_msg_topic (msg);
    idt_document_t *d;

    TAILQ_FOREACH (d, &h->documents, link) {
        if (strcmp (topic, d->topic) == 0)
            take_event (d, msg);
        else if (strcmp (topic, "event.lost") == 0)
            d->ask_newest = true;
    }
}

/* --- requests --------------------------------------------------------------------------------- */

static const char *subscription (const idt_document_t *d, int i)
{
    return i == LOST ? "event.lost" : d->topic;
}

/* The document that has the subscription to event.lost; NULL: none has. */
static idt_document_t *owner_of_lost (const idt_t *h)
{
    idt_document_t *d;

    TAILQ_FOREACH (d, &h->documents, link)
        if (d->owns_lost)
            return d;
    return NULL;
}

static void unsubscribe_lost (idt_t *h)
{
    idt_future_destroy (idt_event_unsubscribe (h, "event.lost"));
}

/* Count the next subscription where another document of the handle has it already. */
static void share_subscription (idt_document_t *d)
{
    if (d->subscribed == LOST && owner_of_lost (d->h))
        d->subscribed++;
}

static void count_subscription (idt_document_t *d)
{
    if (d->subscribed == LOST && owner_of_lost (d->h))
        unsubscribe_lost (d->h); /* another one was as quick */
    else if (d->subscribed == LOST)
        d->owns_lost = true;
    d->subscribed++;
}

static void subscribed_cb (idt_future_t *f, void *arg)
{
    idt_document_t *d = arg;

    if (answered (d, f))
        count_subscription (d);
    forget (&d->subscription);
}

/* Take over a stored form where it is whole.  Pieces that are missing are asked for in work (). */
static int load_state (idt_document_t *d)
{
    if (!pieces_whole (&d->pieces))
        return 0;
    int rc = replica_load (d->replica, d->pieces.form, d->pieces.size, d->pieces.seq);
    pieces_fini (&d->pieces);
    return rc;
}

static int take_fetched (idt_document_t *d, idt_future_t *f)
{
    const char *uuid, *state = NULL;
    json_int_t newest, seq, size = 0;
    json_t *ranges = NULL;

    if (idt_rpc_get_unpack (f, "{s:s s:I s:I s?o s?s s?I}", "uuid", &uuid, "newest", &newest, "seq", &seq, "ranges",
                            &ranges, "state", &state, "size", &size)
        < 0)
        return -1;
    if (!is_ours (d, uuid))
        return 0;
    replica_heard (d->replica, newest);
    if (!state)
        return apply_ranges (d->replica, seq, ranges);
    return pieces_begin (&d->pieces, seq, state, size) < 0 ? -1 : load_state (d);
}

static int take_piece (idt_document_t *d, idt_future_t *f)
{
    const char *state;
    json_int_t seq;

    if (idt_rpc_get_unpack (f, "{s:I s:s}", "seq", &seq, "state", &state) < 0)
        return -1;
    return pieces_add (&d->pieces, seq, state) < 0 ? -1 : load_state (d);
}

/* An answer was taken, or not ('rc' -1). */
static void fetched (idt_document_t *d, int rc)
{
    if (rc < 0)
        pieces_fini (&d->pieces);
    look_at_replica (d);
    if (replica_broken (d->replica))
        return;
    if (rc == 0)
        succeed (d);
    else
        fail (d, errno == ENOMEM || errno == EAGAIN ? errno : EPROTO, "what was missed is not understood");
}

static void fetched_cb (idt_future_t *f, void *arg)
{
    idt_document_t *d = arg;
    int64_t before = replica_seq (d->replica);
    bool is_piece = d->pieces.form != NULL;

    if (answered (d, f))
        fetched (d, is_piece ? take_piece (d, f) : take_fetched (d, f));
    else {
        pieces_fini (&d->pieces);
        d->ask_newest = true;
    }
    forget (&d->fetch);
    if (replica_seq (d->replica) > before)
        changed (d);
}

static void submitted_cb (idt_future_t *f, void *arg)
{
    idt_document_t *d = arg;
    json_int_t seq;

    if (!answered (d, f))
        replica_announce_again (d->replica);
    else if (idt_rpc_get_unpack (f, "{s:I}", "seq", &seq) < 0)
        fail (d, EPROTO, "the answer to an announcement is not understood");
    else {
        replica_heard (d->replica, seq);
        succeed (d);
    }
    forget (&d->submit);
}

static idt_future_t *ask_piece (idt_document_t *d)
{
    return idt_rpc_pack (d->h, "compressor.state", IDT_NODEID_ANY, 0, "{s:s s:s s:I s:I}", "document", d->name, "uuid",
                         d->uuid, "seq", (json_int_t)d->pieces.seq, "offset", (json_int_t)d->pieces.text);
}

static idt_future_t *ask_ranges (idt_document_t *d)
{
    char digest[REPLICA_DIGEST_TEXT];

    replica_digest (d->replica, digest);
    return idt_rpc_pack (d->h, "compressor.fetch", IDT_NODEID_ANY, 0, "{s:s s:s s:I s:s}", "document", d->name, "uuid",
                         d->uuid, "from", (json_int_t)replica_seq (d->replica) + 1, "digest", digest);
}

static void send_fetch (idt_document_t *d)
{
    bool is_piece = d->pieces.form != NULL;

    if (!is_piece)
        d->ask_newest = false;
    d->fetch = expect (d, is_piece ? ask_piece (d) : ask_ranges (d), fetched_cb);
    if (!d->fetch)
        d->ask_newest = true;
}

/* The JSON object of a range, a new reference. */
static json_t *range_json (const struct idcomp_range *range)
{
    size_t size = idcomp_range_format_size (range);
    char *text = malloc (size);
    json_t *o = NULL;

    if (text) {
        idcomp_range_format (range, text, size);
        o = json_loads (text, 0, NULL);
        free (text);
    }
    return o;
}

static void send_submit (idt_document_t *d, const struct idcomp_range *range)
{
    json_t *o = range_json (range);
    idt_future_t *f = NULL;
    char digest[REPLICA_DIGEST_TEXT];

    errno = ENOMEM;
    replica_digest (d->replica, digest);
    if (o)
        f = idt_rpc_pack (d->h, "compressor.submit", IDT_NODEID_ANY, 0, "{s:s s:s s:I s:s s:[o]}", "document", d->name,
                          "uuid", d->uuid, "seq", (json_int_t)replica_seq (d->replica), "digest", digest, "ranges", o);
    d->submit = expect (d, f, submitted_cb);
    if (!d->submit)
        replica_announce_again (d->replica);
}

static void work (idt_document_t *d)
{
    const struct idcomp_range *range;
    int64_t from;

    if (d->h->lost || replica_broken (d->replica)) {
        idt_watcher_stop (d->prepare);
        return;
    }
    if (d->paused)
        return;
    share_subscription (d);
    if (d->subscribed < SUBSCRIPTIONS) {
        if (!d->subscription)
            d->subscription = expect (d, idt_event_subscribe (d->h, subscription (d, d->subscribed)), subscribed_cb);
        return;
    }
    if (!d->fetch && (d->ask_newest || d->pieces.form || replica_missing (d->replica, &from)))
        send_fetch (d);
    if (!d->submit && !d->paused && (range = replica_announce (d->replica)))
        send_submit (d, range);
}

static void prepare_cb (idt_watcher_t *w, int revents, void *arg)
{
    work (arg);
}

/* --- attaching -------------------------------------------------------------------------------- */

static void unsubscribe (idt_document_t *d)
{
    idt_document_t *other;

    if (d->subscribed > 0)
        idt_future_destroy (idt_event_unsubscribe (d->h, d->topic));
    if (!d->owns_lost)
        return;
    TAILQ_FOREACH (other, &d->h->documents, link)
        if (other != d && other->subscribed == SUBSCRIPTIONS)
            break;
    if (other)
        other->owns_lost = true;
    else
        unsubscribe_lost (d->h);
}

static void detach (idt_document_t *d)
{
    if (!d->h)
        return;
    forget (&d->subscription);
    forget (&d->fetch);
    forget (&d->submit);
    pieces_fini (&d->pieces);
    if (d->replica)
        replica_announce_again (d->replica);
    if (!d->h->lost)
        unsubscribe (d);
    d->subscribed = 0;
    d->owns_lost = false;
    idt_watcher_destroy (d->prepare);
    idt_watcher_destroy (d->pause);
    d->prepare = d->pause = NULL;
    d->paused = false;
    TAILQ_REMOVE (&d->h->documents, d, link);
    handle_interest (d->h, -1);
    d->h = NULL;
}

int idt_document_attach (idt_document_t *d, idt_t *h)
{
    detach (d);
    if (!h)
        return 0;
    idt_reactor_t *r = idt_get_reactor (h);
    if (!r)
        return -1;
    d->h = h;
    TAILQ_INSERT_TAIL (&h->documents, d, link);
    handle_interest (h, 1);
    d->pause_ms = PAUSE_MIN_MS;
    d->ask_newest = true;
    if (!(d->prepare = idt_prepare_watcher_create (r, prepare_cb, d))
        || !(d->pause = idt_timer_watcher_create (r, PAUSE_MIN_MS, 0, pause_over, d))) {
        detach (d);
        return -1;
    }
    idt_watcher_start (d->prepare);
    return 0;
}

/* --- opening ---------------------------------------------------------------------------------- */

static bool name_is_good (const char *name)
{
    size_t len = strlen (name);

    if (len == 0 || len > IDT_DOCUMENT_NAME_MAX || *name == '.' || *name == '-')
        return false;
    for (; *name; name++)
        if (!isascii ((unsigned char)*name) || (!isalnum ((unsigned char)*name) && !strchr ("._-", *name)))
            return false;
    return true;
}

/* Wait for an answer.  Returns it, or NULL with errno and 'errp' set. */
static idt_future_t *wait_answer (idt_future_t *f, double timeout_ms, const char *what, idt_error_t *errp)
{
    if (!f || idt_future_wait (f, timeout_ms) < 0)
        errprintf (errp, "%s: %s", what, strerror (errno));
    else if (idt_future_errnum (f) != 0) {
        errno = idt_future_errnum (f);
        errprintf (errp, "%s: %s", what,
                   errno == ENOSYS ? "no broker on the way up has the module compressor" : idt_future_error (f));
    }
    else
        return f;
    idt_future_destroy (f);
    return NULL;
}

static int subscribe_and_wait (idt_document_t *d, double timeout_ms, idt_error_t *errp)
{
    for (share_subscription (d); d->subscribed < SUBSCRIPTIONS; share_subscription (d)) {
        idt_future_t *f = wait_answer (idt_event_subscribe (d->h, subscription (d, d->subscribed)), timeout_ms,
                                       "cannot subscribe", errp);
        if (!f)
            return -1;
        idt_future_destroy (f);
        count_subscription (d);
    }
    return 0;
}

/* A new session in the form that is there. */
static struct replica *start_session (const struct pieces *pieces)
{
    unsigned char random[16];
    char session[IDCOMP_UUID_TEXT_MAX];

    if (getrandom (random, sizeof (random), 0) != sizeof (random))
        return NULL;
    struct idcomp_uuid uuid = idcomp_uuid_random (random);
    idcomp_uuid_format (&uuid, session, sizeof (session));
    return replica_create (session, pieces->form, pieces->size, pieces->seq);
}

static int not_understood (const idt_document_t *d, idt_error_t *errp)
{
    errno = idcomp_errno (errno);
    return errprintf (errp, "%s: the answer is not understood: %s", d->name, strerror (errno));
}

static int join_first (idt_document_t *d, double timeout_ms, idt_error_t *errp)
{
    const char *uuid, *state;
    json_int_t seq, size = 0;
    int rc = -1;
    idt_future_t *f = wait_answer (idt_rpc_pack (d->h, "compressor.join", IDT_NODEID_ANY, 0, "{s:s s:b}", "document",
                                                 d->name, "behind", 1),
                                   timeout_ms, d->name, errp);
    if (!f)
        return -1;
    if (idt_rpc_get_unpack (f, "{s:s s:I s:s s?I}", "uuid", &uuid, "seq", &seq, "state", &state, "size", &size) < 0
        || strlen (uuid) >= sizeof (d->uuid))
        malformed ();
    else if ((rc = pieces_begin (&d->pieces, seq, state, size)) == 0)
        strcpy (d->uuid, uuid);
    if (rc < 0)
        not_understood (d, errp);
    idt_future_destroy (f);
    return rc;
}

static int join_next (idt_document_t *d, double timeout_ms, idt_error_t *errp)
{
    const char *state;
    json_int_t seq;
    idt_future_t *f = wait_answer (ask_piece (d), timeout_ms, d->name, errp);

    if (!f)
        return -1;
    int rc = idt_rpc_get_unpack (f, "{s:I s:s}", "seq", &seq, "state", &state) < 0
                 ? malformed ()
                 : pieces_add (&d->pieces, seq, state);
    if (rc < 0)
        not_understood (d, errp);
    idt_future_destroy (f);
    return rc;
}

/* A form that rank 0 keeps no more is begun anew. */
static int join (idt_document_t *d, double timeout_ms, idt_error_t *errp)
{
    int rc = join_first (d, timeout_ms, errp);

    while (rc == 0 && !pieces_whole (&d->pieces)) {
        d->ask_newest = true;
        if ((rc = join_next (d, timeout_ms, errp)) < 0 && errno == EAGAIN)
            rc = join_first (d, timeout_ms, errp);
    }
    if (rc == 0 && !(d->replica = start_session (&d->pieces)))
        rc = not_understood (d, errp);
    pieces_fini (&d->pieces);
    return rc;
}

idt_document_t *idt_document_open (idt_t *h, const char *name, double timeout_ms, idt_error_t *errp)
{
    idt_document_t *d = NULL;

    if (!name_is_good (name)) {
        errno = EINVAL;
        errprintf (errp, "%s: a document has a name of 1 to %d of A-Z a-z 0-9 . _ -, not . or - first", name,
                   IDT_DOCUMENT_NAME_MAX);
        return NULL;
    }
    if (!(d = calloc (1, sizeof (*d)))) {
        errprintf (errp, "%s: %s", name, strerror (errno));
        return NULL;
    }
    strcpy (d->name, name);
    snprintf (d->topic, sizeof (d->topic), TOPIC_PREFIX "%s", name);
    if (idt_document_attach (d, h) < 0) {
        errprintf (errp, "%s: %s", name, strerror (errno));
        goto error;
    }
    d->ask_newest = false; /* what is ordered from now on comes as events */
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
    pieces_fini (&d->pieces);
    replica_destroy (d->replica);
    free (d);
    errno = saved_errno;
}

/* --- looking at it ---------------------------------------------------------------------------- */

struct idcomp *idt_document_ids (const idt_document_t *d)
{
    return replica_ids (d->replica);
}

const char *idt_document_name (const idt_document_t *d)
{
    return d->name;
}

const char *idt_document_uuid (const idt_document_t *d)
{
    return d->uuid;
}

int64_t idt_document_seq (const idt_document_t *d)
{
    return replica_seq (d->replica);
}

bool idt_document_settled (const idt_document_t *d)
{
    return replica_settled (d->replica);
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
    int64_t from;

    return !d->ask_newest && !d->fetch && !d->pieces.form && !replica_missing (d->replica, &from);
}

/* One turn of the reactor.  Returns 0, or -1 with errno set when there is no use in another. */
static int wait_turn (idt_document_t *d, const bool *over)
{
    int errnum = 0;

    if (replica_broken (d->replica))
        errnum = EPIPE;
    else if (d->h->lost)
        errnum = of_connection (d->h->lost);
    else if (*over)
        errnum = ETIMEDOUT;
    else if (idt_reactor_run (d->h->reactor, IDT_REACTOR_ONCE) < 0)
        errnum = of_connection (errno);
    errno = errnum;
    return errnum == 0 ? 0 : -1;
}

static int wait_until (idt_document_t *d, bool (*done) (const idt_document_t *d), double timeout_ms)
{
    bool over = false;
    idt_watcher_t *timer = NULL;
    int rc = 0;

    if (!d->h || d->h->depth > 0) {
        errno = d->h ? EDEADLK : ENOTCONN;
        return -1;
    }
    if (timeout_ms >= 0) {
        if (!(timer = idt_timer_watcher_create (d->h->reactor, timeout_ms, 0, time_over, &over)))
            return -1;
        idt_watcher_start (timer);
    }
    while (rc == 0 && (replica_broken (d->replica) || !done (d)))
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
    d->ask_newest = true;
    return wait_until (d, is_synced, timeout_ms);
}
