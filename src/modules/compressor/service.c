/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* service.c - time, answers, requests that wait or are forwarded to rank 0, and ranges on their way up */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcompressor/space.h"
#include "libidtree/json.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "modules/compressor/service.h"

void service_arm (struct compressor *sv)
{
    if (sv->armed)
        return;
    sv->armed = true;
    idt_timer_watcher_reset (sv->timer, SERVICE_PAUSE_MS, 0);
    idt_watcher_start (sv->timer);
}

void service_respond_error (struct compressor *sv, const idt_msg_t *msg, int errnum, const char *text)
{
    module_respond_error (sv->h, msg, idcomp_errno (errnum), text);
}

void service_respond_all (struct compressor *sv, struct fifo *q, int errnum, const char *s)
{
    const idt_msg_t *msg;

    while ((msg = fifo_pop (q))) {
        if (errnum)
            service_respond_error (sv, msg, errnum, s);
        else
            module_respond (sv->h, msg, s);
        idt_msg_unref (msg);
    }
}

int service_queue (struct compressor *sv, struct fifo *q, const idt_msg_t *msg)
{
    if (q->count >= sv->options.max_waiting) {
        service_respond_error (sv, msg, EAGAIN, "compressor.max-waiting requests wait already: try again later");
        return -1;
    }
    if (fifo_push (q, msg) < 0) {
        service_respond_error (sv, msg, errno, NULL);
        return -1;
    }
    idt_msg_ref (msg);
    return 0;
}

void compressor_forget (struct fifo *q, const idt_msg_t *disconnect)
{
    for (size_t n = q->count; n > 0; n--) {
        const idt_msg_t *msg = fifo_pop (q);

        if (module_same_client (msg, disconnect) || fifo_push (q, msg) < 0)
            idt_msg_unref (msg);
    }
}

/* --- requests to rank 0 --------------------------------------------------------------------------------- */

int service_upcall (struct compressor *sv, idt_future_t *f, idt_future_f cb, const idt_msg_t *msg)
{
    struct upcall *up = upcall_create (&sv->ups, f, (double)sv->options.timeout_ms, cb, sv);

    if (!up)
        return -1;
    up->msg = msg ? idt_msg_ref (msg) : NULL;
    return 0;
}

const char *service_future_error (const idt_future_t *f)
{
    const char *text = idt_future_error (f);

    if (idt_future_errnum (f) == ENOSYS)
        return "rank 0 has no compressor: load it there with idtree module load -r 0 compressor";
    if (idt_future_errnum (f) == ETIMEDOUT && strcmp (text, strerror (ETIMEDOUT)) == 0)
        return "rank 0 did not answer in time (compressor.timeout)";
    return text;
}

static void passed_on_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct compressor *sv = up->owner;
    const char *s = NULL;

    if (idt_rpc_get (f, &s) == 0)
        module_respond (sv->h, up->msg, s);
    else
        service_respond_error (sv, up->msg, idt_future_errnum (f), service_future_error (f));
    upcall_destroy (up);
}

void service_pass_on (struct compressor *sv, const idt_msg_t *msg)
{
    idt_future_t *f = idt_rpc_message (sv->h, msg, 0, 0);

    if (service_upcall (sv, f, passed_on_cb, msg) < 0)
        service_respond_error (sv, msg, errno, NULL);
}

void service_forget_ups (struct compressor *sv, const idt_msg_t *disconnect)
{
    struct upcall *up, *next;

    for (up = LIST_FIRST (&sv->ups.calls); up; up = next) {
        next = LIST_NEXT (up, link);
        if (up->msg && module_same_client (up->msg, disconnect))
            upcall_destroy (up);
    }
}

/* --- requests for final ids ------------------------------------------------------------------------------ */

struct document_final {
    TAILQ_ENTRY (document_final) link;
    const idt_msg_t *msg;
    int64_t last; /* waits until this many ids of the session are final */
    uint64_t deadline_ms;
    struct idcomp_run runs[2];
    int nruns;
};

static void drop_final (struct document *doc, struct document_final *final)
{
    TAILQ_REMOVE (&doc->finals, final, link);
    doc->nfinals--;
    idt_msg_unref (final->msg);
    free (final);
}

void finals_fail (struct document *doc, uint64_t now_ms, int errnum, const char *text)
{
    struct document_final *final;

    while ((final = TAILQ_FIRST (&doc->finals)) && final->deadline_ms <= now_ms) {
        service_respond_error (doc->service, final->msg, errnum, text);
        drop_final (doc, final);
    }
}

void finals_forget (struct document *doc, const idt_msg_t *disconnect)
{
    struct document_final *final, *next;

    for (final = TAILQ_FIRST (&doc->finals); final; final = next) {
        next = TAILQ_NEXT (final, link);
        if (module_same_client (final->msg, disconnect))
            drop_final (doc, final);
    }
}

json_t *finals_pack_ids (const struct idcomp *c, const struct idcomp_run *runs, size_t n)
{
    json_t *o = json_array ();

    for (size_t i = 0; o && i < n; i++)
        json_add_new (&o, json_pack ("[I,I]", (json_int_t)runs[i].first, (json_int_t)runs[i].count));
    return json_pack ("{s:s s:o}", "session", idcomp_session (c), "runs", o);
}

/* Append the final ids of the local ids id, id - 1, ... to 'list'. From one local id to the next the final id rises by
 * one, or by more where a new cluster begins. So the final ids are consecutive if and only if the last one is the first
 * one plus count - 1. If they are not consecutive, the two halves are appended separately.
 */
static int append_final (const struct idcomp *c, struct idruns *list, int64_t id, int64_t count)
{
    int64_t first, last;

    if (idcomp_to_op (c, id, &first) < 0 || idcomp_to_op (c, id - (count - 1), &last) < 0)
        return -1;
    if (last - first == count - 1)
        return idruns_append (list, first, count);
    int64_t half = count / 2;
    return append_final (c, list, id, half) < 0 || append_final (c, list, id - half, count - half) < 0 ? -1 : 0;
}

static void answer_final (struct document *doc, const struct document_final *final)
{
    const struct idcomp *c = replica_ids (doc->session.replica);
    struct idruns list = { 0 };
    int rc = 0;

    for (int i = 0; rc == 0 && i < final->nruns; i++)
        rc = final->runs[i].first >= 0 ? idruns_append (&list, final->runs[i].first, final->runs[i].count)
                                       : append_final (c, &list, final->runs[i].first, final->runs[i].count);
    if (rc < 0)
        service_respond_error (doc->service, final->msg, errno, NULL);
    else
        module_respond_object (doc->service->h, final->msg, finals_pack_ids (c, list.v, list.n));
    idruns_fini (&list);
}

void finals_answer (struct document *doc)
{
    int64_t finalized = idcomp_stats (replica_ids (doc->session.replica)).finalized;
    struct document_final *final;

    while ((final = TAILQ_FIRST (&doc->finals)) && final->last <= finalized) {
        answer_final (doc, final);
        drop_final (doc, final);
    }
}

void finals_await (struct document *doc, const idt_msg_t *msg, const struct idcomp_run *runs, int nruns)
{
    struct document_final *final = doc->nfinals < doc->service->options.max_waiting ? calloc (1, sizeof (*final))
                                                                                    : NULL;

    assert (nruns >= 1 && nruns <= 2);
    if (!final) {
        service_respond_error (doc->service, msg, EAGAIN,
                               "compressor.max-waiting requests wait already: try again later");
        return;
    }
    *final = (struct document_final){ .msg = idt_msg_ref (msg),
                                      .nruns = nruns,
                                      .last = idcomp_stats (replica_ids (doc->session.replica)).generated,
                                      .deadline_ms = clock_ms (CLOCK_MONOTONIC) + doc->service->options.timeout_ms };
    memcpy (final->runs, runs, (size_t)nruns * sizeof (runs[0]));
    TAILQ_INSERT_TAIL (&doc->finals, final, link);
    doc->nfinals++;
    service_arm (doc->service);
}

/* --- ranges on their way up -------------------------------------------------------------------------------
 *
 * One request at a time is sent, with all ranges that arrived while the request before was under way. Rank 0 sends the
 * request to itself, so that all ranges are ordered in the same way.
 */

/* A request whose elements the relay holds. */
struct submit_asked {
    LIST_ENTRY (submit_asked) link;
    struct compressor *service;
    const idt_msg_t *msg; /* NULL: the client has gone */
    bool is_order;        /* from a child broker: answered with a result for each element */
    size_t left;          /* elements that have no result yet */
    json_t *results;
};

static json_t *pack_result (const struct range_relay_result *result)
{
    if (!result->errnum)
        return json_pack ("{s:I}", "seq", (json_int_t)result->seq);
    return json_pack ("{s:i s:s}", "errnum", result->errnum, "text",
                      result->text ? result->text : strerror (result->errnum));
}

/* Store the result of an element. If memory is short, the results are spoiled, and the request is answered with an
 * error.
 */
static void set_result (struct submit_asked *asked, size_t index, json_t *result)
{
    if (json_array_set_new (asked->results, index, result) < 0)
        json_spoil (&asked->results);
}

/* Take the result of an element. When the last element has its result, the request is answered. */
static void answer_element (void *arg, size_t index, const struct range_relay_result *result)
{
    struct submit_asked *asked = arg;
    struct compressor *sv = asked->service;

    assert (asked->left > 0);
    if (asked->is_order)
        set_result (asked, index, pack_result (result));
    if (--asked->left > 0)
        return;
    if (!asked->msg)
        ; /* the client has gone */
    else if (asked->is_order)
        module_respond_object (sv->h, asked->msg, json_pack ("{s:O}", "results", asked->results));
    else if (result->errnum)
        service_respond_error (sv, asked->msg, result->errnum, result->text);
    else
        module_respond_object (sv->h, asked->msg, pack_result (result));
    LIST_REMOVE (asked, link);
    idt_msg_unref (asked->msg);
    json_decref (asked->results);
    free (asked);
}

static struct submit_asked *asked_create (struct compressor *sv, const idt_msg_t *msg, bool is_order, size_t n)
{
    struct submit_asked *asked = calloc (1, sizeof (*asked));

    if (!asked || !(asked->results = json_array ())) {
        free (asked);
        return NULL;
    }
    LIST_INSERT_HEAD (&sv->asked, asked, link);
    asked->service = sv;
    asked->msg = idt_msg_ref (msg);
    asked->is_order = is_order;
    asked->left = n;
    for (size_t i = 0; is_order && i < n; i++)
        json_add_new (&asked->results, json_null ());
    return asked;
}

/* Pass an element to the relay. If the relay refuses the element, the element gets a result with an error, like one
 * that fails later.
 */
static void add_element (struct compressor *sv, struct submit_asked *asked, size_t index, const json_t *element)
{
    struct range_relay_element e = { .reply = answer_element,
                                     .arg = asked,
                                     .index = index,
                                     .text = json_dumps (element, JSON_COMPACT),
                                     .nranges = json_array_size (json_object_get (element, "ranges")),
                                     .deadline_ms = clock_ms (CLOCK_MONOTONIC) + sv->options.timeout_ms };
    struct range_relay_result full = { .text = "compressor.max-waiting ranges wait already: send it again later" };

    if (!range_relay_add_new (sv->relay, e)) {
        full.errnum = errno;
        answer_element (asked, index, &full);
    }
}

static void add_elements (struct compressor *sv, struct submit_asked *asked, json_t *elements)
{
    size_t n = json_array_size (elements);

    for (size_t i = 0; i < n; i++) /* 'asked' is freed with its last element */
        add_element (sv, asked, i, json_array_get (elements, i));
    submit_turn (sv);
    if (range_relay_stats (sv->relay).elements > 0)
        service_arm (sv);
}

static int check_submit (const char *name, json_t *ranges, idt_error_t *errp)
{
    struct idcomp_range range;
    json_t *o;
    size_t i;

    if (docwire_check_name (name, errp) < 0)
        return -1;
    if (!json_is_array (ranges) || json_array_size (ranges) < 1 || json_array_size (ranges) > RANGE_RELAY_BATCH_RANGES)
        return errsetf (errp, EINVAL, "ranges must be an array of 1 to %d", RANGE_RELAY_BATCH_RANGES);
    json_array_foreach (ranges, i, o) {
        if (docwire_get_range (o, &range, errp) < 0)
            return -1;
        idcomp_range_fini (&range);
    }
    return 0;
}

void uplink_submit_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct compressor *sv = arg;
    struct submit_asked *asked;
    const char *name, *uuid;
    json_t *o, *ranges, *elements = NULL;
    idt_error_t error;

    if (idt_msg_unpack (msg, &o, &error, "{s:s s:s s:o}", "document", &name, "uuid", &uuid, "ranges", &ranges) < 0
        || check_submit (name, ranges, &error) < 0)
        service_respond_error (sv, msg, errno, error.text);
    else if (!(elements = json_pack ("[O]", o)) || !(asked = asked_create (sv, msg, false, 1)))
        service_respond_error (sv, msg, ENOMEM, NULL);
    else
        add_elements (sv, asked, elements);
    json_decref (elements);
    json_decref (o);
}

void uplink_order (struct compressor *sv, const idt_msg_t *msg)
{
    struct submit_asked *asked;
    json_t *o, *batch;
    idt_error_t error;

    if (idt_msg_unpack (msg, &o, &error, "{s:o}", "batch", &batch) < 0)
        service_respond_error (sv, msg, EPROTO, error.text);
    else if (!json_is_array (batch) || json_array_size (batch) == 0)
        service_respond_error (sv, msg, EPROTO, "batch must be an array of elements");
    else if (!(asked = asked_create (sv, msg, true, json_array_size (batch))))
        service_respond_error (sv, msg, ENOMEM, NULL);
    else
        add_elements (sv, asked, batch);
    json_decref (o);
}

/* The text {"batch":[...]}. Returns NULL if memory is short. */
static char *pack_batch (const struct range_relay_element *e)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream (&text, &size);

    if (!f)
        return NULL;
    fputs ("{\"batch\":[", f);
    for (const struct range_relay_element *first = e; e; e = range_relay_following (e))
        fprintf (f, "%s%s", e == first ? "" : ",", e->text);
    fputs ("]}", f);
    if (fclose (f) == 0)
        return text;
    free (text);
    return NULL;
}

static struct range_relay_result get_result (const json_t *o)
{
    struct range_relay_result r = { .seq = json_integer_value (json_object_get (o, "seq")),
                                    .errnum = (int)json_integer_value (json_object_get (o, "errnum")),
                                    .text = json_string_value (json_object_get (o, "text")) };

    if (r.errnum == 0 && !json_object_get (o, "seq"))
        r.errnum = EPROTO;
    return r;
}

/* Answer the elements with the results of a response. Returns 0, or -1 if the response is invalid. */
static int take_results (struct compressor *sv, idt_future_t *f)
{
    size_t n = range_relay_under_way (sv->relay);
    struct range_relay_result *results;
    json_t *o;

    if (idt_rpc_get_unpack (f, "{s:o}", "results", &o) < 0)
        return -1;
    if (json_array_size (o) != n || !(results = calloc (n, sizeof (*results))))
        return -1;
    for (size_t i = 0; i < n; i++)
        results[i] = get_result (json_array_get (o, i));
    range_relay_answered (sv->relay, results);
    free (results);
    return 0;
}

static void pause_order (struct compressor *sv)
{
    sv->counters.orders_failed++;
    range_relay_failed (sv->relay);
    sv->order_paused = true;
    service_arm (sv);
}

/* 'order' stays set until all elements have their results, so that no other request is sent meanwhile. */
static void ordered_cb (idt_future_t *f, void *arg)
{
    struct compressor *sv = arg;

    if (take_results (sv, f) < 0)
        pause_order (sv);
    sv->order = NULL;
    idt_future_destroy (f);
    submit_turn (sv);
}

void submit_turn (struct compressor *sv)
{
    const struct range_relay_element *e;

    if (sv->order || sv->order_paused || !(e = range_relay_next (sv->relay)))
        return;
    char *text = pack_batch (e);
    uint32_t to = sv->options.rank == 0 ? 0 : IDT_NODEID_UPSTREAM;
    idt_future_t *f = text ? idt_rpc (sv->h, "compressor.order", text, to, 0) : NULL;
    free (text);
    sv->counters.orders++;
    if (f && idt_future_then (f, (double)sv->options.timeout_ms, ordered_cb, sv) == 0) {
        sv->order = f;
        return;
    }
    idt_future_destroy (f);
    pause_order (sv);
}

size_t uplink_asked (const struct compressor *sv)
{
    const struct submit_asked *asked;
    size_t n = 0;

    LIST_FOREACH (asked, &sv->asked, link)
        n += asked->msg != NULL;
    return n;
}

void uplink_forget (struct compressor *sv, const idt_msg_t *disconnect)
{
    struct submit_asked *asked;

    LIST_FOREACH (asked, &sv->asked, link)
        if (asked->msg && module_same_client (asked->msg, disconnect)) {
            idt_msg_unref (asked->msg);
            asked->msg = NULL;
        }
}

void uplink_tick (struct compressor *sv)
{
    sv->order_paused = false;
    range_relay_expire (sv->relay, clock_ms (CLOCK_MONOTONIC));
    submit_turn (sv);
    if (range_relay_stats (sv->relay).elements > 0)
        service_arm (sv);
}
