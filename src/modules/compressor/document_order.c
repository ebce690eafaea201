/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document_order.c - ranges that are received in order, ranges that are missing, and ranges that are announced
 *
 * If the replica reports that ranges are missing (after a gap, event.lost, or a newer number in an answer), they are
 * fetched from rank 0. A fetch or announcement that fails is repeated after a pause, as long as the document is open.
 *
 * Each request to rank 0 contains a digest of the history that was finalized here, and each event contains one, too. An
 * event that does not continue this history is not applied; instead rank 0 is asked, which compares the digests
 * (tasks.c). While rank 0 refuses the document no ids are made in it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "modules/compressor/document_private.h"

/* --- retries -------------------------------------------------------------------------------------------- */

static void pause_fetch (struct document *doc)
{
    doc->session.ask = true;
    document_pause (doc, &doc->missing);
}

/* Rank 0 and this rank disagree about final ids. Rank 0 is asked again after a pause, because an operator may restore
 * the right copy.
 */
static void refuse (struct document *doc, const char *text)
{
    if (!*doc->refused)
        idt_log (doc->service->h, LOG_CRIT, "%s", text);
    snprintf (doc->refused, sizeof (doc->refused), "%s", text);
    document_fail_finals (doc, UINT64_MAX, ENOTRECOVERABLE, doc->refused);
    pause_fetch (doc);
}

/* --- fetch ---------------------------------------------------------------------------------------------- */

/* If the join creates the document, its owner is the user who opens it, so the request carries that user. */
idt_future_t *document_ask (struct document *doc)
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

int document_take (struct document *doc, idt_future_t *f)
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

/* Why an answer ends the session: an error of rank 0, or the answer is for another document. */
static const char *why_gone (const idt_future_t *f)
{
    return idt_future_errnum (f) ? idt_future_error (f) : "another document has its name now";
}

/* Handle the result of a fetch: rc 0, or -1 with errno set. 'before' is the number of the last range before the fetch.
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

static void announced_cb (void *arg, size_t index, const struct range_relay_result *result);

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

void document_exchange (struct document *doc)
{
    fetch (doc);
    announce (doc);
}

/* Rank 0 refused for now: requests that wait get the reason, and the announcement is repeated after a pause. */
static void tell_reason (struct document *doc, const struct range_relay_result *result)
{
    document_fail_finals (doc, UINT64_MAX, result->errnum, result->text);
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

/* An event with the name of a document may be for another document: of an earlier or later instance, or a deleted one.
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
