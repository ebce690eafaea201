/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document.c - a document that is open on this rank
 *
 * The first document subscribes to the events of all documents. Then each document joins. Rank 0 answers with the
 * stored form before it publishes later ranges, so no range is missed. All further callbacks end in document_turn (),
 * which does the work that is due and may destroy the document. So the caller of document_turn () must not use the
 * document afterwards.
 *
 * Requests to open or close a document are answered within compressor.timeout. A session that could not be closed stays
 * open.
 *
 * Ranges may be missing after a gap in the events, after event.lost, or if an answer names a newer range. If the
 * replica reports missing ranges, this rank fetches them from rank 0. A fetch or an announcement that fails is repeated
 * after a pause, as long as the document is open.
 *
 * Each request to rank 0 contains a digest of the history that this rank has finalized. Each event contains a digest,
 * too. An event that does not continue this rank's history is not applied. Instead this rank asks rank 0, which
 * compares the digests (root/tasks.c). While rank 0 refuses the document, no ids are made in it.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "modules/compressor/service.h"

#define PAUSE_MAX_MS 5000

/* Do all work that is due. May destroy the document. */
static void document_turn (struct document *doc);

/* --- pauses --------------------------------------------------------------------------------------------- */

/* Begin a pause, twice as long as the last one, up to PAUSE_MAX_MS. */
static void document_pause (struct document *doc, struct pause *pause)
{
    pause->last_ms = pause->last_ms == 0 ? SERVICE_PAUSE_MS : 2 * pause->last_ms;
    if (pause->last_ms > PAUSE_MAX_MS)
        pause->last_ms = PAUSE_MAX_MS;
    pause->until_ms = clock_ms (CLOCK_MONOTONIC) + pause->last_ms;
    service_arm (doc->service);
}

/* End a pause, and reset its length. */
static void document_resume (struct pause *pause)
{
    *pause = (struct pause){ 0 };
}

/* --- end ------------------------------------------------------------------------------------------------ */

/* Answer all waiting requests with the error, and destroy the document. With errnum 0, requests to close the document
 * are answered with success.
 */
static void document_destroy (struct document *doc, int errnum, const char *text)
{
    assert (doc->service->ndocuments > 0);
    LIST_REMOVE (doc, link);
    if (--doc->service->ndocuments == 0)
        idt_future_destroy (idt_event_unsubscribe (doc->service->h, DOCWIRE_EVENT_PREFIX));
    finals_fail (doc, UINT64_MAX, errnum, text);
    service_respond_all (doc->service, &doc->openers, errnum, text);
    service_respond_all (doc->service, &doc->closers, errnum, errnum ? text : NULL);
    fifo_fini (&doc->openers);
    fifo_fini (&doc->closers);
    idt_future_destroy (doc->opening);
    idt_future_destroy (doc->fetching);
    if (doc->announced)
        doc->announced->arg = NULL;
    docsession_fini (&doc->session);
    free (doc);
}

/* Answer requests to close the document with the reason why it stays open. The session continues. */
static void document_stay_open (struct document *doc, int errnum, const char *text)
{
    char s[400];

    if (doc->state != CLOSING)
        return;
    doc->state = OPEN;
    snprintf (
        s, sizeof (s),
        "%.255s: the session has ids that are not final, and stays open: to lose these ids, close it with discard",
        text ? text : strerror (errnum));
    service_respond_all (doc->service, &doc->closers, errnum, s);
}

/* --- retries -------------------------------------------------------------------------------------------- */

static void pause_fetch (struct document *doc)
{
    doc->session.ask = true;
    document_pause (doc, &doc->missing);
}

/* Rank 0 and this rank disagree about final ids. Ask rank 0 again after a pause, because an operator may restore the
 * right copy meanwhile.
 */
static void refuse (struct document *doc, const char *text)
{
    if (!*doc->refused)
        idt_log (doc->service->h, LOG_CRIT, "%s", text);
    snprintf (doc->refused, sizeof (doc->refused), "%s", text);
    finals_fail (doc, UINT64_MAX, ENOTRECOVERABLE, doc->refused);
    pause_fetch (doc);
}

/* --- fetch ---------------------------------------------------------------------------------------------- */

/* Send the request that the session needs now. A join carries the user who opened the document here: if rank 0 creates
 * the document, it belongs to that user. Returns NULL with errno set.
 */
static idt_future_t *document_ask (struct document *doc)
{
    const char *topic = docsession_topic (&doc->session);
    char *text = docsession_request (&doc->session);
    idt_msg_t *request = text ? idt_msg_create (IDT_MSGTYPE_REQUEST) : NULL;
    idt_future_t *f = NULL;

    if (request && idt_msg_set_topic (request, topic) == 0 && idt_msg_set_string (request, text) == 0) {
        if (!doc->session.replica)
            idt_msg_set_cred (request, doc->opener);
        f = idt_rpc_message (doc->service->h, request, 0, 0);
    }
    int saved = errno;
    idt_msg_unref (request);
    free (text);
    errno = saved;
    return f;
}

/* Add the ranges and forms that the session applied to the counters of the service. */
static void count_taken (struct document *doc)
{
    doc->service->counters.applied += doc->session.ranges;
    doc->service->counters.loads += doc->session.forms;
    doc->session.ranges = doc->session.forms = 0;
}

/* Apply an answer of rank 0. Returns 0, or -1 with errno set. If rank 0 answered with an error, errno is that error;
 * otherwise it is as docsession_take () sets it.
 */
static int document_take (struct document *doc, idt_future_t *f)
{
    idt_error_t error;
    json_t *answer;

    if (idt_rpc_get_unpack (f, "o", &answer) < 0)
        return -1;
    int rc = docsession_take (&doc->session, answer, &error), saved = errno;
    if (rc < 0 && errno == EPROTO)
        idt_log (doc->service->h, LOG_ERR, "%s: invalid answer of rank 0: %s", doc->session.name, error.text);
    count_taken (doc);
    errno = saved;
    return rc;
}

/* Why an answer ends the session: rank 0 answered with an error, or the answer is for another document. */
static const char *why_gone (const idt_future_t *f)
{
    return idt_future_errnum (f) ? idt_future_error (f) : "another document has its name now";
}

/* Handle the result of a fetch. 'rc' is 0, or -1 with errno set. 'before' is the number of the last range before the
 * fetch.
 */
static void end_fetch (struct document *doc, idt_future_t *f, int rc, int64_t before)
{
    int errnum = rc < 0 ? errno : 0;

    if (errnum)
        docsession_failed (&doc->session);
    if (errnum == ENOTRECOVERABLE)
        refuse (doc, idt_future_error (f));
    else if (errnum) {
        if (docsession_is_final (errnum))
            replica_break (doc->session.replica, why_gone (f));
        pause_fetch (doc);
    }
    else if (!docsession_in_pieces (&doc->session) && replica_missing (doc->session.replica)
             && replica_seq (doc->session.replica) == before)
        pause_fetch (doc); /* no progress: pause, to avoid a busy loop */
    else
        document_resume (&doc->missing);
    idt_future_destroy (f);
    document_turn (doc);
}

/* The document was renamed from 'before'. Sessions of other documents that have the new name ask rank 0 for their own
 * new name.
 */
static void document_renamed (struct document *doc, const char *before)
{
    struct document *other;

    idt_log (doc->service->h, LOG_INFO, "document %s was renamed to %s", before, doc->session.name);
    LIST_FOREACH (other, &doc->service->documents, link)
        if (other != doc && strcmp (other->session.name, doc->session.name) == 0)
            other->session.ask = true;
    service_arm (doc->service);
}

static void fetched_cb (idt_future_t *f, void *arg)
{
    struct document *doc = arg;
    int64_t before = replica_seq (doc->session.replica);
    char name[DOCWIRE_NAME_MAX + 1];

    doc->fetching = NULL;
    strcpy (name, doc->session.name);
    int rc = document_take (doc, f);
    if (strcmp (name, doc->session.name) != 0)
        document_renamed (doc, name);
    if (rc == 0)
        *doc->refused = '\0';
    end_fetch (doc, f, rc, before);
}

static void fetch (struct document *doc)
{
    if (doc->fetching || doc->missing.until_ms || !docsession_topic (&doc->session))
        return;
    doc->service->counters.fetches += !docsession_in_pieces (&doc->session);
    doc->fetching = document_ask (doc);
    if (doc->fetching
        && idt_future_then (doc->fetching, (double)doc->service->options.timeout_ms, fetched_cb, doc) == 0)
        return;
    idt_future_destroy (doc->fetching);
    doc->fetching = NULL;
    docsession_failed (&doc->session);
    pause_fetch (doc);
}

/* --- announce ------------------------------------------------------------------------------------------- */

static void pause_announcing (struct document *doc)
{
    replica_announce_again (doc->session.replica);
    document_pause (doc, &doc->announcing);
}

/* Rank 0 refused the announcement for now. Give the reason to the requests that wait. The caller repeats the
 * announcement after a pause.
 */
static void tell_reason (struct document *doc, const struct range_relay_result *result)
{
    finals_fail (doc, UINT64_MAX, result->errnum, result->text);
    document_stay_open (doc, result->errnum, result->text);
}

/* Rank 0 answered the announced range. */
static void announced_cb (void *arg, size_t index, const struct range_relay_result *result)
{
    struct document *doc = arg;

    doc->announced = NULL;
    if (result->errnum == 0) {
        document_resume (&doc->announcing);
        replica_heard (doc->session.replica, result->seq);
    }
    else if (docsession_is_final (result->errnum))
        replica_break (doc->session.replica, result->text ? result->text : "rank 0 refused the announced range");
    else if (result->errnum == ENOTRECOVERABLE) {
        replica_announce_again (doc->session.replica);
        refuse (doc, result->text ? result->text : strerror (result->errnum));
    }
    else {
        if (result->errnum != EHOSTUNREACH && result->errnum != EAGAIN)
            tell_reason (doc, result);
        pause_announcing (doc);
    }
    document_turn (doc);
}

static void announce (struct document *doc)
{
    const struct idcomp_range *range;

    if (doc->announced || doc->announcing.until_ms || *doc->refused
        || !(range = replica_announce (doc->session.replica)))
        return;
    doc->announced = range_relay_add_new (doc->service->relay,
                                          (struct range_relay_element){
                                              .reply = announced_cb,
                                              .arg = doc,
                                              .text = docsession_announcement (&doc->session, range),
                                              .nranges = 1,
                                              .deadline_ms = RANGE_RELAY_NEVER });
    if (doc->announced)
        submit_turn (doc->service);
    else
        pause_announcing (doc);
}

/* --- work that is due ------------------------------------------------------------------------------------- */

static void document_turn (struct document *doc)
{
    const char *broken = replica_broken (doc->session.replica);

    assert (doc->session.replica && doc->state != OPENING);
    if (!*doc->refused)
        finals_answer (doc);
    if (broken)
        finals_fail (doc, UINT64_MAX, ESTALE, broken);
    if (doc->state == CLOSING && broken)
        document_destroy (doc, ESTALE, broken);
    else if (doc->state == CLOSING && *doc->refused)
        document_destroy (doc, ENOTRECOVERABLE, doc->refused);
    else if (doc->state == CLOSING && replica_settled (doc->session.replica))
        document_destroy (doc, 0, NULL);
    else {
        fetch (doc);
        announce (doc);
    }
}

void document_made (struct document *doc, const idt_msg_t *msg, const struct idcomp_run *runs, int nruns)
{
    if (msg)
        finals_await (doc, msg, runs, nruns);
    document_turn (doc);
}

/* Fail requests whose deadline is over, and end pauses. */
static void take_time (struct document *doc, uint64_t now_ms)
{
    if (doc->announcing.until_ms <= now_ms)
        doc->announcing.until_ms = 0;
    if (doc->missing.until_ms <= now_ms)
        doc->missing.until_ms = 0;
    finals_fail (doc, now_ms, EHOSTUNREACH, "rank 0 was not reached in time: these ids will become final later");
    if (doc->state == CLOSING && doc->deadline_ms <= now_ms)
        document_stay_open (doc, EHOSTUNREACH, "rank 0 was not reached in time");
}

static bool waits (const struct document *doc)
{
    return doc->nfinals > 0 || doc->state != OPEN || doc->announcing.until_ms || doc->missing.until_ms;
}

void documents_tick (struct compressor *sv)
{
    struct document *doc, *next;
    uint64_t now_ms = clock_ms (CLOCK_MONOTONIC);

    for (doc = LIST_FIRST (&sv->documents); doc; doc = next) {
        next = LIST_NEXT (doc, link);
        take_time (doc, now_ms);
        if (waits (doc))
            service_arm (sv);
        if (doc->session.replica)
            document_turn (doc);
        else if (doc->deadline_ms <= now_ms)
            document_destroy (doc, EHOSTUNREACH, "rank 0 was not reached in time: open it again");
    }
}

/* Handle event.lost: events were lost, or the path to rank 0 changed. End all pauses, and ask rank 0 for missing
 * ranges.
 */
void document_lost_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct compressor *sv = arg;
    struct document *doc;

    LIST_FOREACH (doc, &sv->documents, link) {
        doc->session.ask = true;
        document_resume (&doc->announcing);
        document_resume (&doc->missing);
    }
    documents_tick (sv);
}

void documents_destroy (struct compressor *sv)
{
    while (LIST_FIRST (&sv->documents))
        document_destroy (LIST_FIRST (&sv->documents), EHOSTUNREACH, SERVICE_STOPPING);
}

void documents_forget (struct compressor *sv, const idt_msg_t *disconnect)
{
    struct document *doc;

    LIST_FOREACH (doc, &sv->documents, link) {
        finals_forget (doc, disconnect);
        compressor_forget (&doc->openers, disconnect);
        compressor_forget (&doc->closers, disconnect);
    }
}

size_t documents_awaited (const struct compressor *sv)
{
    const struct document *doc;
    size_t n = 0;

    LIST_FOREACH (doc, &sv->documents, link)
        n += doc->openers.count + doc->closers.count + doc->nfinals;
    return n;
}

/* --- events --------------------------------------------------------------------------------------------- */

static void hear (struct document *doc, const idt_msg_t *msg, const json_t *event)
{
    struct compressor *sv = doc->service;
    idt_error_t error;

    if (docsession_hear (&doc->session, event, &error) < 0 && errno == EPROTO)
        idt_log (sv->h, LOG_ERR, "%s: %s", idt_msg_topic (msg), error.text);
    count_taken (doc);
    document_turn (doc);
}

/* Apply an event to the documents of its name. The event may still be for another document: for one of an earlier or
 * later instance, or for one that was deleted. docsession_hear () finds out.
 */
void document_ranges_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct compressor *sv = arg;
    const char *name = idt_msg_topic (msg) + strlen (DOCWIRE_EVENT_PREFIX);
    struct document *doc, *next;
    idt_error_t error;
    json_t *event = NULL;

    for (doc = LIST_FIRST (&sv->documents); doc; doc = next) {
        next = LIST_NEXT (doc, link);
        if (strcmp (doc->session.name, name) != 0 || !doc->session.replica)
            continue;
        sv->counters.events += !event;
        if (!event && !(event = idt_msg_json (msg, &error))) {
            idt_log (h, LOG_ERR, "%s: %s", idt_msg_topic (msg), error.text);
            break;
        }
        hear (doc, msg, event);
    }
    json_decref (event);
}

/* --- which document ----------------------------------------------------------------------------------------- */

/* Find a document by its name. Two documents may have the name, because one of them was renamed: its session was not
 * notified yet, or is broken. In that case the broken one is returned, because the requester may mean that one. Until
 * the broken session is closed, requesters get the error of that session.
 */
static struct document *find_name (struct compressor *sv, const char *name)
{
    struct document *doc, *found = NULL;

    LIST_FOREACH (doc, &sv->documents, link)
        if (strcmp (doc->session.name, name) == 0
            && (!found || (doc->session.replica && replica_broken (doc->session.replica))))
            found = doc;
    return found;
}

/* The session, other than 'other' (may be NULL), that has joined the document with UUID 'uuid'. */
static struct document *find_uuid (struct compressor *sv, const char *uuid, const struct document *other)
{
    struct document *doc;

    LIST_FOREACH (doc, &sv->documents, link)
        if (doc != other && doc->session.replica && strcmp (doc->session.uuid, uuid) == 0)
            return doc;
    return NULL;
}

/* --- open ------------------------------------------------------------------------------------------------- */

static void set_deadline (struct document *doc)
{
    doc->deadline_ms = clock_ms (CLOCK_MONOTONIC) + doc->service->options.timeout_ms;
    service_arm (doc->service);
}

/* The answer to all requests to open the document. */
static json_t *describe (const struct document *doc)
{
    return json_pack ("{s:s s:s s:s s:I}", "document", doc->session.name, "uuid", doc->session.uuid, "session",
                      idcomp_session (replica_ids (doc->session.replica)), "seq",
                      (json_int_t)replica_seq (doc->session.replica));
}

static void opened (struct document *doc)
{
    json_t *o = describe (doc);
    char *s = o ? json_dumps (o, JSON_COMPACT) : NULL;

    doc->state = OPEN;
    service_respond_all (doc->service, &doc->openers, s ? 0 : ENOMEM, s);
    free (s);
    json_decref (o);
    document_turn (doc);
}

/* Destroy 'doc', because it turned out to be the document that 'twin' has open under an earlier name. A rank has only
 * one session per document.
 */
static void give_way (struct document *doc, struct document *twin)
{
    char text[2 * DOCWIRE_NAME_MAX + 100];

    snprintf (text, sizeof (text), "%s: the document is open on this rank under its earlier name %s: try again",
              doc->session.name, twin->session.name);
    twin->session.ask = true;
    document_destroy (doc, EAGAIN, text);
    document_turn (twin);
}

static void joined_cb (idt_future_t *f, void *arg);

/* Wait for the response to a request that opening needs. If 'f' is NULL, the request could not be sent. */
static void expect (struct document *doc, idt_future_t *f, idt_future_f cb)
{
    doc->opening = f;
    if (!f || idt_future_then (f, -1, cb, doc) < 0)
        document_destroy (doc, errno, NULL);
}

/* Request the stored form, or the next piece of it. */
static void join (struct document *doc)
{
    expect (doc, document_ask (doc), joined_cb);
}

/* Handle an answer to a join. If it is EAGAIN between two pieces, rank 0 no longer keeps the form that was being read.
 * Then reading starts again with the newest form.
 */
static void joined_cb (idt_future_t *f, void *arg)
{
    struct document *doc = arg;
    bool anew = docsession_in_pieces (&doc->session) && idt_future_errnum (f) == EAGAIN;

    if (document_take (doc, f) < 0 && !anew) {
        document_destroy (doc, errno, idt_future_errnum (f) ? service_future_error (f) : "invalid answer of rank 0");
        return;
    }
    idt_future_destroy (f);
    doc->opening = NULL;
    if (anew)
        docsession_failed (&doc->session);
    else
        set_deadline (doc);
    struct document *twin = find_uuid (doc->service, doc->session.uuid, doc);
    if (doc->session.replica && twin)
        give_way (doc, twin);
    else if (doc->session.replica)
        opened (doc);
    else
        join (doc);
}

static void subscribed_cb (idt_future_t *f, void *arg)
{
    struct document *doc = arg;
    struct compressor *sv = doc->service;
    int errnum = idt_future_errnum (f);

    doc->opening = NULL;
    if (errnum == 0)
        join (doc);
    while (errnum && LIST_FIRST (&sv->documents)) /* all documents depend on the subscription */
        document_destroy (LIST_FIRST (&sv->documents), errnum, idt_future_error (f));
    idt_future_destroy (f);
}

/* Returns NULL with errno set and 'errp' filled. */
static struct document *document_create (struct compressor *sv, const char *name, idt_error_t *errp)
{
    struct document *doc = calloc (1, sizeof (*doc));

    if (!doc) {
        errprintf (errp, "%s", strerror (errno));
        return NULL;
    }
    if (docsession_init (&doc->session, name, errp) < 0) {
        free (doc);
        return NULL;
    }
    doc->service = sv;
    TAILQ_INIT (&doc->finals);
    set_deadline (doc);
    LIST_INSERT_HEAD (&sv->documents, doc, link);
    sv->ndocuments++;
    return doc;
}

/* The first document subscribes for all documents, because a rank may have more documents than a broker grants
 * subscriptions. The join is sent after the subscription, and the broker handles it after the subscription.
 */
static void begin_opening (struct document *doc)
{
    if (doc->service->ndocuments > 1)
        join (doc);
    else
        expect (doc, idt_event_subscribe (doc->service->h, DOCWIRE_EVENT_PREFIX), subscribed_cb);
}

static void open_document (struct compressor *sv, const idt_msg_t *msg, const char *name)
{
    struct document *doc = find_name (sv, name);
    idt_error_t error;

    if (doc && doc->session.replica && replica_broken (doc->session.replica))
        service_respond_error (sv, msg, ESTALE, replica_broken (doc->session.replica));
    else if (doc && *doc->refused)
        service_respond_error (sv, msg, ENOTRECOVERABLE, doc->refused);
    else if (doc && doc->state == OPEN)
        module_respond_object (sv->h, msg, describe (doc));
    else if (doc && doc->state == CLOSING)
        service_respond_error (sv, msg, EBUSY, "the document is being closed: open it again later");
    else if (!doc && sv->ndocuments >= sv->options.max_documents)
        service_respond_error (sv, msg, EDQUOT, "compressor.max-documents documents are open on this rank: close one");
    else if (doc)
        service_queue (sv, &doc->openers, msg);
    else if (!(doc = document_create (sv, name, &error)))
        service_respond_error (sv, msg, errno, error.text);
    else {
        doc->opener = idt_msg_cred (msg);
        service_queue (sv, &doc->openers, msg);
        begin_opening (doc);
    }
}

void document_open_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    idt_error_t error;
    const char *name;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &error, "{s:s}", "document", &name) < 0)
        service_respond_error (arg, msg, EPROTO, error.text);
    else
        open_document (arg, msg, name);
    json_decref (o);
}

/* --- methods of an open document ---------------------------------------------------------------------------- */

struct document *document_asked (struct compressor *sv, const idt_msg_t *msg, const char *name, const char *uuid)
{
    struct document *doc = uuid ? find_uuid (sv, uuid, NULL) : find_name (sv, name);
    char text[DOCWIRE_NAME_MAX + IDCOMP_UUID_TEXT_MAX + 120];

    if (doc && doc->state != OPENING)
        return doc;
    snprintf (text, sizeof (text),
              "document '%.*s'%s%.40s is not open on rank %u: open it there first (idtree doc open)", DOCWIRE_NAME_MAX,
              name, uuid ? " with UUID " : "", uuid ? uuid : "", sv->options.rank);
    service_respond_error (sv, msg, ENOENT, text);
    return NULL;
}

/* --- close ------------------------------------------------------------------------------------------------ */

static void discard (struct document *doc, const idt_msg_t *msg)
{
    struct compressor *sv = doc->service;

    finals_fail (doc, UINT64_MAX, ECANCELED, "the session was closed, and its ids discarded");
    document_destroy (doc, 0, NULL);
    module_respond (sv->h, msg, NULL);
}

static void close_document (struct document *doc, const idt_msg_t *msg)
{
    if (service_queue (doc->service, &doc->closers, msg) < 0)
        return;
    if (doc->state != CLOSING)
        set_deadline (doc);
    doc->state = CLOSING;
    document_resume (&doc->announcing);
    document_turn (doc);
}

void document_close_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct compressor *sv = arg;
    struct document *doc;
    idt_error_t error;
    const char *name, *uuid = NULL;
    int without = 0;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &error, "{s:s s?s s?b}", "document", &name, "uuid", &uuid, "discard", &without) < 0)
        service_respond_error (sv, msg, EPROTO, error.text);
    else if ((doc = document_asked (sv, msg, name, uuid)))
        (without ? discard : close_document) (doc, msg);
    json_decref (o);
}
