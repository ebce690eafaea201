/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document.c - a document that is open on this rank
 *
 * Opening subscribes, then joins: rank 0 answers with its stored form before it publishes what comes after it, so no
 * range is missed.  From then on whatever happens ends in document_turn (), which does what has become due, and ends
 * the document where that is over; who calls it must not use the document afterwards.
 *
 * What the replica says is missing is fetched from rank 0, whatever the reason: a gap, event.lost, a newer number in an
 * answer.  What fails is tried again after a pause, for as long as the document is open.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <syslog.h>

#include "modules/compressor/service.h"

enum state { OPENING, OPEN, CLOSING };

/* A request for final ids. */
struct final {
    TAILQ_ENTRY (final) link;
    const idt_msg_t *msg;
    int64_t last; /* generation count */
    uint64_t deadline_ms;
    struct idcomp_run runs[2];
    int nruns;
};

struct document {
    LIST_ENTRY (document) link;
    struct service *service;
    char name[WIRE_NAME_MAX + 1];
    char uuid[IDCOMP_UUID_TEXT];
    enum state state;
    struct replica *replica; /* NULL while OPENING */
    struct fifo openers;
    struct fifo closers;
    TAILQ_HEAD (, final) finals; /* in order of 'last' */
    uint32_t nfinals;
    idt_future_t *opening; /* subscribe, then join */
    idt_future_t *fetching;
    bool fetch; /* also where nothing is known to be missing */
    struct ticket *ticket; /* what is announced is with the relay */
    bool announce_paused; /* until the timer */
    bool fetch_paused;
};

static void document_turn (struct document *doc);

/* --- end ------------------------------------------------------------------------------------------------ */

static void drop_final (struct document *doc, struct final *final)
{
    TAILQ_REMOVE (&doc->finals, final, link);
    doc->nfinals--;
    idt_msg_unref (final->msg);
    free (final);
}

/* Those whose deadline has come; all of them: UINT64_MAX. */
static void fail_finals (struct document *doc, uint64_t now_ms, int errnum, const char *text)
{
    struct final *final;

    while ((final = TAILQ_FIRST (&doc->finals)) && final->deadline_ms <= now_ms) {
        service_respond_error (doc->service, final->msg, errnum, text);
        drop_final (doc, final);
    }
}

static void event_topic (const struct document *doc, char topic[sizeof (WIRE_EVENT_PREFIX) + WIRE_NAME_MAX])
{
    sprintf (topic, WIRE_EVENT_PREFIX "%s", doc->name);
}

/* Whoever waits is answered with the error (0: those who close it, with success). */
static void document_destroy (struct document *doc, int errnum, const char *text)
{
    char topic[sizeof (WIRE_EVENT_PREFIX) + WIRE_NAME_MAX];

    LIST_REMOVE (doc, link);
    doc->service->ndocuments--;
    event_topic (doc, topic);
    idt_future_destroy (idt_event_unsubscribe (doc->service->h, topic));
    fail_finals (doc, UINT64_MAX, errnum, text);
    service_respond_all (doc->service, &doc->openers, errnum, text);
    service_respond_all (doc->service, &doc->closers, errnum, errnum ? text : NULL);
    fifo_fini (&doc->openers);
    fifo_fini (&doc->closers);
    idt_future_destroy (doc->opening);
    idt_future_destroy (doc->fetching);
    if (doc->ticket)
        doc->ticket->document = NULL;
    replica_destroy (doc->replica);
    free (doc);
}

/* --- fetch ---------------------------------------------------------------------------------------------- */

static void pause_fetch (struct document *doc)
{
    doc->fetch = true;
    doc->fetch_paused = true;
    service_arm (doc->service);
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
            idt_log (doc->service->h, LOG_ERR, "%s: range %lld: %s", doc->name, (long long)seq + (long long)i, error.text);
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

static int load_state (struct document *doc, int64_t seq, const char *state)
{
    size_t size;
    void *form = wire_get_form (state, &size);
    int rc = form ? replica_load (doc->replica, form, size, seq) : -1;

    free (form);
    doc->service->counters.loads++;
    return rc;
}

static int take_fetched (struct document *doc, idt_future_t *f)
{
    const char *state = NULL;
    json_t *ranges = NULL;
    json_int_t seq, newest;

    if (idt_rpc_get_unpack (f, "{s:I s:I s?s s?o}", "newest", &newest, "seq", &seq, "state", &state, "ranges", &ranges) < 0)
        return -1;
    replica_heard (doc->replica, newest);
    if (state)
        return load_state (doc, seq, state);
    return ranges ? apply_ranges (doc, seq, ranges) : -1;
}

static void fetched_cb (idt_future_t *f, void *arg)
{
    struct document *doc = arg;
    int64_t before = replica_seq (doc->replica), from;

    if (take_fetched (doc, f) < 0) {
        if (errno == ESTALE || errno == ENOENT)
            replica_break (doc->replica, "its document is gone: rank 0 has another one of that name, or none");
        pause_fetch (doc);
    }
    else if (replica_missing (doc->replica, &from) && replica_seq (doc->replica) == before)
        pause_fetch (doc); /* no progress: not in a loop */
    doc->fetching = NULL;
    idt_future_destroy (f);
    document_turn (doc);
}

static void fetch (struct document *doc)
{
    int64_t from;
    bool missing = replica_missing (doc->replica, &from);

    if (doc->fetching || doc->fetch_paused || !(missing || doc->fetch) || replica_broken (doc->replica))
        return;
    doc->fetch = false;
    doc->fetching = idt_rpc_pack (doc->service->h, "compressor.fetch", 0, 0, "{s:s s:s s:I}", "document", doc->name,
                                  "uuid", doc->uuid, "from", (json_int_t)(replica_seq (doc->replica) + 1));
    doc->service->counters.fetches++;
    if (!doc->fetching || idt_future_then (doc->fetching, -1, fetched_cb, doc) < 0) {
        idt_future_destroy (doc->fetching);
        doc->fetching = NULL;
        pause_fetch (doc);
    }
}

/* --- announce ------------------------------------------------------------------------------------------- */

static void pause_announcing (struct document *doc)
{
    replica_announce_again (doc->replica);
    doc->announce_paused = true;
    service_arm (doc->service);
}

static int hand_over (struct document *doc, const struct idcomp_range *range)
{
    struct ticket *ticket = malloc (sizeof (*ticket));

    if (!ticket)
        return -1;
    *ticket = (struct ticket){ .document = doc };
    char *text = wire_element (doc->name, doc->uuid, range);
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

    if (doc->ticket || doc->announce_paused || !(range = replica_announce (doc->replica)))
        return;
    if (hand_over (doc, range) < 0)
        pause_announcing (doc);
    else
        uplink_turn (doc->service);
}

void document_announced (struct document *doc, const struct relay_result *result)
{
    doc->ticket = NULL;
    switch (result->errnum) {
    case 0:
        replica_heard (doc->replica, result->seq);
        break;
    case EINVAL:
    case ESTALE:
    case ENOENT:
        replica_break (doc->replica, result->text ? result->text : "rank 0 refused what it announced");
        break;
    case EHOSTUNREACH:
    case EAGAIN:
        pause_announcing (doc);
        break;
    default: /* rank 0 says why not now: that is for those who wait, and the ids go on trying */
        fail_finals (doc, UINT64_MAX, result->errnum, result->text);
        pause_announcing (doc);
    }
    document_turn (doc);
}

/* --- final ids ------------------------------------------------------------------------------------------ */

struct run_list {
    struct idcomp_run *v;
    size_t n;
    size_t room;
};

static int append_run (struct run_list *list, struct idcomp_run run)
{
    struct idcomp_run *last = list->n > 0 ? &list->v[list->n - 1] : NULL;

    if (last && last->first + last->count == run.first) {
        last->count += run.count;
        return 0;
    }
    if (list->n == list->room) {
        size_t room = list->room ? 2 * list->room : 4;
        struct idcomp_run *v = realloc (list->v, room * sizeof (*v));
        if (!v)
            return -1;
        list->v = v;
        list->room = room;
    }
    list->v[list->n++] = run;
    return 0;
}

/* Append the final ids of local ids id, id - 1, ...: they rise by one, more where a new cluster begins.  So they follow
 * each other if and only if the last one is as far from the first as it can be at least.
 */
static int append_final (const struct idcomp *c, struct run_list *list, int64_t id, int64_t count)
{
    int64_t first, last;

    if (idcomp_to_op (c, id, &first) < 0 || idcomp_to_op (c, id - (count - 1), &last) < 0)
        return -1;
    if (last - first == count - 1)
        return append_run (list, (struct idcomp_run){ first, count });
    int64_t half = count / 2;
    return append_final (c, list, id, half) < 0 || append_final (c, list, id - half, count - half) < 0 ? -1 : 0;
}

static void answer_final (struct document *doc, const struct final *final)
{
    const struct idcomp *c = replica_ids (doc->replica);
    struct run_list list = { 0 };
    int rc = 0;

    for (int i = 0; rc == 0 && i < final->nruns; i++)
        rc = final->runs[i].first >= 0 ? append_run (&list, final->runs[i])
                                       : append_final (c, &list, final->runs[i].first, final->runs[i].count);
    if (rc < 0)
        service_respond_error (doc->service, final->msg, errno, NULL);
    else
        service_respond_object (doc->service, final->msg,
                                json_pack ("{s:s s:o}", "session", idcomp_session (c), "runs",
                                           methods_pack_runs (list.v, list.n)));
    free (list.v);
}

static void answer_finals (struct document *doc)
{
    int64_t finalized = idcomp_stats (replica_ids (doc->replica)).finalized;
    struct final *final;

    while ((final = TAILQ_FIRST (&doc->finals)) && final->last <= finalized) {
        answer_final (doc, final);
        drop_final (doc, final);
    }
}

static void await_final (struct document *doc, const idt_msg_t *msg, const struct idcomp_run *runs, int nruns)
{
    struct final *final = doc->nfinals < doc->service->options.max_waiting ? calloc (1, sizeof (*final)) : NULL;

    if (!final) {
        service_respond_error (doc->service, msg, EAGAIN, "compressor.max-waiting requests wait already: ask again later");
        return;
    }
    *final = (struct final){ .msg = idt_msg_ref (msg), .nruns = nruns,
                             .last = idcomp_stats (replica_ids (doc->replica)).generated,
                             .deadline_ms = service_now_ms () + doc->service->options.timeout_ms };
    memcpy (final->runs, runs, (size_t)nruns * sizeof (runs[0]));
    TAILQ_INSERT_TAIL (&doc->finals, final, link);
    doc->nfinals++;
    service_arm (doc->service);
}

void document_made (struct document *doc, const idt_msg_t *msg, const struct idcomp_run *runs, int nruns)
{
    if (msg)
        await_final (doc, msg, runs, nruns);
    document_turn (doc);
}

/* --- whatever is due -------------------------------------------------------------------------------------- */

static void document_turn (struct document *doc)
{
    const char *broken = replica_broken (doc->replica);

    answer_finals (doc);
    if (broken)
        fail_finals (doc, UINT64_MAX, ESTALE, broken);
    if (doc->state == CLOSING && broken)
        document_destroy (doc, ESTALE, broken);
    else if (doc->state == CLOSING && replica_settled (doc->replica))
        document_destroy (doc, 0, NULL);
    else {
        fetch (doc);
        announce (doc);
    }
}

void documents_tick (struct service *sv)
{
    struct document *doc, *next;

    for (doc = LIST_FIRST (&sv->documents); doc; doc = next) {
        next = LIST_NEXT (doc, link);
        doc->announce_paused = doc->fetch_paused = false;
        fail_finals (doc, service_now_ms (), EHOSTUNREACH, "rank 0 was not reached in time: these ids will be final later");
        if (doc->nfinals > 0)
            service_arm (sv);
        if (doc->replica)
            document_turn (doc);
    }
}

void documents_destroy (struct service *sv)
{
    while (LIST_FIRST (&sv->documents))
        document_destroy (LIST_FIRST (&sv->documents), EHOSTUNREACH, SERVICE_STOPPING);
}

/* --- events --------------------------------------------------------------------------------------------- */

static struct document *find (struct service *sv, const char *name)
{
    struct document *doc;

    LIST_FOREACH (doc, &sv->documents, link)
        if (strcmp (doc->name, name) == 0)
            return doc;
    return NULL;
}

/* An event of the same name may be of another document: of an instance before, or after. */
void document_ranges_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;
    struct document *doc = find (sv, idt_msg_topic (msg) + strlen (WIRE_EVENT_PREFIX));
    idt_error_t error;
    const char *uuid;
    json_t *o, *ranges;
    json_int_t seq;

    if (!doc || !doc->replica)
        return;
    sv->counters.events++;
    if (idt_msg_unpack (msg, &o, &error, "{s:s s:I s:o}", "uuid", &uuid, "seq", &seq, "ranges", &ranges) < 0) {
        idt_log (h, LOG_ERR, "%s: %s", idt_msg_topic (msg), error.text);
        return;
    }
    if (strcmp (uuid, doc->uuid) == 0) {
        apply_ranges (doc, seq, ranges);
        document_turn (doc);
    }
    json_decref (o);
}

void document_lost_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;
    struct document *doc;

    LIST_FOREACH (doc, &sv->documents, link)
        doc->fetch = true;
    documents_tick (sv);
}

/* --- open ------------------------------------------------------------------------------------------------- */

/* The answer to all who open it. */
static json_t *describe (const struct document *doc)
{
    return json_pack ("{s:s s:s s:s s:I}", "document", doc->name, "uuid", doc->uuid, "session",
                      idcomp_session (replica_ids (doc->replica)), "seq", (json_int_t)replica_seq (doc->replica));
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

static struct replica *make_replica (const char *state, int64_t seq)
{
    unsigned char random[16];
    char session[IDCOMP_UUID_TEXT];
    size_t size;
    void *form;

    if (getrandom (random, sizeof (random), 0) != sizeof (random) || !(form = wire_get_form (state, &size)))
        return NULL;
    struct idcomp_uuid uuid = idcomp_uuid_random (random);
    idcomp_uuid_format (&uuid, session);
    struct replica *replica = replica_create (session, form, size, seq);
    free (form);
    return replica;
}

static void joined_cb (idt_future_t *f, void *arg)
{
    struct document *doc = arg;
    const char *uuid, *state;
    json_int_t seq;

    if (idt_rpc_get_unpack (f, "{s:s s:I s:s}", "uuid", &uuid, "seq", &seq, "state", &state) < 0) {
        const char *why = errno == ENOSYS ? "rank 0 has no compressor: load it there with idtree module load -r 0 compressor"
                                          : idt_future_error (f);
        document_destroy (doc, idt_future_errnum (f) ? idt_future_errnum (f) : EPROTO, why);
        return;
    }
    snprintf (doc->uuid, sizeof (doc->uuid), "%s", uuid);
    if (!(doc->replica = make_replica (state, seq))) {
        document_destroy (doc, errno, idcomp_strerror (errno));
        return;
    }
    doc->opening = NULL;
    idt_future_destroy (f);
    opened (doc);
}

static void subscribed_cb (idt_future_t *f, void *arg)
{
    struct document *doc = arg;

    if (idt_future_errnum (f)) {
        document_destroy (doc, idt_future_errnum (f), idt_future_error (f));
        return;
    }
    doc->opening = idt_rpc_pack (doc->service->h, "compressor.join", 0, 0, "{s:s}", "document", doc->name);
    idt_future_destroy (f);
    if (!doc->opening || idt_future_then (doc->opening, -1, joined_cb, doc) < 0)
        document_destroy (doc, errno, NULL);
}

/* Returns NULL with errno set. */
static struct document *document_create (struct service *sv, const char *name)
{
    struct document *doc = calloc (1, sizeof (*doc));
    char topic[sizeof (WIRE_EVENT_PREFIX) + WIRE_NAME_MAX];

    if (!doc)
        return NULL;
    doc->service = sv;
    TAILQ_INIT (&doc->finals);
    strcpy (doc->name, name);
    LIST_INSERT_HEAD (&sv->documents, doc, link);
    sv->ndocuments++;
    event_topic (doc, topic);
    doc->opening = idt_event_subscribe (sv->h, topic);
    if (!doc->opening || idt_future_then (doc->opening, -1, subscribed_cb, doc) < 0) {
        document_destroy (doc, errno, NULL);
        return NULL;
    }
    return doc;
}

static void open_document (struct service *sv, const idt_msg_t *msg, const char *name)
{
    struct document *doc = find (sv, name);
    idt_error_t error;

    if (wire_check_name (name, &error) < 0)
        service_respond_error (sv, msg, errno, error.text);
    else if (doc && doc->state == OPEN)
        service_respond_object (sv, msg, describe (doc));
    else if (doc && doc->state == CLOSING)
        service_respond_error (sv, msg, EBUSY, "the document is being closed: open it again afterwards");
    else if (!doc && sv->ndocuments >= sv->options.max_documents)
        service_respond_error (sv, msg, EDQUOT, "compressor.max-documents documents are open on this rank: close one");
    else if (!doc && !(doc = document_create (sv, name)))
        service_respond_error (sv, msg, errno, NULL);
    else
        service_queue (sv, &doc->openers, msg);
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

struct document *document_asked (struct service *sv, const idt_msg_t *msg, const char *name)
{
    struct document *doc = find (sv, name);
    char text[WIRE_NAME_MAX + 100];

    if (doc && doc->state != OPENING)
        return doc;
    snprintf (text, sizeof (text), "document '%.*s' is not open on rank %u: open it there first (idtree doc open)", WIRE_NAME_MAX, name,
              sv->options.rank);
    service_respond_error (sv, msg, ENOENT, text);
    return NULL;
}

struct document_view document_view (const struct document *doc)
{
    return (struct document_view){ doc->name, doc->uuid, doc->replica, doc->state == CLOSING, doc->fetching != NULL };
}

void document_close_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;
    struct document *doc;
    idt_error_t error;
    const char *name;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &error, "{s:s}", "document", &name) < 0)
        service_respond_error (sv, msg, EPROTO, error.text);
    else if ((doc = document_asked (sv, msg, name)) && service_queue (sv, &doc->closers, msg) == 0) {
        doc->state = CLOSING;
        document_turn (doc);
    }
    json_decref (o);
}
