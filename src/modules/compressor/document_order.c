/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document_order.c - the order of ranges as it is heard, what is missing of it, and the ranges that are announced
 *
 * What the replica says is missing is fetched from rank 0, whatever the reason: a gap, event.lost, a newer number in an
 * answer.  What fails is tried again after a pause, for as long as the document is open.
 *
 * Whatever is sent to rank 0 tells which history was finalized here, and so does an event: what does not continue it is not
 * taken, and rank 0 is asked (root_tasks.c).  While it refuses the document nothing is made in it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "modules/compressor/document_private.h"

/* --- refused -------------------------------------------------------------------------------------------- */

/* Rank 0 and this rank disagree about what is final.  It is asked again: somebody may put the right copy in place. */
static void refuse (struct document *doc, const char *text)
{
    if (!*doc->refused)
        idt_log (doc->service->h, LOG_CRIT, "%s", text);
    snprintf (doc->refused, sizeof (doc->refused), "%s", text);
    document_fail_finals (doc, UINT64_MAX, ENOTRECOVERABLE, doc->refused);
    doc->fetch = true;
    document_pause (doc, &doc->missing);
}

/* --- fetch ---------------------------------------------------------------------------------------------- */

static void pause_fetch (struct document *doc)
{
    doc->fetch = true;
    document_pause (doc, &doc->missing);
}

/* Returns 0, or -1 if not all of them could be applied. */
static int apply_ranges (struct document *doc, int64_t seq, const json_t *ranges)
{
    struct idcomp_range range;
    idt_error_t error;
    size_t i;
    json_t *o;

    json_array_foreach (ranges, i, o) {
        if (seq + (int64_t)i <= replica_seq (doc->replica))
            continue;
        if (wire_get_range (o, &range, &error) < 0) {
            idt_log (doc->service->h, LOG_ERR, "%s: range %lld: %s", doc->name, (long long)seq + (long long)i,
                     error.text);
            return -1;
        }
        int rc = replica_apply (doc->replica, seq + (int64_t)i, &range);
        idcomp_range_fini (&range);
        if (rc < 0)
            return -1;
        doc->service->counters.applied++;
    }
    return 0;
}

/* --- stored forms ----------------------------------------------------------------------------------------- */

idt_future_t *document_ask_piece (const struct document *doc)
{
    return idt_rpc_pack (doc->service->h, "compressor.state", 0, 0, "{s:s s:s s:I s:I}", "document", doc->name, "uuid",
                         doc->uuid, "seq", (json_int_t)doc->pieces.seq, "offset", (json_int_t)doc->pieces.text);
}

int document_take_piece (struct document *doc, idt_future_t *f)
{
    const char *state;
    json_int_t seq;

    if (idt_rpc_get_unpack (f, "{s:I s:s}", "seq", &seq, "state", &state) < 0)
        return -1;
    return pieces_add (&doc->pieces, seq, state);
}

static void fetched_cb (idt_future_t *f, void *arg);
static void piece_cb (idt_future_t *f, void *arg);

/* Keep the request that 'f' is (NULL: it could not be sent) until it is answered. */
static void expect (struct document *doc, idt_future_t *f, idt_future_f cb)
{
    doc->fetching = f;
    if (f && idt_future_then (f, (double)doc->service->options.timeout_ms, cb, doc) == 0)
        return;
    idt_future_destroy (f);
    doc->fetching = NULL;
    pause_fetch (doc);
}

/* Take over the form where it is whole, else have its next piece.  Returns 0, or -1 with errno set. */
static int go_on_with_form (struct document *doc)
{
    if (!pieces_whole (&doc->pieces)) {
        expect (doc, document_ask_piece (doc), piece_cb);
        return 0;
    }
    int rc = replica_load (doc->replica, doc->pieces.form, doc->pieces.size, doc->pieces.seq);
    pieces_fini (&doc->pieces);
    doc->service->counters.loads++;
    return rc;
}

/* --- what was fetched ------------------------------------------------------------------------------------ */

static int take_fetched (struct document *doc, idt_future_t *f)
{
    const char *state = NULL;
    json_t *ranges = NULL;
    json_int_t seq, newest, size = 0;

    if (idt_rpc_get_unpack (f, "{s:I s:I s?s s?I s?o}", "newest", &newest, "seq", &seq, "state", &state, "size", &size,
                            "ranges", &ranges)
        < 0)
        return -1;
    *doc->refused = '\0';
    replica_heard (doc->replica, newest);
    if (!state)
        return ranges ? apply_ranges (doc, seq, ranges) : -1;
    return pieces_begin (&doc->pieces, seq, state, size) < 0 ? -1 : go_on_with_form (doc);
}

/* An answer was taken ('rc' 0), or is an error.  'before': how far the replica was. */
static void end_fetch (struct document *doc, idt_future_t *f, int rc, int64_t before)
{
    int errnum = rc < 0 ? errno : 0;
    int64_t from;

    if (errnum == ENOTRECOVERABLE)
        refuse (doc, idt_future_error (f));
    else if (errnum) {
        if (errnum == ESTALE || errnum == ENOENT)
            replica_break (doc->replica, "its document is gone: rank 0 has another one of that name, or none");
        pause_fetch (doc);
    }
    else if (!doc->fetching && replica_missing (doc->replica, &from) && replica_seq (doc->replica) == before)
        pause_fetch (doc); /* no progress: not in a loop */
    else
        document_resume (&doc->missing);
    idt_future_destroy (f);
    document_turn (doc);
}

static void fetched_cb (idt_future_t *f, void *arg)
{
    struct document *doc = arg;
    int64_t before = replica_seq (doc->replica);

    doc->fetching = NULL;
    end_fetch (doc, f, take_fetched (doc, f), before);
}

static void piece_cb (idt_future_t *f, void *arg)
{
    struct document *doc = arg;
    int64_t before = replica_seq (doc->replica);

    doc->fetching = NULL;
    end_fetch (doc, f, document_take_piece (doc, f) < 0 ? -1 : go_on_with_form (doc), before);
}

static void fetch (struct document *doc)
{
    int64_t from;
    bool missing = replica_missing (doc->replica, &from);
    char digest[REPLICA_DIGEST_TEXT];

    if (doc->fetching || doc->missing.until_ms || !(missing || doc->fetch) || replica_broken (doc->replica))
        return;
    doc->fetch = false;
    replica_digest (doc->replica, digest);
    doc->service->counters.fetches++;
    expect (doc,
            idt_rpc_pack (doc->service->h, "compressor.fetch", 0, 0, "{s:s s:s s:I s:s}", "document", doc->name, "uuid",
                          doc->uuid, "from", (json_int_t)(replica_seq (doc->replica) + 1), "digest", digest),
            fetched_cb);
}

/* --- announce ------------------------------------------------------------------------------------------- */

static void pause_announcing (struct document *doc)
{
    replica_announce_again (doc->replica);
    document_pause (doc, &doc->announcing);
}

static int hand_over (struct document *doc, const struct idcomp_range *range)
{
    struct ticket *ticket = malloc (sizeof (*ticket));
    char digest[REPLICA_DIGEST_TEXT];

    if (!ticket)
        return -1;
    *ticket = (struct ticket){ .document = doc };
    replica_digest (doc->replica, digest);
    char *text = wire_element (doc->name, doc->uuid, replica_seq (doc->replica), digest, range);
    if (relay_add_new (doc->service->relay, relay_element_new (ticket, text, 1, RELAY_NEVER)) < 0) {
        free (ticket);
        return -1;
    }
    doc->ticket = ticket;
    return 0;
}

static void announce (struct document *doc)
{
    const struct idcomp_range *range;

    if (doc->ticket || doc->announcing.until_ms || *doc->refused || !(range = replica_announce (doc->replica)))
        return;
    if (hand_over (doc, range) < 0)
        pause_announcing (doc);
    else
        uplink_turn (doc->service);
}

void document_exchange (struct document *doc)
{
    fetch (doc);
    announce (doc);
}

void document_announced (struct document *doc, const struct relay_result *result)
{
    doc->ticket = NULL;
    switch (result->errnum) {
    case 0:
        document_resume (&doc->announcing);
        replica_heard (doc->replica, result->seq);
        break;
    case EINVAL:
    case ESTALE:
    case ENOENT:
        replica_break (doc->replica, result->text ? result->text : "rank 0 refused what it announced");
        break;
    case ENOTRECOVERABLE:
        replica_announce_again (doc->replica);
        refuse (doc, result->text ? result->text : strerror (result->errnum));
        break;
    case EHOSTUNREACH:
    case EAGAIN:
        pause_announcing (doc);
        break;
    default: /* rank 0 says why not now: that is for those who wait, and the ids go on trying */
        document_fail_finals (doc, UINT64_MAX, result->errnum, result->text);
        document_stay_open (doc, result->errnum, result->text);
        pause_announcing (doc);
    }
    document_turn (doc);
}

/* --- events --------------------------------------------------------------------------------------------- */

/* Whether the ranges of an event go on where we are.  If they do not, rank 0 is asked: they may be known, some may be
 * missing, or they are of another history.
 */
static bool continues (struct document *doc, int64_t seq, size_t n, const char *digest)
{
    char ours[REPLICA_DIGEST_TEXT];

    replica_digest (doc->replica, ours);
    if (seq == replica_seq (doc->replica) + 1 && (!digest || strcmp (digest, ours) == 0))
        return true;
    replica_heard (doc->replica, seq + (int64_t)n - 1);
    doc->fetch = true;
    return false;
}

/* An event of the same name may be of another document: of an instance before, or after. */
void document_ranges_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;
    struct document *doc = document_find (sv, idt_msg_topic (msg) + strlen (WIRE_EVENT_PREFIX));
    idt_error_t error;
    const char *uuid, *digest = NULL;
    json_t *o, *ranges;
    json_int_t seq;

    if (!doc || !doc->replica)
        return;
    sv->counters.events++;
    if (idt_msg_unpack (msg, &o, &error, "{s:s s:I s?s s:o}", "uuid", &uuid, "seq", &seq, "digest", &digest, "ranges",
                        &ranges)
        < 0) {
        idt_log (h, LOG_ERR, "%s: %s", idt_msg_topic (msg), error.text);
        return;
    }
    if (strcmp (uuid, doc->uuid) == 0) {
        if (continues (doc, seq, json_array_size (ranges), digest))
            apply_ranges (doc, seq, ranges);
        document_turn (doc);
    }
    json_decref (o);
}
