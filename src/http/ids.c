/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ids.c - POST /v1/ids makes ids, GET /v1/ids/ID decodes one
 *
 * A request for at most FROM_POOL ids is served from a pool (pool.h). For a request for more ids the broker is asked
 * directly.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "http/ids.h"
#include "http/pool.h"
#include "libutil/clock.h"
#include "libutil/duration.h"

#define FROM_POOL 256U /* largest number of ids of a request that is served from the pool */

struct ids {
    idt_t *h;
    struct pool pool;
    idt_future_t *block; /* the block that the pool waits for; NULL: none */
    uint32_t block_size;
    uint32_t rate; /* ids a second; 0: no limit */
    double saved;  /* ids that may be made at saved_us: at most 'rate' */
    uint64_t saved_us;
    int64_t epoch_ms; /* below 0: not known */
};

/* The state of a request to make ids or to decode an id, until the broker has answered. */
struct wanted_ids {
    struct ids *ids;
    struct exchange *x;
    struct pool_client client;
    enum fluid_form form;
    fluid_t id;
};

/* --- making ids --------------------------------------------------------- */

static const char *const plain = "text/plain; charset=utf-8";

static bool wants_lines (const struct exchange *x)
{
    static const char *const types[] = { "application/json", "text/plain" };

    return exchange_wants (x, types, 2) == 1;
}

static enum fluid_form form_of (const struct exchange *x)
{
    return ((const struct wanted_ids *)x->state)->form;
}

static void reply_lines (struct exchange *x, const fluid_t *ids, uint32_t n)
{
    size_t size = (size_t)n * FLUID_TEXT_MAX + 1, count = n, len;
    char *text = malloc (size);

    if (text && fluid_format_lines (ids, &count, form_of (x), text, size, &len) < 0) {
        free (text);
        text = NULL;
    }
    exchange_reply (x, 200, plain, text);
}

/* The JSON text is made without jansson, because answers are frequent. No form has a character that JSON would escape.
 */
static void reply_array (struct exchange *x, const fluid_t *ids, uint32_t n)
{
    char *text = malloc ((size_t)n * (FLUID_TEXT_MAX + 3) + 16), *to = text;
    enum fluid_form form = form_of (x);

    if (text)
        to = stpcpy (to, "{\"ids\":[");
    for (uint32_t i = 0; text && i < n; i++) {
        *to++ = '"';
        to += fluid_format (ids[i], form, to, FLUID_TEXT_MAX);
        to = stpcpy (to, i + 1 < n ? "\"," : "\"");
    }
    if (text)
        strcpy (to, "]}\n");
    exchange_reply (x, 200, "application/json", text);
}

static void reply_ids (struct exchange *x, const fluid_t *ids, uint32_t n)
{
    (wants_lines (x) ? reply_lines : reply_array) (x, ids, n);
}

/* --- the pool --------------------------------------------------------- */

static uint64_t now_us (void)
{
    return clock_us (CLOCK_MONOTONIC);
}

static struct exchange *exchange_of (struct pool_client *c)
{
    return ((struct wanted_ids *)((char *)c - offsetof (struct wanted_ids, client)))->x;
}

static void ask_if_wanted (struct ids *ids);

static void serve_pool (struct ids *ids)
{
    const fluid_t *given;
    struct pool_client *c;

    while ((c = pool_next (&ids->pool, now_us (), &given)))
        reply_ids (exchange_of (c), given, c->n);
    ask_if_wanted (ids);
}

static void fail_pool (struct ids *ids, int errnum, const char *text)
{
    struct pool_client *c;

    while ((c = pool_drop (&ids->pool)))
        exchange_fail_errno (exchange_of (c), errnum, text);
}

static void block_cb (idt_future_t *f, void *arg)
{
    struct ids *ids = arg;
    fluid_t got[POOL_MAX_BLOCK];
    bool good = idt_fluid_generate_get (f, ids->block_size, got) == 0;
    int errnum = errno;

    pool_came (&ids->pool, now_us (), good ? got : NULL, ids->block_size);
    if (!good)
        fail_pool (ids, errnum, idt_future_errnum (f) ? idt_future_error (f) : strerror (errnum));
    idt_future_destroy (f);
    ids->block = NULL;
    serve_pool (ids);
}

static void ask_if_wanted (struct ids *ids)
{
    uint32_t n = pool_wants (&ids->pool);

    if (n == 0)
        return;
    ids->block_size = n;
    ids->block = idt_fluid_generate_async (ids->h, n);
    if (ids->block && idt_future_then (ids->block, EXCHANGE_WAIT_MS, block_cb, ids) == 0)
        return;
    int errnum = errno;
    idt_future_destroy (ids->block);
    ids->block = NULL;
    pool_came (&ids->pool, now_us (), NULL, 0);
    fail_pool (ids, errnum, strerror (errnum));
}

/* --- POST /v1/ids --------------------------------------------------------- */

static void many_cb (idt_future_t *f, void *arg)
{
    struct exchange *x = arg;
    struct ids *ids = ((struct wanted_ids *)x->state)->ids;
    uint32_t n = ((struct wanted_ids *)x->state)->client.n;
    fluid_t *got = malloc ((size_t)n * sizeof (got[0]));

    if (!got)
        exchange_fail_errno (x, ENOMEM, strerror (ENOMEM));
    else if (idt_fluid_generate_get (f, n, got) == 0) {
        pool_pass (&ids->pool, got[n - 1]);
        reply_ids (x, got, n);
        serve_pool (ids);
    }
    else
        exchange_fail_errno (x, errno, idt_future_errnum (f) ? idt_future_error (f) : strerror (errno));
    free (got);
}

/* Ids that clients may make, but do not make within a second, are no longer allowed later. */
static bool may_make (struct ids *ids, uint32_t n)
{
    uint64_t now = now_us ();
    double saved = ids->saved + (double)(now - ids->saved_us) * 1E-6 * ids->rate, most = ids->rate;

    if (ids->rate == 0)
        return true;
    ids->saved = saved < most ? saved : most;
    ids->saved_us = now;
    if (ids->saved < n)
        return false;
    ids->saved -= n;
    return true;
}

/* Returns 0 if the request was answered with an error. */
static uint32_t read_count (struct exchange *x)
{
    const char *s = exchange_parameter (x, "n");
    size_t digits = s ? strspn (s, "0123456789") : 0;
    unsigned long n = s && digits > 0 && digits <= 5 && !s[digits] ? strtoul (s, NULL, 10) : 0;

    if (!s)
        return 1;
    if (n >= 1 && n <= IDT_FLUID_MAX_COUNT)
        return (uint32_t)n;
    exchange_fail (x, 400, "n=%.64s: a number from 1 to %u is needed", s, IDT_FLUID_MAX_COUNT);
    return 0;
}

static struct wanted_ids *wanted_new (struct ids *ids, struct exchange *x)
{
    struct wanted_ids *w = exchange_state_new (x, sizeof (*w));

    if (w)
        *w = (struct wanted_ids){ .ids = ids, .x = x, .form = FLUID_F58 };
    return w;
}

/* Returns false if the request was answered with an error. */
static bool read_wanted (struct exchange *x, struct wanted_ids *w)
{
    const char *form = exchange_parameter (x, "to");

    if (form && fluid_form_find (form, &w->form) < 0) {
        exchange_fail (x, 400, "to=%.64s: dec, hex, dothex, f58, words or emoji is needed", form);
        return false;
    }
    return (w->client.n = read_count (x)) > 0;
}

void ids_new (struct ids *ids, struct exchange *x)
{
    struct wanted_ids *w = wanted_new (ids, x);
    const fluid_t *given;

    if (!w || !read_wanted (x, w))
        return;
    if (!may_make (ids, w->client.n))
        exchange_fail (x, 429, "more than %" PRIu32 " ids a second (--rate)", ids->rate);
    else if (w->client.n > FROM_POOL)
        exchange_ask (x, idt_fluid_generate_async (ids->h, w->client.n), many_cb);
    else {
        if ((given = pool_take (&ids->pool, now_us (), w->client.n)))
            reply_ids (x, given, w->client.n);
        else
            pool_wait (&ids->pool, &w->client);
        ask_if_wanted (ids);
    }
}

/* --- GET /v1/ids/ID --------------------------------------------------------- */

static void set_epoch (struct ids *ids, idt_future_t *f)
{
    const char *epoch;
    int64_t ms;

    if (idt_rpc_get_unpack (f, "{s:s}", "epoch", &epoch) == 0 && parse_date (epoch, &ms) == 0)
        ids->epoch_ms = ms;
}

static void reply_fields (struct exchange *x)
{
    const struct wanted_ids *w = x->state;
    const struct ids *ids = w->ids;
    struct fluid_fields fields = fluid_split (w->id);
    char buf[FLUID_TEXT_MAX], date[DATE_SIZE];
    json_t *o = json_object ();

    for (int form = 0; form < FLUID_FORM_COUNT; form++)
        if (form != FLUID_F58_UTF8 && fluid_format (w->id, form, buf, sizeof (buf)) > 0)
            json_object_set_new (o, fluid_form_name (form), json_string (buf));
    json_object_set_new (o, "timestamp_ms", json_sprintf ("%" PRIu64, fields.timestamp_ms));
    json_object_set_new (o, "generator", json_integer (fields.generator));
    json_object_set_new (o, "sequence", json_integer (fields.sequence));
    if (ids->epoch_ms >= 0)
        json_object_set_new (o, "date", json_string (format_date (ids->epoch_ms + (int64_t)fields.timestamp_ms, date)));
    exchange_reply_json (x, 200, o);
}

/* If the epoch is not known, the answer has no date. */
static void epoch_cb (idt_future_t *f, void *arg)
{
    struct exchange *x = arg;

    set_epoch (((struct wanted_ids *)x->state)->ids, f);
    reply_fields (x);
}

void ids_show (struct ids *ids, struct exchange *x, const char *text)
{
    struct wanted_ids *w = wanted_new (ids, x);
    size_t pos = 0;

    if (!w)
        return;
    if (fluid_parse (text, strlen (text), &w->id, &pos) < 0)
        exchange_fail (x, 400, "not an id: character %zu is not allowed at this place", pos + 1);
    else if (ids->epoch_ms >= 0)
        reply_fields (x);
    else
        exchange_ask (x, idt_rpc (ids->h, "fluid.info", NULL, IDT_NODEID_ANY, 0), epoch_cb);
}

/* --- life --------------------------------------------------------- */

struct ids *ids_create (idt_t *h, uint32_t rate)
{
    struct ids *ids = calloc (1, sizeof (*ids));

    if (!ids)
        return NULL;
    ids->h = h;
    ids->rate = rate;
    ids->saved = rate;
    ids->saved_us = now_us ();
    ids->epoch_ms = -1;
    pool_init (&ids->pool);
    return ids;
}

void ids_destroy (struct ids *ids)
{
    if (!ids)
        return;
    while (pool_drop (&ids->pool))
        ;
    idt_future_destroy (ids->block);
    free (ids);
}
