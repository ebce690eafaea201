/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* server.c - an HTTP server on one thread
 *
 * libmicrohttpd runs before the reactor sleeps, and never within a callback for an answer of the broker. Such a
 * callback resumes a request, and the next run of libmicrohttpd sends the answer.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <microhttpd.h>

#include "http/server/header.h"
#include "http/server/server.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define LATE_MS 5000.
#define LAST_RUNS 64 /* most runs when the server ends: clients that read immediately still get their answer */
#define MEMORY 16384 /* bytes for a connection's headers and output */
#define ENDS "this server ends"
#define CONNECTION_S 30 /* a connection without traffic ends after this time */
#define POLICY "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
#define BLOCK 8192 /* largest part of a stream that is passed on in one call */

/* Newer libraries refuse malformed headers if option CLIENT_DISCIPLINE is set, which it is with server.strict. Older
 * libraries accept most of these headers. But they leave a header at its place in memory, so that 'framing' can check
 * it.
 */
#define CLIENT_DISCIPLINE 38 /* number of this option; the headers of older libraries do not have it */
#if MHD_VERSION >= 0x00097701
_Static_assert(MHD_OPTION_CLIENT_DISCIPLINE_LVL == CLIENT_DISCIPLINE, "the library keeps its option numbers");
#endif

/* The value of a Content-Length that is inserted before all fields of a request. A library that is not strict uses the
 * first Content-Length; if it is not a number, that library sends two answers. With this field before it, such a
 * library reads only bodies that are chunked. The server refuses requests with a body.
 */
static const char no_body[] = "0";

struct server {
    struct server_conf conf;
    idt_reactor_t *reactor;
    server_run_f *run;
    void *arg;
    struct MHD_Daemon *daemon;
    idt_watcher_t *socket, *prepare, *timer, *again, *late;
    struct conn_limits guests;
    uint64_t now_ms; /* time of this turn of the reactor */
    struct room room;
    bool ends;   /* the server ends: new requests are refused with 503 */
    bool strict; /* the library refuses malformed headers */
    LIST_HEAD (, exchange) exchanges;
};

/* --- the answer --------------------------------------------------------- */

static const char *reason (unsigned status)
{
    static const struct {
        unsigned status;
        const char *text;
    } rows[] = {
        { 400, "Bad Request" },       { 401, "Unauthorized" },       { 403, "Forbidden" },
        { 404, "Not Found" },         { 405, "Method Not Allowed" }, { 413, "Content Too Large" },
        { 429, "Too Many Requests" }, { 501, "Not Implemented" },    { 503, "Service Unavailable" },
    };

    for (size_t i = 0; i < sizeof (rows) / sizeof (rows[0]); i++)
        if (rows[i].status == status)
            return rows[i].text;
    return "Internal Server Error";
}

/* A proxy that compresses a stream would hold the stream back until it has enough data. So no-transform forbids proxies
 * to change a stream.
 */
static const char *cache_control (const struct exchange *x)
{
    return x->streams ? "no-store, no-transform" : x->resource ? "no-cache" : "no-store";
}

static void add_headers (const struct exchange *x, struct MHD_Response *r)
{
    MHD_add_response_header (r, "Content-Type", x->type);
    MHD_add_response_header (r, "Cache-Control", cache_control (x));
    /* without this, nginx would wait until a buffer is full */
    if (x->streams)
        MHD_add_response_header (r, "X-Accel-Buffering", "no");
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

static void suspend (struct exchange *x)
{
    x->suspended = true;
    MHD_suspend_connection (x->connection);
}

static ssize_t read_cb (void *cls, uint64_t pos, char *buf, size_t max)
{
    struct exchange *x = cls;

    if (x->over)
        return MHD_CONTENT_READER_END_OF_STREAM;
    size_t n = x->read (x, buf, max);
    if (n == 0)
        suspend (x);
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

/* Queue the answer, which is ready. Returns false if memory is short; the caller must then end the connection. */
static bool queue_answer (struct exchange *x)
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

    assert (!x->ready);
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
    errprintf (&error, "%s", detail); /* errprintf () makes it text that JSON accepts */
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

/* A response to HEAD must have no body, so it gets an empty text. For a stream, libmicrohttpd would send the chunk that
 * marks the end, and the client would take this chunk for the next answer.
 */
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

/* Free the exchange and all that it owns. */
static void exchange_destroy (struct exchange *x)
{
    if (x->leave)
        x->leave (x);
    assert (x->room->held >= x->held);
    x->room->held -= x->held;
    idt_future_destroy (x->f);
    free (x->state);
    free (x->text);
    free (x);
}

/* --- requests --------------------------------------------------------- */

static void turn_to (struct server *s, struct exchange *x, enum guest_turn turn)
{
    if (x->guest)
        conn_limits_turn (&s->guests, x->guest, turn, s->now_ms);
}

/* Queue the answer. Returns MHD_NO if memory is short: libmicrohttpd then ends the connection. */
static enum MHD_Result answer (struct server *s, struct exchange *x)
{
    turn_to (s, x, x->read ? GUEST_WAITS : GUEST_TAKES);
    return queue_answer (x) ? MHD_YES : MHD_NO;
}

/* Return the path of a URL. A client that uses this server as a proxy sends the whole address. */
static const char *path_of (const struct exchange *x, const char *url)
{
    const char *host = x->framing.absolute ? strstr (url, "://") : NULL;
    const char *path = host ? strchr (host + 3, '/') : url;

    return path ? path : "/";
}

static struct exchange *exchange_create (struct server *s, struct MHD_Connection *c, const char *target)
{
    struct exchange *x = calloc (1, sizeof (*x));

    if (!x)
        return NULL;
    x->room = &s->room;
    x->connection = c;
    x->target = target;
    x->target_size = strlen (target);
    framing_target (&x->framing, target, x->target_size);
    const union MHD_ConnectionInfo *info = MHD_get_connection_info (c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    x->guest = info ? info->socket_context : NULL;
    LIST_INSERT_HEAD (&s->exchanges, x, link);
    return x;
}

/* libmicrohttpd calls this with each target before it decodes it. request_cb () gets the returned value in '*state'. */
static void *target_cb (void *cls, const char *target, struct MHD_Connection *c)
{
    struct exchange *x = exchange_create (cls, c, target ? target : "");

    if (x && !((struct server *)cls)->strict
        && MHD_set_connection_value (c, MHD_HEADER_KIND, "Content-Length", no_body) != MHD_YES)
        framing_spoil (&x->framing, "the header exceeds the memory of a connection");
    return x;
}

static void run_handler (struct server *s, struct exchange *x)
{
    turn_to (s, x, GUEST_WAITS);
    if (s->ends)
        exchange_fail (x, 503, ENDS);
    else
        s->run (x, s->arg);
    if (!x->ready)
        suspend (x);
}

static enum MHD_Result field_cb (void *cls, enum MHD_ValueKind kind, const char *name, size_t name_size,
                                 const char *value, size_t value_size)
{
    if (value != no_body)
        framing_field (cls, name, name_size, value ? value : "", value_size);
    return MHD_YES;
}

/* Check the header, which is complete. Returns false if the request was refused. */
static bool begin (const struct server *s, struct exchange *x, const char *url, const char *method, const char *version)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info (x->connection,
                                                                    MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    idt_error_t error;

    x->method = method;
    x->url = path_of (x, url);
    framing_line (&x->framing, method, x->target, x->target_size, version, !s->strict);
    MHD_get_connection_values_n (x->connection, MHD_HEADER_KIND, field_cb, &x->framing);
    unsigned status = framing_end (&x->framing, info ? method + info->header_size : NULL, &error);
    x->last = status != 0 || x->framing.chunked;
    if (status != 0)
        exchange_fail (x, status, "%s", error.text);
    return status == 0;
}

/* A text that contains an encoded NUL would end there after decoding. So such a text stays encoded; it then equals no
 * name and no value.
 */
static size_t unescape_cb (void *cls, struct MHD_Connection *c, char *text)
{
    return strstr (text, "%00") ? strlen (text) : MHD_http_unescape (text);
}

/* libmicrohttpd calls this when the header is complete, with each part of the body, at the end of the body, and again
 * after a request was resumed.
 */
static enum MHD_Result request_cb (void *cls, struct MHD_Connection *c, const char *url, const char *method,
                                   const char *version, const char *data, size_t *size, void **state)
{
    struct server *s = cls;
    struct exchange *x = *state;

    if (!x)
        return MHD_NO; /* target_cb () had no memory */
    if (!x->method)
        return begin (s, x, url, method, version) ? MHD_YES : answer (s, x);
    if (*size > 0) { /* drop the body; the request is refused when the body is complete */
        x->body += *size;
        *size = 0;
        return x->body <= FRAMING_MAX_BODY ? MHD_YES : MHD_NO;
    }
    if (!x->ready)
        run_handler (s, x);
    return x->ready ? answer (s, x) : MHD_YES;
}

static void completed_cb (void *cls, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode code)
{
    struct exchange *x = *state;

    if (!x)
        return;
    LIST_REMOVE (x, link);
    turn_to (cls, x, GUEST_ASKS);
    exchange_destroy (x);
    *state = NULL;
}

static void connection_cb (void *cls, struct MHD_Connection *c, void **state, enum MHD_ConnectionNotificationCode code)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info (c, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct server *s = cls;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        struct guest *guest = *state = info ? malloc (sizeof (*guest)) : NULL;

        if (guest)
            conn_limits_add (&s->guests, guest, info->connect_fd, s->now_ms);
        return;
    }
    if (*state)
        conn_limits_remove (&s->guests, *state);
    free (*state);
    *state = NULL;
}

/* Shut down late connections. libmicrohttpd notices this and closes them. */
static void late_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct server *s = arg;
    struct guest *guest;

    while ((guest = conn_limits_late (&s->guests, s->now_ms)))
        (void)shutdown (guest->fd, SHUT_RDWR);
}

/* --- the reactor --------------------------------------------------------- */

/* Run libmicrohttpd. It returns in how many ms it must run again at the latest; 0: immediately. */
static void prepare_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct server *s = arg;
    MHD_UNSIGNED_LONG_LONG ms;

    s->now_ms = clock_ms (CLOCK_MONOTONIC);
    MHD_run (s->daemon);
    idt_watcher_stop (s->timer);
    idt_watcher_stop (s->again);
    if (MHD_get_timeout (s->daemon, &ms) != MHD_YES)
        return;
    if (ms == 0)
        idt_watcher_start (s->again);
    else {
        idt_timer_watcher_reset (s->timer, (double)ms, 0.);
        idt_watcher_start (s->timer);
    }
}

/* This callback only wakes the reactor: prepare_cb () does the work before the reactor sleeps again. */
static void awake_cb (idt_watcher_t *w, int revents, void *arg)
{
}

static int watch (struct server *s)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info (s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    idt_reactor_t *r = s->reactor;

    if (!info)
        return errset (ENOTSUP);
    s->socket = idt_fd_watcher_create (r, info->epoll_fd, IDT_POLLIN, awake_cb, s);
    s->prepare = idt_prepare_watcher_create (r, prepare_cb, s);
    s->timer = idt_timer_watcher_create (r, 0., 0., awake_cb, s);
    s->again = idt_idle_watcher_create (r, awake_cb, s);
    s->late = idt_timer_watcher_create (r, LATE_MS, LATE_MS, late_cb, s);
    if (!s->socket || !s->prepare || !s->timer || !s->again || !s->late)
        return -1;
    idt_watcher_start (s->late);
    idt_watcher_start (s->socket);
    idt_watcher_start (s->prepare);
    return 0;
}

/* --- life --------------------------------------------------------- */

/* The library's own log stays off, because clients could fill it. */
static struct MHD_Daemon *start (struct server *s)
{
    const struct tls *tls = &s->conf.door.tls;
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (tls->certificate ? MHD_USE_TLS : 0);
    const struct MHD_OptionItem secure[] = {
        { MHD_OPTION_HTTPS_MEM_CERT, 0, tls->certificate },
        { MHD_OPTION_HTTPS_MEM_KEY, 0, tls->key },
        { MHD_OPTION_HTTPS_PRIORITIES, 0, TLS_PRIORITIES },
        { tls->authorities ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0, tls->authorities },
        { MHD_OPTION_END, 0, NULL },
    };
    const struct MHD_OptionItem strict[] = { { (enum MHD_OPTION)CLIENT_DISCIPLINE, 1, NULL },
                                             { MHD_OPTION_END, 0, NULL } };

    return MHD_start_daemon (flags, 0, NULL, NULL, request_cb, s, MHD_OPTION_LISTEN_SOCKET, s->conf.fd,
                             MHD_OPTION_CONNECTION_LIMIT, (unsigned)s->conf.max_connections,
                             MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)CONNECTION_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                             (size_t)MEMORY, MHD_OPTION_NOTIFY_COMPLETED, completed_cb, s, MHD_OPTION_NOTIFY_CONNECTION,
                             connection_cb, s, MHD_OPTION_UNESCAPE_CALLBACK, unescape_cb, NULL,
                             MHD_OPTION_URI_LOG_CALLBACK, target_cb, s, MHD_OPTION_ARRAY,
                             s->strict ? strict : strict + 1, MHD_OPTION_ARRAY, tls->certificate ? secure : secure + 4,
                             MHD_OPTION_END);
}

struct server *server_create (idt_reactor_t *reactor, const struct server_conf *conf, server_run_f *run, void *arg,
                              idt_error_t *errp)
{
    struct server *s = calloc (1, sizeof (*s));

    if (!s) {
        errprintf (errp, "out of memory");
        return NULL;
    }
    *s = (struct server){ .conf = *conf, .reactor = reactor, .run = run, .arg = arg, .room.max = conf->max_answers };
    s->strict = framing_parser_is_strict (MHD_get_version ());
    LIST_INIT (&s->exchanges);
    conn_limits_init (&s->guests);
    errno = 0; /* libmicrohttpd may fail without setting errno */
    if ((s->daemon = start (s)) && watch (s) == 0)
        return s;
    errsetf (errp, errno ? errno : EIO, "cannot serve: %s", errno ? strerror (errno) : "libmicrohttpd gives no reason");
    server_destroy (s);
    return NULL;
}

static void answer_all (struct server *s)
{
    struct exchange *x;

    s->ends = true;
    LIST_FOREACH (x, &s->exchanges, link) {
        x->over = true;
        if (x->read)
            exchange_resume (x);
        else if (x->suspended)
            exchange_fail (x, 503, ENDS);
    }
    for (int i = 0; s->daemon && i < LAST_RUNS && !LIST_EMPTY (&s->exchanges); i++)
        MHD_run (s->daemon);
}

/* First answer the waiting requests, then the pipelined requests behind them, because no request may be suspended when
 * the daemon stops.
 */
void server_destroy (struct server *s)
{
    if (!s)
        return;
    answer_all (s);
    idt_watcher_destroy (s->socket);
    idt_watcher_destroy (s->prepare);
    idt_watcher_destroy (s->timer);
    idt_watcher_destroy (s->again);
    idt_watcher_destroy (s->late);
    if (s->daemon)
        MHD_stop_daemon (s->daemon);
    free (s);
}
