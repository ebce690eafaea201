/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* submit.c - sends ranges up: one request at a time, with all ranges that arrived meanwhile
 *
 * Rank 0 sends the request to itself, so that all ranges are ordered in the same way.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libidtree/json_build.h"
#include "libutil/errprintf.h"
#include "modules/compressor/service.h"

/* A request whose elements the relay holds. */
struct submit_asked {
    LIST_ENTRY (submit_asked) link;
    struct compressor *service;
    const idt_msg_t *msg; /* NULL: the client has gone */
    bool is_order;        /* from a child broker: answered with a result for each element */
    size_t left;          /* elements that are not answered yet */
    json_t *results;
};

/* --- answers --------------------------------------------------------------------------------------------- */

static json_t *pack_result (const struct range_relay_result *result)
{
    if (!result->errnum)
        return json_pack ("{s:I}", "seq", (json_int_t)result->seq);
    return json_pack ("{s:i s:s}", "errnum", result->errnum, "text",
                      result->text ? result->text : strerror (result->errnum));
}

/* If memory for one result is short, the request is answered with an error. */
static void set_result (struct submit_asked *asked, size_t index, json_t *result)
{
    if (json_array_set_new (asked->results, index, result) < 0)
        json_spoil (&asked->results);
}

/* An element was answered. With the last one, the request is answered. */
static void answer_element (void *arg, size_t index, const struct range_relay_result *result)
{
    struct submit_asked *asked = arg;
    struct compressor *sv = asked->service;

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

/* --- receiving elements ------------------------------------------------------------------------------------ */

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

/* Pass an element to the relay. If the relay refuses it, it is answered like an element that failed later. */
static void add_element (struct compressor *sv, struct submit_asked *asked, size_t index, const json_t *element)
{
    struct range_relay_element e = { .reply = answer_element,
                                     .arg = asked,
                                     .index = index,
                                     .text = json_dumps (element, JSON_COMPACT),
                                     .nranges = json_array_size (json_object_get (element, "ranges")),
                                     .deadline_ms = compressor_now_ms () + sv->options.timeout_ms };
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

void uplink_order_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct compressor *sv = arg;
    struct submit_asked *asked;
    json_t *o, *batch;
    idt_error_t error;

    if (sv->root) {
        document_root_request (sv->root, msg);
        return;
    }
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

/* --- sending ------------------------------------------------------------------------------------------------ */

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

/* 'order' stays set until all elements are answered, so that nothing is sent meanwhile. */
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
    range_relay_expire (sv->relay, compressor_now_ms ());
    submit_turn (sv);
    if (range_relay_stats (sv->relay).elements > 0)
        service_arm (sv);
}
