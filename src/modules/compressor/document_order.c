/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document_order.c - the order of ranges as it is heard, what is missing of it, and the ranges that are announced
 *
 * What the replica says is missing is fetched from rank 0, whatever the reason: a gap, event.lost, a newer number in an
 * answer.  What fails is tried again after a pause, for as long as the document is open.
 *
 * Whatever is sent to rank 0 tells which history was finalized here, and so does an event: what does not continue it is
 * not taken, and rank 0 is asked (tasks.c).  While it refuses the document nothing is made in it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "modules/compressor/document_private.h"

/* --- what is tried again -------------------------------------------------------------------------------- */

static void pause_fetch (struct document *doc)
{
    doc->session.ask = true;
    document_pause (doc, &doc->missing);
}

/* Rank 0 and this rank disagree about what is final.  It is asked again: somebody may put the right copy in place. */
static void refuse (struct document *doc, const char *text)
{
    if (!*doc->refused)
        idt_log (doc->service->h, LOG_CRIT, "%s", text);
    snprintf (doc->refused, sizeof (doc->refused), "%s", text);
    document_fail_finals (doc, UINT64_MAX, ENOTRECOVERABLE, doc->refused);
    pause_fetch (doc);
}

/* --- fetch ---------------------------------------------------------------------------------------------- */

/* A document that is made by joining is of who opens it. */
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

/* What the session took is counted for all. */
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
        idt_log (doc->service->h, LOG_ERR, "%s: an answer of rank 0: %s", doc->session.name, error.text);
    count_taken (doc);
    errno = saved;
    return rc;
}

/* Why an answer ends the session: rank 0 said it, or told of another document. */
static const char *why_gone (const idt_future_t *f)
{
    return idt_future_errnum (f) ? idt_future_error (f) : "another document has its name now";
}

/* The answer was taken ('rc' 0), or is an error.  'before': how far the replica was. */
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
        pause_fetch (doc); /* no progress: not in a loop */
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

static void announced_cb (void *arg, size_t index, const struct relay_result *result);

static void announce (struct document *doc)
{
    const struct idcomp_range *range;

    if (doc->announced || doc->announcing.until_ms || *doc->refused
        || !(range = replica_announce (doc->session.replica)))
        return;
    doc->announced = relay_add_new (doc->service->relay,
                                    (struct relay_element){ .reply = announced_cb,
                                                            .arg = doc,
                                                            .text = docsession_announcement (&doc->session, range),
                                                            .nranges = 1,
                                                            .deadline_ms = RELAY_NEVER });
    if (doc->announced)
        uplink_turn (doc->service);
    else
        pause_announcing (doc);
}

void document_exchange (struct document *doc)
{
    fetch (doc);
    announce (doc);
}

/* Rank 0 says why not now: that is for those who wait, and the ids go on trying. */
static void tell_reason (struct document *doc, const struct relay_result *result)
{
    document_fail_finals (doc, UINT64_MAX, result->errnum, result->text);
    document_stay_open (doc, result->errnum, result->text);
}

/* Rank 0 answered what was announced. */
static void announced_cb (void *arg, size_t index, const struct relay_result *result)
{
    struct document *doc = arg;

    doc->announced = NULL;
    if (result->errnum == 0) {
        document_resume (&doc->announcing);
        replica_heard (doc->session.replica, result->seq);
    }
    else if (docsession_is_final (result->errnum))
        replica_break (doc->session.replica, result->text ? result->text : "rank 0 refused what it announced");
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
    struct service *sv = doc->service;
    idt_error_t error;

    if (docsession_hear (&doc->session, event, &error) < 0 && errno == EPROTO)
        idt_log (sv->h, LOG_ERR, "%s: %s", idt_msg_topic (msg), error.text);
    count_taken (doc);
    document_turn (doc);
}

/* An event of the same name may be of another document: of an instance before, or after, or one that was deleted. */
void document_ranges_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;
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
