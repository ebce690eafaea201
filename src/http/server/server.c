/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* server.c - HTTP on one thread
 *
 * libmicrohttpd is run before the reactor sleeps, never from within a callback of the broker's: those resume requests,
 * and the next run answers them.
 */
#include "config.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "http/server/server.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define LATE_MS 5000.
#define LAST_RUNS 64  /* for those that take the last answer at once */
#define MEMORY 16384  /* bytes of a connection, for its headers and what it is sent */
#define MAX_BODY 4096 /* bytes of a request's */
#define ENDS "this server ends"
#define CONNECTION_S 30 /* a connection that says nothing, or takes nothing, ends */

struct server {
    struct server_conf conf;
    idt_reactor_t *reactor;
    server_run_f *run;
    void *arg;
    struct MHD_Daemon *daemon;
    idt_watcher_t *socket, *prepare, *timer, *again, *late;
    struct guests guests;
    uint64_t now_ms; /* of this turn of the reactor */
    struct room room;
    bool ends; /* nobody answers any more */
    LIST_HEAD (, exchange) exchanges;
};

/* --- requests --------------------------------------------------------- */

static void turn_to (struct server *s, struct exchange *x, enum guest_turn turn)
{
    if (x->guest)
        guests_turn (&s->guests, x->guest, turn, s->now_ms);
}

/* MHD_NO ends the connection. */
static enum MHD_Result answer (struct server *s, struct exchange *x)
{
    turn_to (s, x, x->read ? GUEST_WAITS : GUEST_TAKES);
    return exchange_answer (x) ? MHD_YES : MHD_NO;
}

/* A client that takes us for a proxy says the whole address (RFC 9112, 3.2.2). */
static const char *path_of (const char *url)
{
    const char *host = *url == '/' ? NULL : strstr (url, "://");
    const char *path = host ? strchr (host + 3, '/') : url;

    return path ? path : "/";
}

static struct exchange *exchange_create (struct server *s, struct MHD_Connection *c, const char *url,
                                         const char *method)
{
    struct exchange *x = calloc (1, sizeof (*x));

    if (!x)
        return NULL;
    x->room = &s->room;
    x->connection = c;
    x->url = path_of (url);
    x->method = method;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info (c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    x->guest = info ? info->socket_context : NULL;
    LIST_INSERT_HEAD (&s->exchanges, x, link);
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
        exchange_suspend (x);
}

struct said {
    int ends, hosts; /* headers that say where a request ends, and for whom it is */
};

static enum MHD_Result count_said (void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct said *said = cls;

    said->ends += strcasecmp (name, "Content-Length") == 0 || strcasecmp (name, "Transfer-Encoding") == 0;
    said->hosts += strcasecmp (name, "Host") == 0;
    return MHD_YES;
}

/* Else a proxy in front might see another end, or another name, and what one client sends as a request of another. */
static bool is_plain (struct exchange *x)
{
    struct said said = { 0 };

    MHD_get_connection_values (x->connection, MHD_HEADER_KIND, count_said, &said);
    if (said.ends <= 1 && said.hosts <= 1)
        return true;
    x->last = true;
    exchange_fail (x, 400, "a request has one Content-Length or Transfer-Encoding, not %d, and one Host, not %d",
                   said.ends, said.hosts);
    return false;
}

/* What is longer and does not say so ends the connection. */
static bool is_small (struct exchange *x)
{
    const char *length = exchange_header (x, "Content-Length");

    if (!length || strtoull (length, NULL, 10) <= MAX_BODY)
        return true;
    exchange_fail (x, 413,
                   "a request has no body here, and none of more than %d bytes is read: parameters belong into the URL",
                   MAX_BODY);
    return false;
}

/* A text with a NUL would end there: it stays as it was sent, which is no name and no value of anything. */
static size_t unescape_cb (void *cls, struct MHD_Connection *c, char *text)
{
    return strstr (text, "%00") ? strlen (text) : MHD_http_unescape (text);
}

/* Called when the headers came, with each part of the body, at its end, and once more when it was resumed. */
static enum MHD_Result request_cb (void *cls, struct MHD_Connection *c, const char *url, const char *method,
                                   const char *version, const char *data, size_t *size, void **state)
{
    struct server *s = cls;
    struct exchange *x = *state;

    if (!x && !(x = *state = exchange_create (s, c, url, method)))
        return MHD_NO;
    if (!x->begun) {
        x->begun = true;
        return is_plain (x) && is_small (x) ? MHD_YES : answer (s, x);
    }
    if (*size > 0) { /* to be refused once it is there */
        x->body += *size;
        *size = 0;
        return x->body <= MAX_BODY ? MHD_YES : MHD_NO;
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

/* Its own log is not kept: whoever connects could fill it. */
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

    return MHD_start_daemon (flags, 0, NULL, NULL, request_cb, s, MHD_OPTION_LISTEN_SOCKET, s->conf.fd,
                             MHD_OPTION_CONNECTION_LIMIT, (unsigned)s->conf.max_connections,
                             MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)CONNECTION_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                             (size_t)MEMORY, MHD_OPTION_NOTIFY_COMPLETED, completed_cb, s, MHD_OPTION_NOTIFY_CONNECTION,
                             connection_cb, s, MHD_OPTION_UNESCAPE_CALLBACK, unescape_cb, NULL, MHD_OPTION_ARRAY,
                             tls->certificate ? secure : secure + 4, MHD_OPTION_END);
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
    LIST_INIT (&s->exchanges);
    guests_init (&s->guests);
    if ((s->daemon = start (s)) && watch (s) == 0)
        return s;
    errprintf (errp, "cannot serve: %s", strerror (errno));
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

/* Whoever waits is answered first, and who has sent more requests behind that: no request may be suspended when the
 * daemon stops.
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
