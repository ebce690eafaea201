/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* server.c - HTTP on one thread: who is let in, whose request it is, and the answer
 *
 * libmicrohttpd is run before the reactor sleeps, never from within a callback of the broker's: those resume requests,
 * and the next run answers them.
 */
#include "config.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/live.h"
#include "http/resource.h"
#include "http/server.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define POLICY "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
#define LATE_MS 5000.
#define LAST_RUNS 64 /* for those that take the last answer at once */
#define MEMORY 16384 /* bytes of a connection, for its headers and what it is sent */

struct server {
    struct server_conf conf;
    idt_t *h;
    struct MHD_Daemon *daemon;
    idt_watcher_t *socket, *prepare, *timer, *again, *late;
    struct guests guests;
    uint64_t now_ms; /* of this turn of the reactor */
    struct ids *ids;
    struct look *look;
    struct live *live;
    size_t held; /* bytes of all answers that were not taken yet */
    LIST_HEAD (, exchange) exchanges;
};

idt_t *server_handle (struct server *s)
{
    return s->h;
}

/* --- answers --------------------------------------------------------- */

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
    case 503:
        return "Service Unavailable";
    default:
        return "Internal Server Error";
    }
}

static void add_headers (const struct exchange *x, struct MHD_Response *r)
{
    MHD_add_response_header (r, "Content-Type", x->type);
    MHD_add_response_header (r, "Cache-Control", x->resource ? "no-cache" : "no-store");
    MHD_add_response_header (r, "X-Content-Type-Options", "nosniff");
    if (x->resource) {
        MHD_add_response_header (r, "ETag", x->resource->etag);
        MHD_add_response_header (r, "Content-Security-Policy", POLICY);
        MHD_add_response_header (r, "Referrer-Policy", "no-referrer");
    }
    if (x->status == 401)
        MHD_add_response_header (r, "WWW-Authenticate", "Bearer");
    if (x->status == 405)
        MHD_add_response_header (r, "Allow", x->allow);
    if (x->status == 429 || x->status == 503)
        MHD_add_response_header (r, "Retry-After", "1");
}

static struct MHD_Response *create_response (const struct exchange *x)
{
    const struct resource *file = x->status == 200 || x->status == 304 ? x->resource : NULL;

    if (file)
        return MHD_create_response_from_buffer (x->status == 304 ? 0 : file->size, (void *)file->bytes,
                                                MHD_RESPMEM_PERSISTENT);
    return x->text ? MHD_create_response_from_buffer (strlen (x->text), x->text, MHD_RESPMEM_MUST_FREE) : NULL;
}

static void turn_to (struct exchange *x, enum guest_turn turn)
{
    if (x->guest)
        guests_turn (&x->server->guests, x->guest, turn, x->server->now_ms);
}

/* MHD_NO ends the connection. */
static enum MHD_Result answer (struct exchange *x)
{
    struct MHD_Response *r = x->reading ? live_response_new (x) : create_response (x);

    if (!r)
        return MHD_NO;
    x->text = NULL;
    turn_to (x, x->reading ? GUEST_WAITS : GUEST_TAKES);
    add_headers (x, r);
    enum MHD_Result rc = MHD_queue_response (x->connection, x->status, r);
    MHD_destroy_response (r);
    return rc;
}

static void hold (struct exchange *x, char *text)
{
    x->held = text ? strlen (text) : 0;
    x->server->held += x->held;
    x->text = text;
}

static bool has_room (const struct server *s, const char *text)
{
    size_t len = text ? strlen (text) : 0;

    return len <= HTTP_SMALL || s->held + len <= s->conf.max_answers;
}

void exchange_reply (struct exchange *x, unsigned status, const char *type, char *text)
{
    if (!has_room (x->server, text)) {
        size_t len = strlen (text);

        free (text);
        exchange_fail (x, 503, "--max-answers: no room for %zu bytes beside %zu that wait to be taken", len,
                       x->server->held);
        return;
    }
    x->status = status;
    x->type = type;
    hold (x, text);
    x->ready = true;
    if (x->suspended)
        MHD_resume_connection (x->connection);
    x->suspended = false;
}

static void reply_json (struct exchange *x, unsigned status, const char *type, json_t *o)
{
    char *text = o ? json_dumps (o, JSON_COMPACT | JSON_REAL_PRECISION (12)) : NULL;

    json_decref (o);
    exchange_reply (x, status, type, text);
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
    errprintf (&error, "%s", detail); /* as JSON takes it */
    reply_json (x, status, "application/problem+json",
                json_pack ("{s:s s:s s:i s:s}", "type", "about:blank", "title", reason (status), "status", (int)status,
                           "detail", error.text));
}

void exchange_fail_errno (struct exchange *x, int errnum, const char *text)
{
    bool ours = errnum == EPROTO || errnum == EOVERFLOW || errnum == EINVAL;

    exchange_fail (x, ours ? 500 : 503, "%s", errnum == ETIMEDOUT ? "the broker does not answer" : text);
}

void exchange_ask (struct exchange *x, idt_future_t *f, idt_future_f cb)
{
    x->f = f;
    if (!f || idt_future_then (f, HTTP_WAIT_MS, cb, x) < 0)
        exchange_fail_errno (x, errno, strerror (errno));
}

/* --- requests --------------------------------------------------------- */

const char *exchange_parameter (const struct exchange *x, const char *name)
{
    return MHD_lookup_connection_value (x->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *exchange_header (const struct exchange *x, const char *name)
{
    return MHD_lookup_connection_value (x->connection, MHD_HEADER_KIND, name);
}

/* --- whose request it is --------------------------------------------------------- */

static void run_ids_new (struct server *s, struct exchange *x)
{
    ids_new (s->ids, x);
}

static void run_ids_show (struct server *s, struct exchange *x)
{
    ids_show (s->ids, x, strrchr (x->url, '/') + 1);
}

static void run_watermark (struct server *s, struct exchange *x)
{
    look_watermark (s->look, x);
}

static void run_tree (struct server *s, struct exchange *x)
{
    live_tree (s->live, x);
}

static void run_events (struct server *s, struct exchange *x)
{
    live_events (s->live, x);
}

static void run_metrics (struct server *s, struct exchange *x)
{
    look_metrics (s->look, x);
}

static void run_health (struct server *s, struct exchange *x)
{
    look_health (s->look, x);
}

static void run_ready (struct server *s, struct exchange *x)
{
    look_ready (s->look, x);
}

/* All that is served, but for resources; etc/openapi.json tells of it, and t5065 compares both. */
static const struct route {
    const char *method, *path; /* what follows a '{' is any text without a slash */
    bool open;                 /* to all: no token is needed */
    void (*run) (struct server *s, struct exchange *x);
    const char *parameters; /* that it has, and no others; NULL: it reads none */
} routes[] = {
    { "POST", "/v1/ids", false, run_ids_new, "n to" },      { "GET", "/v1/ids/{id}", false, run_ids_show, NULL },
    { "GET", "/v1/watermark", false, run_watermark, NULL }, { "GET", "/v1/tree", false, run_tree, "rank depth" },
    { "GET", "/v1/events", false, run_events, NULL },       { "GET", "/metrics", false, run_metrics, NULL },
    { "GET", "/healthz", true, run_health, NULL },          { "GET", "/readyz", true, run_ready, NULL },
};

static bool is_at (const char *path, const char *url)
{
    size_t len = strcspn (path, "{");

    return path[len] ? strncmp (path, url, len) == 0 && !strchr (url + len, '/') : strcmp (path, url) == 0;
}

static const struct route *find_route (const char *url)
{
    for (size_t i = 0; i < sizeof (routes) / sizeof (routes[0]); i++)
        if (is_at (routes[i].path, url))
            return &routes[i];
    return NULL;
}

/* A slip in a name would be taken for nothing, and be answered as if all were well. */
struct slip {
    const char *known; /* names with a space between */
    uint64_t seen;     /* a bit for where each of them begins */
    const char *name;  /* the first that is unknown, or said twice */
};

static enum MHD_Result look_for_slip (void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct slip *slip = cls;
    size_t len = strlen (name);
    const char *at = slip->known;

    while (at && (strncmp (at, name, len) != 0 || (at[len] && at[len] != ' ')))
        at = (at = strchr (at, ' ')) ? at + 1 : NULL;
    uint64_t bit = at ? UINT64_C (1) << (at - slip->known) : 0;

    if (len > 0 && !strchr (name, ' ') && (bit & ~slip->seen)) {
        slip->seen |= bit;
        return MHD_YES;
    }
    slip->name = name;
    return MHD_NO;
}

static bool has_slip (struct exchange *x, const char *parameters)
{
    struct slip slip = { .known = parameters };

    if (parameters)
        MHD_get_connection_values (x->connection, MHD_GET_ARGUMENT_KIND, look_for_slip, &slip);
    if (slip.name)
        exchange_fail (x, 400, "%.64s: there is no such parameter, or it is said twice; here are: %s", slip.name,
                       parameters);
    return slip.name != NULL;
}

static bool is_method (struct exchange *x, const char *method)
{
    bool head = strcmp (x->method, "HEAD") == 0 && strcmp (method, "GET") == 0;

    if (head || strcmp (x->method, method) == 0)
        return true;
    x->allow = method;
    exchange_fail (x, 405, "%s is for %s", x->url, method);
    return false;
}

static void run_resource (struct exchange *x)
{
    const char *known = exchange_header (x, "If-None-Match");

    x->status = known && strstr (known, x->resource->etag) ? 304 : 200;
    x->type = x->resource->type;
    x->ready = true;
}

static void dispatch (struct exchange *x)
{
    struct server *s = x->server;
    const struct route *route = find_route (x->url);

    x->resource = route ? NULL : resource_find (x->url);
    if (!(route && route->open) && !door_lets_in (x, &s->conf))
        return;
    if (!route && !x->resource)
        exchange_fail (x, 404, "there is nothing at this path");
    else if (!is_method (x, route ? route->method : "GET"))
        return;
    else if (route && has_slip (x, route->parameters))
        return;
    else if (route)
        route->run (s, x);
    else
        run_resource (x);
}

/* --- libmicrohttpd --------------------------------------------------------- */

static struct exchange *exchange_create (struct server *s, struct MHD_Connection *c, const char *url,
                                         const char *method)
{
    struct exchange *x = calloc (1, sizeof (*x));

    if (!x)
        return NULL;
    x->server = s;
    x->connection = c;
    x->url = url;
    x->method = method;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info (c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    x->guest = info ? info->socket_context : NULL;
    LIST_INSERT_HEAD (&s->exchanges, x, link);
    return x;
}

static void run_handler (struct exchange *x)
{
    turn_to (x, GUEST_WAITS);
    dispatch (x);
    if (x->ready)
        return;
    x->suspended = true;
    MHD_suspend_connection (x->connection);
}

/* What is longer and does not say so ends the connection. */
static bool is_small (struct exchange *x)
{
    const char *length = exchange_header (x, "Content-Length");

    if (!length || strtoull (length, NULL, 10) <= HTTP_MAX_BODY)
        return true;
    exchange_fail (x, 413, "a request's body says nothing here: it may have %d bytes", HTTP_MAX_BODY);
    return false;
}

/* Called when the headers came, with each part of the body, at its end, and once more when it was resumed. */
static enum MHD_Result request_cb (void *cls, struct MHD_Connection *c, const char *url, const char *method,
                                   const char *version, const char *data, size_t *size, void **state)
{
    struct exchange *x = *state;

    if (!x && !(x = *state = exchange_create (cls, c, url, method)))
        return MHD_NO;
    if (!x->begun) {
        x->begun = true;
        return is_small (x) ? MHD_YES : answer (x);
    }
    if (*size > 0) { /* it says nothing to us */
        x->body += *size;
        *size = 0;
        return x->body <= HTTP_MAX_BODY ? MHD_YES : MHD_NO;
    }
    if (!x->ready)
        run_handler (x);
    return x->ready ? answer (x) : MHD_YES;
}

static void completed_cb (void *cls, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode code)
{
    struct exchange *x = *state;

    if (!x)
        return;
    LIST_REMOVE (x, link);
    live_leave (x->server->live, x);
    turn_to (x, GUEST_ASKS);
    x->server->held -= x->held;
    idt_future_destroy (x->f);
    free (x->text);
    free (x);
    *state = NULL;
}

static void connection_cb (void *cls, struct MHD_Connection *c, void **state, enum MHD_ConnectionNotificationCode code)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info (c, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct server *s = cls;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        struct guest *guest = *state = info ? malloc (sizeof (*guest)) : NULL;

        if (guest)
            guests_add (&s->guests, guest, info->connect_fd, s->now_ms);
        return;
    }
    if (*state)
        guests_remove (&s->guests, *state);
    free (*state);
    *state = NULL;
}

/* libmicrohttpd sees their end, and closes them. */
static void late_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct server *s = arg;
    struct guest *guest;

    while ((guest = guests_late (&s->guests, s->now_ms)))
        (void)shutdown (guest->fd, SHUT_RDWR);
}

/* --- the reactor --------------------------------------------------------- */

/* It tells in how many ms it has something to do by itself: now, later, or not. */
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

/* What has to be done is done before the reactor sleeps. */
static void awake_cb (idt_watcher_t *w, int revents, void *arg)
{
}

static int watch (struct server *s)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info (s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    idt_reactor_t *r = idt_get_reactor (s->h);

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

/* Its own log is not kept: whoever connects could fill it. */
static struct MHD_Daemon *start (struct server *s)
{
    const struct tls *tls = &s->conf.tls;
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (tls->certificate ? MHD_USE_TLS : 0);
    const struct MHD_OptionItem secure[] = {
        { MHD_OPTION_HTTPS_MEM_CERT, 0, tls->certificate },
        { MHD_OPTION_HTTPS_MEM_KEY, 0, tls->key },
        { MHD_OPTION_HTTPS_PRIORITIES, 0, TLS_PRIORITIES },
        { tls->authorities ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0, tls->authorities },
        { MHD_OPTION_END, 0, NULL },
    };

    return MHD_start_daemon (flags, 0, NULL, NULL, request_cb, s, MHD_OPTION_LISTEN_SOCKET, s->conf.fd,
                             MHD_OPTION_CONNECTION_LIMIT, (unsigned)s->conf.max_connections,
                             MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HTTP_CONNECTION_S,
                             MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY, MHD_OPTION_NOTIFY_COMPLETED,
                             completed_cb, s, MHD_OPTION_NOTIFY_CONNECTION, connection_cb, s, MHD_OPTION_ARRAY,
                             tls->certificate ? secure : secure + 4, MHD_OPTION_END);
}

struct server *server_create (idt_t *h, const struct server_conf *conf, idt_error_t *errp)
{
    struct server *s = calloc (1, sizeof (*s));

    if (!s)
        return NULL;
    s->h = h;
    s->conf = *conf;
    LIST_INIT (&s->exchanges);
    guests_init (&s->guests);
    if (!(s->ids = ids_create (s, conf->rate)) || !(s->look = look_create (s))
        || !(s->live = live_create (s, conf->show_log))) {
        errprintf (errp, "out of memory");
        goto error;
    }
    if (!(s->daemon = start (s)) || watch (s) < 0) {
        errprintf (errp, "cannot serve: %s", strerror (errno));
        goto error;
    }
    return s;
error:
    server_destroy (s);
    return NULL;
}

static void fail_waiting (struct server *s)
{
    struct exchange *x;

    LIST_FOREACH (x, &s->exchanges, link)
        if (x->suspended && !x->live)
            exchange_fail (x, 503, "this server ends");
    if (s->live)
        live_end (s->live);
    for (int i = 0; s->daemon && i < LAST_RUNS && !LIST_EMPTY (&s->exchanges); i++)
        MHD_run (s->daemon);
}

/* Whoever waits is answered first: no request may be suspended when the daemon stops. */
void server_destroy (struct server *s)
{
    if (!s)
        return;
    ids_destroy (s->ids);
    look_destroy (s->look);
    fail_waiting (s);
    idt_watcher_destroy (s->socket);
    idt_watcher_destroy (s->prepare);
    idt_watcher_destroy (s->timer);
    idt_watcher_destroy (s->again);
    idt_watcher_destroy (s->late);
    if (s->daemon)
        MHD_stop_daemon (s->daemon);
    live_destroy (s->live);
    free (s);
}
