/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* exchange.c - a request and its answer */
#include "config.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/server/accept.h"
#include "http/server/exchange.h"
#include "libutil/errprintf.h"

#define POLICY "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
#define BLOCK 8192 /* largest part of a stream that is passed on in one call */

/* --- the answer --------------------------------------------------------- */

static const char *reason (unsigned status)
{
    switch (status) {
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 413:
        return "Content Too Large";
    case 429:
        return "Too Many Requests";
    case 501:
        return "Not Implemented";
    case 503:
        return "Service Unavailable";
    default:
        return "Internal Server Error";
    }
}

/* A proxy that compresses a stream would hold it back until it has enough data, so this forbids it. */
static const char *cache_control (const struct exchange *x)
{
    return x->streams ? "no-store, no-transform" : x->resource ? "no-cache" : "no-store";
}

static void add_headers (const struct exchange *x, struct MHD_Response *r)
{
    MHD_add_response_header (r, "Content-Type", x->type);
    MHD_add_response_header (r, "Cache-Control", cache_control (x));
    if (x->streams)
        MHD_add_response_header (r, "X-Accel-Buffering",
                                 "no"); /* for nginx, which would otherwise wait until a buffer is full */
    MHD_add_response_header (r, "X-Content-Type-Options", "nosniff");
    if (x->resource) {
        MHD_add_response_header (r, "ETag", x->resource->etag);
        MHD_add_response_header (r, "Content-Security-Policy", POLICY);
        MHD_add_response_header (r, "Referrer-Policy", "no-referrer");
    }
    if (x->last)
        MHD_add_response_header (r, "Connection", "close");
    if (x->status == 401)
        MHD_add_response_header (r, "WWW-Authenticate", "Bearer");
    if (x->status == 405)
        MHD_add_response_header (r, "Allow", x->allow);
    if (x->status == 429 || x->status == 503)
        MHD_add_response_header (r, "Retry-After", "1");
}

static ssize_t read_cb (void *cls, uint64_t pos, char *buf, size_t max)
{
    struct exchange *x = cls;

    if (x->over)
        return MHD_CONTENT_READER_END_OF_STREAM;
    size_t n = x->read (x, buf, max);
    if (n == 0)
        exchange_suspend (x);
    return (ssize_t)n;
}

static struct MHD_Response *create_response (struct exchange *x)
{
    const struct resource *file = x->status == 200 || x->status == 304 ? x->resource : NULL;

    if (x->read)
        return MHD_create_response_from_callback (MHD_SIZE_UNKNOWN, BLOCK, read_cb, x, NULL);
    if (file)
        return MHD_create_response_from_buffer (x->status == 304 ? 0 : file->size, (void *)file->bytes,
                                                MHD_RESPMEM_PERSISTENT);
    return x->text ? MHD_create_response_from_buffer (strlen (x->text), x->text, MHD_RESPMEM_MUST_FREE) : NULL;
}

bool exchange_answer (struct exchange *x)
{
    struct MHD_Response *r = create_response (x);

    if (!r)
        return false;
    x->text = NULL;
    add_headers (x, r);
    enum MHD_Result rc = MHD_queue_response (x->connection, x->status, r);
    MHD_destroy_response (r);
    return rc == MHD_YES;
}

void exchange_suspend (struct exchange *x)
{
    x->suspended = true;
    MHD_suspend_connection (x->connection);
}

void exchange_resume (struct exchange *x)
{
    if (x->suspended)
        MHD_resume_connection (x->connection);
    x->suspended = false;
}

/* --- what it is --------------------------------------------------------- */

static bool has_room (const struct room *room, size_t len)
{
    return len <= EXCHANGE_SMALL || room->held + len <= room->max;
}

void exchange_reply (struct exchange *x, unsigned status, const char *type, char *text)
{
    size_t len = text ? strlen (text) : 0;

    if (!has_room (x->room, len)) {
        free (text);
        exchange_fail (x, 503, "--max-answers: no memory for %zu bytes: clients have not read %zu bytes yet", len,
                       x->room->held);
        return;
    }
    x->status = status;
    x->type = type;
    x->text = text;
    x->held = len;
    x->room->held += len;
    x->ready = true;
    exchange_resume (x);
}

char *exchange_json_text (json_t *o)
{
    char *text = o ? json_dumps (o, JSON_COMPACT | JSON_REAL_PRECISION (12)) : NULL;
    size_t len = text ? strlen (text) : 0;
    char *line = text ? realloc (text, len + 2) : NULL;

    json_decref (o);
    if (line)
        strcpy (line + len, "\n");
    else
        free (text);
    return line;
}

static void reply_json (struct exchange *x, unsigned status, const char *type, json_t *o)
{
    exchange_reply (x, status, type, exchange_json_text (o));
}

void exchange_reply_json (struct exchange *x, unsigned status, json_t *o)
{
    reply_json (x, status, "application/json", o);
}

void exchange_fail (struct exchange *x, unsigned status, const char *fmt, ...)
{
    idt_error_t error;
    char detail[512];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (detail, sizeof (detail), fmt, ap);
    va_end (ap);
    errprintf (&error, "%s", detail); /* converts it to text that JSON accepts */
    reply_json (x, status, "application/problem+json",
                json_pack ("{s:s s:s s:i s:s}", "type", "about:blank", "title", reason (status), "status", (int)status,
                           "detail", error.text));
}

static const char *say_errno (int errnum, const char *text)
{
    switch (errnum) {
    case ETIMEDOUT:
        return "the broker does not answer";
    case ECONNRESET:
    case EPIPE:
        return "the connection to the broker is lost: ask again";
    default:
        return text;
    }
}

void exchange_fail_errno (struct exchange *x, int errnum, const char *text)
{
    bool ours = errnum == EPROTO || errnum == EOVERFLOW || errnum == EINVAL;

    exchange_fail (x, ours ? 500 : 503, "%s", say_errno (errnum, text));
}

void exchange_reply_resource (struct exchange *x)
{
    const char *known = exchange_header (x, "If-None-Match");

    x->status = known && (strcmp (known, "*") == 0 || strstr (known, x->resource->etag)) ? 304 : 200;
    x->type = x->resource->type;
    x->ready = true;
}

/* A response to HEAD has no body, but libmicrohttpd would send the end of its chunks and corrupt the connection. */
void exchange_stream (struct exchange *x, const char *type, exchange_read_f *read)
{
    x->streams = true;
    if (strcmp (x->method, "HEAD") == 0) {
        exchange_reply (x, 200, type, strdup (""));
        return;
    }
    x->status = 200;
    x->type = type;
    x->read = read;
    x->ready = true;
}

/* --- the request --------------------------------------------------------- */

void *exchange_state_new (struct exchange *x, size_t size)
{
    x->state = calloc (1, size);
    if (!x->state)
        exchange_fail_errno (x, ENOMEM, strerror (ENOMEM));
    return x->state;
}

const char *exchange_parameter (const struct exchange *x, const char *name)
{
    const char *value = NULL;

    if (MHD_lookup_connection_value_n (x->connection, MHD_GET_ARGUMENT_KIND, name, strlen (name), &value, NULL)
        != MHD_YES)
        return NULL;
    return value ? value : "";
}

const char *exchange_header (const struct exchange *x, const char *name)
{
    return MHD_lookup_connection_value (x->connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result accept_cb (void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
    if (strcasecmp (name, "Accept") == 0)
        accept_read (cls, value);
    return MHD_YES;
}

size_t exchange_wants (const struct exchange *x, const char *const *types, size_t n)
{
    struct accept a;

    accept_init (&a, types, n);
    MHD_get_connection_values (x->connection, MHD_HEADER_KIND, accept_cb, &a);
    return accept_choose (&a);
}

void exchange_ask (struct exchange *x, idt_future_t *f, idt_future_f cb)
{
    x->f = f;
    if (!f || idt_future_then (f, EXCHANGE_WAIT_MS, cb, x) < 0)
        exchange_fail_errno (x, errno, strerror (errno));
}

void exchange_destroy (struct exchange *x)
{
    if (x->leave)
        x->leave (x);
    x->room->held -= x->held;
    idt_future_destroy (x->f);
    free (x->state);
    free (x->text);
    free (x);
}
