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

/* Most wants are for a whole generator, and short. */
static json_t *pack_want (const struct want *w)
{
    json_t *o = json_pack ("[I,s,I,o]", (json_int_t)w->rank, w->incarnation, (json_int_t)w->number,
                           wire_number (w->end_ms));

    if (w->size != BOX_WHOLE || w->left_ms > 0 || w->ranks > 0) {
        json_add_new (&o, json_integer (w->size));
        json_add_new (&o, json_integer ((json_int_t)w->left_ms));
    }
    if (w->ranks > 0)
        json_add_new (&o, json_integer (w->ranks));
    return o;
}

static void add_part (json_t **o, const struct grant *g)
{
    json_add_new (o, json_integer (g->box.generator));
    json_add_new (o, wire_number (g->box.granules));
    json_add_new (o, json_integer ((json_int_t)g->use_ms));
}

static json_t *pack_grant (const struct grant *g)
{
    const struct range *r = &g->box.range;
    json_t *o = json_pack ("[I,s,I,o,o]", (json_int_t)g->rank, g->incarnation, (json_int_t)g->number,
                           wire_number (r->lo_ms), wire_number (r->hi_ms));

    if (g->box.granules != UINT64_MAX)
        add_part (&o, g);
    return o;
}

json_t *wire_pack_lease_request (const struct lease_request *req)
{
    const struct want *w = req->want;

    if (req->is_part)
        return json_pack ("{s:[I,s,I,o,I,I,o]}", "part", (json_int_t)w->rank, w->incarnation, (json_int_t)w->number,
                          wire_number (w->end_ms), (json_int_t)w->size, (json_int_t)w->left_ms, wire_number (w->kept));
    json_t *want = json_array ();

    for (size_t i = 0; i < req->nwant; i++)
        json_add_new (&want, pack_want (&req->want[i]));
    json_t *o = json_pack ("{s:o}", "want", want);
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
    if (a->share > 0)
        json_put_new (&o, "share", json_integer (a->share));
    if (a->retry_ms > 0)
        json_put_new (&o, "retry_ms", json_integer ((json_int_t)a->retry_ms));
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

/* The sender's name, and the number of its request. */
static bool get_name (json_int_t rank, const char *uuid, json_int_t number, uint32_t *to_rank,
                      char incarnation[IDT_MSG_UUID_LEN + 1], uint64_t *to_number)
{
    if (rank < 0 || rank > UINT32_MAX || strlen (uuid) != IDT_MSG_UUID_LEN || number < 1)
        return false;
    *to_rank = (uint32_t)rank;
    memcpy (incarnation, uuid, IDT_MSG_UUID_LEN + 1);
    *to_number = (uint64_t)number;
    return true;
}

/* A want for a whole generator. The last elements may be missing. */
static bool get_want (json_t *o, void *entry)
{
    static const char *const formats[] = { "[I,s,I,s !]", "[I,s,I,s,I !]", "[I,s,I,s,I,I !]", "[I,s,I,s,I,I,I !]" };
    json_int_t rank, number, size = BOX_WHOLE, left_ms = 0, ranks = 0;
    size_t n = json_array_size (o);
    struct want *w = entry;
    const char *uuid, *end;

    if (n < 4 || n > 7 || json_unpack (o, formats[n - 4], &rank, &uuid, &number, &end, &size, &left_ms, &ranks) < 0
        || (size != 0 && size != BOX_WHOLE) || left_ms < 0 || left_ms > (json_int_t)FLUID_TIMESTAMP_MAX || ranks < 0
        || ranks > UINT32_MAX)
        return false;
    w->size = (uint32_t)size;
    w->left_ms = (uint64_t)left_ms;
    w->ranks = (uint32_t)ranks;
    return get_name (rank, uuid, number, &w->rank, w->incarnation, &w->number) && w->rank <= FLUID_GENERATOR_MAX
           && get_u64 (end, &w->end_ms);
}

static bool get_part_want (json_t *o, struct want *w)
{
    json_int_t rank, number, size, left_ms;
    const char *uuid, *end, *kept;

    if (json_unpack (o, "[I,s,I,s,I,I,s !]", &rank, &uuid, &number, &end, &size, &left_ms, &kept) < 0 || size < 0
        || (size != 0 && !box_is_part_size ((uint64_t)size)) || left_ms < 0
        || left_ms > (json_int_t)FLUID_TIMESTAMP_MAX)
        return false;
    w->size = (uint32_t)size;
    w->left_ms = (uint64_t)left_ms;
    return get_name (rank, uuid, number, &w->rank, w->incarnation, &w->number) && get_u64 (end, &w->end_ms)
           && get_u64 (kept, &w->kept) && (w->kept == 0 || w->size > 0);
}

/* What a grant of a part has in addition. */
static bool get_part (json_t *o, struct grant *g)
{
    json_int_t generator = -1, use_ms = 0;
    const char *granules = "";

    if (json_unpack (o, "[I,s,I,s,s,I,s,I !]", &(json_int_t){ 0 }, &(const char *){ NULL }, &(json_int_t){ 0 },
                     &(const char *){ NULL }, &(const char *){ NULL }, &generator, &granules, &use_ms)
            < 0
        || generator < 0 || generator > FLUID_GENERATOR_MAX || !get_u64 (granules, &g->box.granules) || use_ms < 1
        || use_ms > (json_int_t)FLUID_TIMESTAMP_MAX)
        return false;
    g->box.generator = (uint32_t)generator;
    g->use_ms = (uint64_t)use_ms;
    return g->box.granules != 0 && g->box.granules != UINT64_MAX;
}

static bool get_grant (json_t *o, void *entry)
{
    struct grant *g = entry;
    const char *uuid, *lo, *hi;
    json_int_t rank, number;
    bool whole = json_array_size (o) == 5;

    if (json_unpack (o, whole ? "[I,s,I,s,s !]" : "[I,s,I,s,s]", &rank, &uuid, &number, &lo, &hi) < 0
        || !get_name (rank, uuid, number, &g->rank, g->incarnation, &g->number) || !get_u64 (lo, &g->box.range.lo_ms)
        || !get_u64 (hi, &g->box.range.hi_ms))
        return false;
    g->box.generator = g->rank;
    g->box.granules = UINT64_MAX;
    return whole ? g->rank <= FLUID_GENERATOR_MAX : get_part (o, g);
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

static int get_part_request (const json_t *o, struct lease_request *req, idt_error_t *errp)
{
    struct want *want = calloc (1, sizeof (*want));

    if (!want)
        return errprintf (errp, "out of memory");
    if (!get_part_want (json_object_get (o, "part"), want)) {
        free (want);
        return malformed (errp, "part must be a rank, a UUID, a number from 1, an end, a size (0, or a multiple of "
                                "16 up to 1008), a time, and what is kept");
    }
    *req = (struct lease_request){ .want = want, .nwant = 1, .is_part = true };
    return 0;
}

int wire_get_lease_request (const json_t *o, struct lease_request *req, idt_error_t *errp)
{
    struct lease_request r = { 0 };

    if (json_object_get (o, "part"))
        return get_part_request (o, req, errp);
    if (get_list (o, "want", get_want, sizeof (r.want[0]), &r.want, &r.nwant, errp) < 0
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
    json_int_t retry_ms = 0, share = 0;

    if (json_unpack ((json_t *)o, "{s?[s,s !] s?s s?s s?I s?I}", "time_us", &received, &sent, "bound_us", &bound,
                     "lease_ms", &lease, "retry_ms", &retry_ms, "share", &share)
            < 0
        || retry_ms < 0 || share < 0 || share > BOX_WHOLE
        || (received
            && (!get_u64 (received, &a->received_us) || !get_u64 (sent, &a->sent_us) || !get_u64 (bound, &a->bound_us)))
        || (lease && parse_number (lease, LEASE_MIN_MS, LEASE_MAX_MS, &a->lease_ms) < 0))
        return malformed (errp, "time_us, bound_us, lease_ms, retry_ms or share has a bad value");
    a->retry_ms = (uint64_t)retry_ms;
    a->share = (uint32_t)share;
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

/* --- fluid.position ------------------------------------------------------------------------------------ */

json_t *wire_pack_report (const struct report *r)
{
    json_t *o = json_pack ("{s:I s:s s:[I,o] s:o}", "rank", (json_int_t)r->rank, "from", r->from, "holders",
                           (json_int_t)r->holders.count, wire_number (r->holders.sum), "low_ms",
                           wire_number (r->low_ms));

    if (r->part_low_ms > 0)
        json_put_new (&o, "part_low_ms", wire_number (r->part_low_ms));
    return o;
}

int wire_get_report (const json_t *o, struct report *report, idt_error_t *errp)
{
    const char *from, *sum, *low, *part_low = "0";
    json_int_t rank, count;
    struct report r;

    if (json_unpack ((json_t *)o, "{s:I s:s s:[I,s !] s:s s?s}", "rank", &rank, "from", &from, "holders", &count, &sum,
                     "low_ms", &low, "part_low_ms", &part_low)
            < 0
        || rank < 0 || rank > UINT32_MAX || strlen (from) != IDT_MSG_UUID_LEN || count < 0 || count > UINT32_MAX
        || !get_u64 (sum, &r.holders.sum) || !get_u64 (low, &r.low_ms) || !get_u64 (part_low, &r.part_low_ms))
        return malformed (errp, "a position must have rank, from, holders and low_ms");
    r.rank = (uint32_t)rank;
    memcpy (r.from, from, IDT_MSG_UUID_LEN + 1);
    r.holders.count = (uint32_t)count;
    *report = r;
    return 0;
}
