/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* methods.c - makes and converts ids in the session of this rank, without a message to another rank */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libidtree/json.h"
#include "modules/compressor/service.h"

#define IDS_MAX 65536 /* the most ids or UUIDs of a request */

/* A request with a list of ids or UUIDs. */
struct method_request {
    struct compressor *service;
    const idt_msg_t *msg;
    json_t *o;
    json_t *list; /* borrowed */
    const char *origin;
    const struct idcomp *ids; /* of the document's session */
};

/* Answer with errno for element 'i'. The text contains the element. */
static void refuse_element (const struct method_request *r, size_t i)
{
    int errnum = errno;
    char text[300], *element = json_dumps (json_array_get (r->list, i), JSON_ENCODE_ANY);

    snprintf (text, sizeof (text), "%.100s: %s", element ? element : "?", idcomp_strerror (errnum));
    free (element);
    service_respond_error (r->service, r->msg, errnum, text);
}

/* Read a request with the list 'key'. Returns 0, or -1 if it was answered with an error. */
static int open_request (struct method_request *r, struct compressor *sv, const idt_msg_t *msg, const char *key)
{
    struct document *doc;
    idt_error_t error;
    const char *name, *uuid = NULL;

    *r = (struct method_request){ .service = sv, .msg = msg };
    if (idt_msg_unpack (msg, &r->o, &error, "{s:s s?s s:o s?s}", "document", &name, "uuid", &uuid, key, &r->list,
                        "origin", &r->origin)
        < 0)
        service_respond_error (sv, msg, EPROTO, error.text);
    else if (!json_is_array (r->list))
        service_respond_error (sv, msg, EPROTO, "ids or uuids must be an array");
    else if (json_array_size (r->list) > IDS_MAX)
        service_respond_error (sv, msg, EINVAL, "a request may have at most 65536 ids");
    else if ((doc = document_asked (sv, msg, name, uuid))) {
        r->ids = replica_ids (doc->session.replica);
        if (!*doc->refused)
            return 0;
        service_respond_error (sv, msg, ENOTRECOVERABLE, doc->refused);
    }
    json_decref (r->o);
    return -1;
}

/* Convert an element of the request to an element of the answer. Returns NULL with errno set. */
typedef json_t *(*convert_f) (const struct method_request *r, const json_t *element);

/* Answer with the array 'key' of all converted elements. */
static void convert_all (struct method_request *r, convert_f convert, const char *key)
{
    json_t *results = json_array (), *element, *result;
    size_t i;

    json_array_foreach (r->list, i, element) {
        if (!(result = convert (r, element)) || json_array_append_new (results, result) < 0) {
            refuse_element (r, i);
            json_decref (results);
            json_decref (r->o);
            return;
        }
    }
    module_respond_object (r->service->h, r->msg,
                           json_pack ("{s:s s:o}", "session", idcomp_session (r->ids), key, results));
    json_decref (r->o);
}

static bool get_id (const json_t *element, int64_t *id)
{
    *id = json_integer_value (element);
    errno = EINVAL;
    return json_is_integer (element);
}

static json_t *to_op (const struct method_request *r, const json_t *element)
{
    int64_t id, op;

    if (!get_id (element, &id) || idcomp_to_op (r->ids, id, &op) < 0)
        return NULL;
    return json_integer (op);
}

static json_t *to_session (const struct method_request *r, const json_t *element)
{
    int64_t id, op;

    if (!get_id (element, &op) || idcomp_to_session (r->ids, op, r->origin, &id) < 0)
        return NULL;
    return json_integer (id);
}

static json_t *to_uuid (const struct method_request *r, const json_t *element)
{
    struct idcomp_uuid uuid;
    char text[IDCOMP_UUID_TEXT_MAX];
    int64_t id;

    if (!get_id (element, &id) || idcomp_decompress (r->ids, id, &uuid) < 0)
        return NULL;
    idcomp_uuid_format (&uuid, text, sizeof (text));
    return json_string (text);
}

static json_t *from_uuid (const struct method_request *r, const json_t *element)
{
    const char *text = json_string_value (element);
    int64_t id;

    errno = EINVAL;
    if (!text)
        return NULL;
    if (idcomp_recompress_text (r->ids, text, &id) == 0)
        return json_integer (id);
    return errno == IDCOMP_ENOT_COMPRESSED ? json_null () : NULL;
}

void methods_normalize_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct method_request r;

    if (open_request (&r, arg, msg, "ids") == 0)
        convert_all (&r, r.origin ? to_session : to_op, "ids");
}

void methods_decompress_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct method_request r;

    if (open_request (&r, arg, msg, "ids") == 0)
        convert_all (&r, to_uuid, "uuids");
}

void methods_recompress_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct method_request r;

    if (open_request (&r, arg, msg, "uuids") == 0)
        convert_all (&r, from_uuid, "ids");
}

/* --- generate ----------------------------------------------------------------------------------------------- */

static void generate (struct compressor *sv, const idt_msg_t *msg, struct document *doc, int64_t count, bool final)
{
    const char *broken = replica_broken (doc->session.replica);
    struct idcomp *c = replica_ids (doc->session.replica);
    struct idcomp_run runs[2];
    char text[100];
    int n;

    if (count < 1 || count > sv->options.max_count) {
        snprintf (text, sizeof (text), "count must be from 1 to %u (compressor.max-count)", sv->options.max_count);
        service_respond_error (sv, msg, EINVAL, text);
    }
    else if (broken || doc->state == CLOSING)
        service_respond_error (sv, msg, broken ? ESTALE : EBUSY, broken ? broken : "the document is being closed");
    else if (*doc->refused)
        service_respond_error (sv, msg, ENOTRECOVERABLE, doc->refused);
    else if ((n = idcomp_generate_runs (c, count, runs)) < 0)
        service_respond_error (sv, msg, errno, idcomp_strerror (errno));
    else {
        sv->counters.generated += (uint64_t)count;
        if (!final)
            module_respond_object (sv->h, msg, finals_pack_ids (c, runs, (size_t)n));
        document_made (doc, final ? msg : NULL, runs, n);
    }
}

void methods_generate_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct document *doc;
    idt_error_t error;
    const char *name, *uuid = NULL;
    json_int_t count = 1;
    int final = 0;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &error, "{s:s s?s s?I s?b}", "document", &name, "uuid", &uuid, "count", &count,
                        "final", &final)
        < 0)
        service_respond_error (arg, msg, EPROTO, error.text);
    else if ((doc = document_asked (arg, msg, name, uuid)))
        generate (arg, msg, doc, count, final);
    json_decref (o);
}

/* --- save and stats ------------------------------------------------------------------------------------------- */

static char *save (const struct document *doc)
{
    const struct idcomp *c = replica_ids (doc->session.replica);
    int64_t seq = replica_seq (doc->session.replica);
    size_t size = idcomp_save_size (c, IDCOMP_WITHOUT_LOCAL);
    void *form = malloc (size);
    char *s = NULL;

    if (form && idcomp_save (c, IDCOMP_WITHOUT_LOCAL, form, size) >= 0)
        s = docwire_state (doc->session.name, doc->session.uuid, seq, seq, form, size, DOCWIRE_WHOLE);
    free (form);
    return s;
}

static json_t *describe (const struct document *doc)
{
    const struct replica *r = doc->session.replica;
    struct idcomp_stats s = idcomp_stats (replica_ids (r));
    json_t *o = json_pack ("{s:s s:s s:s s:I s:I s:I s:I s:I s:I s:I s:I s:I s:b s:I}", "document", doc->session.name,
                           "uuid", doc->session.uuid, "session", idcomp_session (replica_ids (r)), "seq",
                           (json_int_t)replica_seq (r), "generated", (json_int_t)s.generated, "finalized",
                           (json_int_t)s.finalized, "announced", (json_int_t)(s.next_range_first - 1),
                           "allocated_finals", (json_int_t)s.allocated_finals, "sessions", (json_int_t)s.sessions,
                           "clusters", (json_int_t)s.clusters, "local_runs", (json_int_t)s.local_runs, "memory",
                           (json_int_t)s.memory, "fetching", doc->fetching != NULL, "pause_ms",
                           (json_int_t)doc->announcing.last_ms);

    if (o && replica_broken (r))
        json_put_new (&o, "broken", json_string (replica_broken (r)));
    if (o && *doc->refused)
        json_put_new (&o, "refused", json_string (doc->refused));
    return o;
}

/* Find the document of a request without further members. Returns NULL if the request was answered. */
static struct document *get_document (struct compressor *sv, const idt_msg_t *msg)
{
    struct document *doc = NULL;
    idt_error_t error;
    const char *name, *uuid = NULL;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &error, "{s:s s?s}", "document", &name, "uuid", &uuid) < 0)
        service_respond_error (sv, msg, EPROTO, error.text);
    else
        doc = document_asked (sv, msg, name, uuid);
    json_decref (o);
    return doc;
}

void methods_save_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct document *doc = get_document (arg, msg);

    if (doc)
        module_respond_new (h, msg, save (doc));
}

void methods_stats_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct document *doc = get_document (arg, msg);

    if (doc)
        module_respond_object (h, msg, describe (doc));
}
