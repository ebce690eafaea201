/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document.c - a document that is open on this rank: opening, closing, time
 *
 * The first document subscribes to events, for all documents. Then each one joins: rank 0 answers with the stored form
 * before it publishes later ranges, so no range is missed. Every later event ends in document_turn (), which does what
 * is due and may destroy the document; its caller must not use the document afterwards.
 *
 * Requests to open or close a document are answered within compressor.timeout. A session that could not be closed stays
 * open.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "libutil/errprintf.h"
#include "modules/compressor/document_private.h"

#define PAUSE_MAX_MS 5000

/* --- pauses --------------------------------------------------------------------------------------------- */

void document_pause (struct document *doc, struct pause *pause)
{
    pause->last_ms = pause->last_ms == 0 ? SERVICE_PAUSE_MS : 2 * pause->last_ms;
    if (pause->last_ms > PAUSE_MAX_MS)
        pause->last_ms = PAUSE_MAX_MS;
    pause->until_ms = compressor_now_ms () + pause->last_ms;
    service_arm (doc->service);
}

void document_resume (struct pause *pause)
{
    *pause = (struct pause){ 0 };
}

/* --- end ------------------------------------------------------------------------------------------------ */

void document_destroy (struct document *doc, int errnum, const char *text)
{
    LIST_REMOVE (doc, link);
    if (--doc->service->ndocuments == 0)
        idt_future_destroy (idt_event_unsubscribe (doc->service->h, DOCWIRE_EVENT_PREFIX));
    document_fail_finals (doc, UINT64_MAX, errnum, text);
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

void document_stay_open (struct document *doc, int errnum, const char *text)
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

/* --- work that is due ------------------------------------------------------------------------------------- */

void document_turn (struct document *doc)
{
    const char *broken = replica_broken (doc->session.replica);

    if (!*doc->refused)
        document_answer_finals (doc);
    if (broken)
        document_fail_finals (doc, UINT64_MAX, ESTALE, broken);
    if (doc->state == CLOSING && broken)
        document_destroy (doc, ESTALE, broken);
    else if (doc->state == CLOSING && *doc->refused)
        document_destroy (doc, ENOTRECOVERABLE, doc->refused);
    else if (doc->state == CLOSING && replica_settled (doc->session.replica))
        document_destroy (doc, 0, NULL);
    else
        document_exchange (doc);
}

void document_made (struct document *doc, const idt_msg_t *msg, const struct idcomp_run *runs, int nruns)
{
    if (msg)
        document_await_final (doc, msg, runs, nruns);
    document_turn (doc);
}

/* Fail requests whose time is over, and end pauses. */
static void take_time (struct document *doc, uint64_t now_ms)
{
    if (doc->announcing.until_ms <= now_ms)
        doc->announcing.until_ms = 0;
    if (doc->missing.until_ms <= now_ms)
        doc->missing.until_ms = 0;
    document_fail_finals (doc, now_ms, EHOSTUNREACH,
                          "rank 0 was not reached in time: these ids will become final later");
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
    uint64_t now_ms = compressor_now_ms ();

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

/* Events were lost, or the path to rank 0 changed: end all pauses, and ask rank 0 for missing ranges. */
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
        document_forget_finals (doc, disconnect);
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

/* Find a document by its name. If two have the name, one was renamed, and either its session does not know yet or is
 * broken. The broken one is returned: the requester may mean it, and gets its error until that session is closed.
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

/* The session, other than 'other' (may be NULL), that has joined the document with this UUID. */
static struct document *find_uuid (struct compressor *sv, const char *uuid, const struct document *other)
{
    struct document *doc;

    LIST_FOREACH (doc, &sv->documents, link)
        if (doc != other && doc->session.replica && strcmp (doc->session.uuid, uuid) == 0)
            return doc;
    return NULL;
}

void document_renamed (struct document *doc, const char *before)
{
    struct document *other;

    idt_log (doc->service->h, LOG_INFO, "document %s was renamed to %s", before, doc->session.name);
    LIST_FOREACH (other, &doc->service->documents, link)
        if (other != doc && strcmp (other->session.name, doc->session.name) == 0)
            other->session.ask = true;
    service_arm (doc->service);
}

/* --- open ------------------------------------------------------------------------------------------------- */

static void set_deadline (struct document *doc)
{
    doc->deadline_ms = compressor_now_ms () + doc->service->options.timeout_ms;
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

/* 'doc' turns out to be the document that 'twin' has open under its earlier name. A rank has one session per document,
 * so 'doc' ends.
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

/* Wait for the response to a request of opening; f NULL: it could not be sent. */
static void expect (struct document *doc, idt_future_t *f, idt_future_f cb)
{
    doc->opening = f;
    if (!f || idt_future_then (f, -1, cb, doc) < 0)
        document_destroy (doc, errno, NULL);
}

/* Request the stored form, or its next piece. */
static void join (struct document *doc)
{
    expect (doc, document_ask (doc), joined_cb);
}

/* If rank 0 no longer keeps the form whose pieces were being read, start with the newest form. */
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

/* The first document subscribes for all, because a rank may have more documents than a broker grants subscriptions. The
 * join is sent after the subscription, and is handled after it.
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

    document_fail_finals (doc, UINT64_MAX, ECANCELED, "the session was closed, and its ids discarded");
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
