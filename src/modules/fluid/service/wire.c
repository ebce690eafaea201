/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wire.c - payloads of the fluid service
 *
 * Times are strings of digits in JSON, because some JSON libraries do not keep 64 bits of a number.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libidtree/json.h"
#include "libutil/errprintf.h"
#include "libutil/duration.h"
#include "modules/fluid/service/wire.h"

static int malformed (idt_error_t *errp, const char *what)
{
    return errsetf (errp, EPROTO, "malformed request: %s", what);
}

/* --- values in JSON -------------------------------------------------------------------------------- */

json_t *wire_number (uint64_t n)
{
    char text[24];

    snprintf (text, sizeof (text), "%llu", (unsigned long long)n);
    return json_string (text);
}

json_t *wire_date (int64_t unix_ms)
{
    char text[DATE_SIZE];

    return json_string (format_date (unix_ms, text));
}

/* --- bytes --------------------------------------------------------------------------------------- */

int wire_get_block (const void *data, size_t size, uint32_t *count, fluid_t *after, idt_error_t *errp)
{
    if (!block_get_request (data, size, count, after))
        return malformed (errp, "the payload must be 12 bytes: count (4) and the id that the answer must exceed (8)");
    return 0;
}

struct id_run *wire_get_runs (const void *data, size_t size, struct id_run *small, size_t room, size_t *n)
{
    const uint8_t *bytes = data;
    struct id_run *run = small;

    if (size == 0 || size % BLOCK_RUN_SIZE != 0)
        return errset_null (EPROTO);
    if (size / BLOCK_RUN_SIZE > room && !(run = malloc (size / BLOCK_RUN_SIZE * sizeof (*run))))
        return NULL;
    *n = size / BLOCK_RUN_SIZE;
    for (size_t i = 0; i < *n; i++, bytes += BLOCK_RUN_SIZE)
        run[i] = block_get_run (bytes);
    return run;
}

/* --- fluid.generate -------------------------------------------------------------------------------- */

/* More than a valid request needs, and few enough that a large request does not delay others. */
#define COUNT_DEPTH 8
#define COUNT_VALUES 64

int wire_get_count (struct jv_reader *r, const char *text, uint32_t *count, idt_error_t *errp)
{
    const struct jv *o, *value;
    struct jv_error why;

    if (!text)
        return malformed (errp, "the payload must be a JSON text with its NUL");
    if (!(o = jv_read (r, text, strlen (text), COUNT_DEPTH, COUNT_VALUES, &why)))
        return errno == ENOMEM ? errprintf (errp, "out of memory")
                               : malformed (errp, errno == EINVAL ? why.text : "the payload is too long");
    if (!jv_is (o, JV_OBJECT))
        return malformed (errp, "the payload must be a JSON object");
    int64_t n = (value = jv_member (o, "count")) ? jv_integer (value) : 1;
    *count = n > 0 && n <= UINT32_MAX ? (uint32_t)n : 0;
    return 0;
}

static char *put_text (char *p, const char *text)
{
    size_t len = strlen (text);

    memcpy (p, text, len);
    return p + len;
}

static char *put_number (char *p, uint32_t n)
{
    char digits[10], *d = digits + sizeof (digits);

    do
        *--d = (char)('0' + n % 10);
    while (n /= 10);
    memcpy (p, d, (size_t)(digits + sizeof (digits) - d));
    return p + (digits + sizeof (digits) - d);
}

size_t wire_write_runs (char *buf, const struct id_run *run, size_t n)
{
    char *p = put_text (buf, "{\"runs\":[");

    for (size_t i = 0; i < n; i++) {
        p = put_text (p, i > 0 ? ",[\"" : "[\"");
        p += fluid_format (run[i].first, FLUID_F58, p, FLUID_TEXT_MAX);
        p = put_text (p, "\",");
        p = put_number (p, run[i].n);
        *p++ = ']';
    }
    p = put_text (p, "]}");
    *p++ = '\0';
    return (size_t)(p - buf);
}

/* --- fluid.lease: writing --------------------------------------------------------------------------- */

/* The size is sent only if it is not 0. */
static json_t *pack_want (const struct lease_want *w)
{
    json_t *o = json_pack ("[I,s,I,o]", (json_int_t)w->generator, w->incarnation, (json_int_t)w->number,
                           wire_number (w->have_hi_ms));

    if (w->size > 0)
        json_add_new (&o, json_integer (w->size));
    return o;
}

/* 'left_ms', how long borrowers may still use the returned time, is sent only if it is not 0. */
static json_t *pack_back (const struct lease_back *b)
{
    json_t *o = json_pack ("[I,s,o]", (json_int_t)b->generator, b->incarnation, wire_number (b->end_ms));

    if (b->left_ms > 0)
        json_add_new (&o, json_integer ((json_int_t)b->left_ms));
    return o;
}

static json_t *pack_grant (const struct lease_grant *g)
{
    return json_pack ("[I,s,I,o,o]", (json_int_t)g->generator, g->incarnation, (json_int_t)g->number,
                      wire_number (g->lo_ms), wire_number (g->hi_ms));
}

json_t *wire_pack_lease_request (const struct lease_request *req)
{
    json_t *want = json_array (), *back = json_array ();

    for (size_t i = 0; i < req->nwant; i++)
        json_add_new (&want, pack_want (&req->want[i]));
    for (size_t i = 0; i < req->nback; i++)
        json_add_new (&back, pack_back (&req->back[i]));
    json_t *o = json_pack ("{s:o,s:o}", "want", want, "back", back);
    if (req->has_epoch)
        json_put_new (&o, "epoch", wire_date (req->epoch_ms));
    return o;
}

json_t *wire_pack_lease_answer (const struct lease_answer *a)
{
    json_t *lease = json_array ();

    for (size_t i = 0; i < a->ngrant; i++)
        json_add_new (&lease, pack_grant (&a->grant[i]));
    json_t *o = json_pack ("{s:o}", "lease", lease);
    if (a->has_time) {
        json_put_new (&o, "time_us", json_pack ("[o,o]", wire_number (a->received_us), wire_number (a->sent_us)));
        json_put_new (&o, "bound_us", wire_number (a->bound_us));
    }
    if (a->lease_ms > 0)
        json_put_new (&o, "lease_ms", wire_number (a->lease_ms));
    if (a->has_epoch)
        json_put_new (&o, "epoch", wire_date (a->epoch_ms));
    return o;
}

/* --- fluid.lease: reading --------------------------------------------------------------------------- */

static bool get_u64 (const char *text, uint64_t *n)
{
    return parse_number (text, 0, UINT64_MAX, n) == 0;
}

static bool get_name (const char *text, json_int_t generator, char incarnation[IDT_MSG_UUID_LEN + 1], uint32_t *g)
{
    if (strlen (text) != IDT_MSG_UUID_LEN || generator < 0 || generator > FLUID_GENERATOR_MAX)
        return false;
    memcpy (incarnation, text, IDT_MSG_UUID_LEN + 1);
    *g = (uint32_t)generator;
    return true;
}

static bool get_want (json_t *o, void *entry)
{
    struct lease_want *w = entry;
    json_int_t generator, number, size = 0;
    const char *uuid, *have;

    if (json_unpack (o, json_array_size (o) > 4 ? "[I,s,I,s,I !]" : "[I,s,I,s !]", &generator, &uuid, &number, &have,
                     &size)
            < 0
        || number < 1 || size < 0 || size > UINT32_MAX)
        return false;
    w->number = (uint64_t)number;
    w->size = (uint32_t)size;
    return get_name (uuid, generator, w->incarnation, &w->generator) && get_u64 (have, &w->have_hi_ms);
}

static bool get_back (json_t *o, void *entry)
{
    struct lease_back *b = entry;
    json_int_t generator, left_ms = 0;
    const char *uuid, *end;

    if (json_unpack (o, json_array_size (o) > 3 ? "[I,s,s,I !]" : "[I,s,s !]", &generator, &uuid, &end, &left_ms) < 0
        || left_ms < 0)
        return false;
    b->left_ms = (uint64_t)left_ms;
    return get_name (uuid, generator, b->incarnation, &b->generator) && get_u64 (end, &b->end_ms);
}

static bool get_grant (json_t *o, void *entry)
{
    struct lease_grant *g = entry;
    json_int_t generator, number;
    const char *uuid, *lo, *hi;

    if (json_unpack (o, "[I,s,I,s,s !]", &generator, &uuid, &number, &lo, &hi) < 0 || number < 1)
        return false;
    g->number = (uint64_t)number;
    return get_name (uuid, generator, g->incarnation, &g->generator) && get_u64 (lo, &g->lo_ms)
           && get_u64 (hi, &g->hi_ms);
}

/* Read the list 'key', which may be missing, of entries of 'size' bytes into a new array. */
static int get_list (const json_t *o, const char *key, bool (*get) (json_t *o, void *entry), size_t size, void *list,
                     size_t *count, idt_error_t *errp)
{
    json_t *array = json_object_get (o, key), *value;
    size_t n = json_array_size (array), i;
    char *entries;

    if (array && !json_is_array (array))
        return malformed (errp, key);
    if (!(entries = calloc (n + 1, size)))
        return errprintf (errp, "out of memory");
    json_array_foreach (array, i, value) {
        if (!get (value, entries + i * size)) {
            free (entries);
            return malformed (errp, key);
        }
    }
    *(void **)list = entries;
    *count = n;
    return 0;
}

static int get_epoch (const json_t *o, bool *has_epoch, int64_t *epoch_ms, idt_error_t *errp)
{
    const json_t *value = json_object_get (o, "epoch");

    *has_epoch = value != NULL;
    if (value && (!json_is_string (value) || parse_date (json_string_value (value), epoch_ms) < 0))
        return malformed (errp, "epoch");
    return 0;
}

int wire_get_lease_request (const json_t *o, struct lease_request *req, idt_error_t *errp)
{
    struct lease_request r = { 0 };

    if (get_list (o, "want", get_want, sizeof (r.want[0]), &r.want, &r.nwant, errp) < 0
        || get_list (o, "back", get_back, sizeof (r.back[0]), &r.back, &r.nback, errp) < 0
        || get_epoch (o, &r.has_epoch, &r.epoch_ms, errp) < 0) {
        lease_request_fini (&r);
        return -1;
    }
    *req = r;
    return 0;
}

/* Read the times, and the length of rank 0's leases. All are optional, but an answer with time_us must have bound_us.
 */
static int get_times (const json_t *o, struct lease_answer *a, idt_error_t *errp)
{
    const char *received = NULL, *sent = NULL, *bound = "", *lease = NULL;

    if (json_unpack ((json_t *)o, "{s?[s,s !] s?s s?s}", "time_us", &received, &sent, "bound_us", &bound, "lease_ms",
                     &lease)
            < 0
        || (received
            && (!get_u64 (received, &a->received_us) || !get_u64 (sent, &a->sent_us) || !get_u64 (bound, &a->bound_us)))
        || (lease && parse_number (lease, 1, FLUID_TIMESTAMP_MAX / 4, &a->lease_ms) < 0))
        return malformed (errp, "time_us, bound_us or lease_ms has a bad value");
    a->has_time = received != NULL;
    return 0;
}

int wire_get_lease_answer (const json_t *o, struct lease_answer *answer, idt_error_t *errp)
{
    struct lease_answer a = { 0 };

    if (get_list (o, "lease", get_grant, sizeof (a.grant[0]), &a.grant, &a.ngrant, errp) < 0
        || get_epoch (o, &a.has_epoch, &a.epoch_ms, errp) < 0 || get_times (o, &a, errp) < 0) {
        free ((void *)a.grant);
        return -1;
    }
    *answer = a;
    return 0;
}

/* --- fluid.share --------------------------------------------------------------------------------------- */

json_t *wire_pack_share_want (const struct share_want *w)
{
    return json_pack ("{s:[I,s,I,I,o,I]}", "want", (json_int_t)w->rank, w->incarnation, (json_int_t)w->number,
                      (json_int_t)w->size, wire_number (w->end_ms), (json_int_t)w->left_ms);
}

json_t *wire_pack_share (const struct share *s, uint64_t retry_ms)
{
    json_t *o = json_object ();
    uint32_t first = 0, size = s ? area_run (s->granules, &first) : 0;

    if (s)
        json_put_new (&o, "share",
                      json_pack ("[s,I,I,I,I,o,o,I]", s->incarnation, (json_int_t)s->number, (json_int_t)s->generator,
                                 (json_int_t)first, (json_int_t)size, wire_number (s->range.lo_ms),
                                 wire_number (s->range.hi_ms), (json_int_t)s->use_ms));
    json_put_new (&o, "retry_ms", json_integer ((json_int_t)retry_ms));
    return o;
}

int wire_get_share_want (const json_t *o, struct share_want *want, idt_error_t *errp)
{
    json_int_t rank, number, size, left_ms;
    const char *uuid, *end;
    struct share_want w;

    if (json_unpack ((json_t *)o, "{s:[I,s,I,I,s,I !]}", "want", &rank, &uuid, &number, &size, &end, &left_ms) < 0
        || rank < 0 || rank > UINT32_MAX || strlen (uuid) != IDT_MSG_UUID_LEN || number < 1 || left_ms < 0
        || left_ms > (json_int_t)FLUID_TIMESTAMP_MAX || !get_u64 (end, &w.end_ms))
        return malformed (errp, "want must be a rank, a UUID, a number from 1, a size, an end, and a time");
    if (size != 0 && (size < 0 || size > AREA_MAX_SIZE || area_granules (0, (uint32_t)size) == 0))
        return malformed (errp, "the size must be 0, or a power of two from 16 to 512");
    memcpy (w.incarnation, uuid, IDT_MSG_UUID_LEN + 1);
    w.rank = (uint32_t)rank;
    w.number = (uint64_t)number;
    w.size = (uint32_t)size;
    w.left_ms = (uint64_t)left_ms;
    *want = w;
    return 0;
}

static int get_share (const json_t *o, struct share *share, idt_error_t *errp)
{
    json_int_t number, generator, first, size, use_ms;
    const char *uuid, *lo, *hi;
    struct share s = { .number = 0 };

    if (json_unpack ((json_t *)o, "[s,I,I,I,I,s,s,I !]", &uuid, &number, &generator, &first, &size, &lo, &hi, &use_ms)
            < 0
        || strlen (uuid) != IDT_MSG_UUID_LEN || number < 1 || generator < 0 || generator > FLUID_GENERATOR_MAX
        || first < 0 || first > FLUID_SEQUENCE_MAX || size < 0 || size > AREA_MAX_SIZE || use_ms < 0
        || use_ms > (json_int_t)FLUID_TIMESTAMP_MAX || !get_u64 (lo, &s.range.lo_ms) || !get_u64 (hi, &s.range.hi_ms)
        || (s.granules = area_granules ((uint32_t)first, (uint32_t)size)) == 0)
        return malformed (errp, "share is not a valid sublease");
    memcpy (s.incarnation, uuid, IDT_MSG_UUID_LEN + 1);
    s.number = (uint64_t)number;
    s.generator = (uint32_t)generator;
    s.use_ms = (uint64_t)use_ms;
    *share = s;
    return 0;
}

int wire_get_share (const json_t *o, struct share *share, bool *any, uint64_t *retry_ms, idt_error_t *errp)
{
    const json_t *value = json_object_get (o, "share");
    json_int_t ms = 0;

    if (json_unpack ((json_t *)o, "{s?I}", "retry_ms", &ms) < 0 || ms < 0)
        return malformed (errp, "retry_ms");
    if (value && get_share (value, share, errp) < 0)
        return -1;
    *any = value != NULL;
    *retry_ms = (uint64_t)ms;
    return 0;
}

/* --- fluid.position ------------------------------------------------------------------------------------ */

json_t *wire_pack_report (const struct report *r)
{
    json_t *o = json_pack ("{s:I s:s s:[I,o] s:o}", "rank", (json_int_t)r->rank, "from", r->from, "lessees",
                           (json_int_t)r->lessees.count, wire_number (r->lessees.sum), "low_ms",
                           wire_number (r->low_ms));

    if (r->borrowed_low_ms > 0)
        json_put_new (&o, "borrowed_low_ms", wire_number (r->borrowed_low_ms));
    return o;
}

int wire_get_report (const json_t *o, struct report *report, idt_error_t *errp)
{
    const char *from, *sum, *low, *borrowed = "0";
    json_int_t rank, count;
    struct report r;

    if (json_unpack ((json_t *)o, "{s:I s:s s:[I,s !] s:s s?s}", "rank", &rank, "from", &from, "lessees", &count, &sum,
                     "low_ms", &low, "borrowed_low_ms", &borrowed)
            < 0
        || rank < 0 || rank > UINT32_MAX || strlen (from) != IDT_MSG_UUID_LEN || count < 0 || count > UINT32_MAX
        || !get_u64 (sum, &r.lessees.sum) || !get_u64 (low, &r.low_ms) || !get_u64 (borrowed, &r.borrowed_low_ms))
        return malformed (errp, "a position must have rank, from, lessees and low_ms");
    r.rank = (uint32_t)rank;
    memcpy (r.from, from, IDT_MSG_UUID_LEN + 1);
    r.lessees.count = (uint32_t)count;
    *report = r;
    return 0;
}
