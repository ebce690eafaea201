/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* test_server.c - a broker for the tests of libidtree
 *
 * One thread runs one poll loop, and owns all state. The test's thread uses only the uri, and the pipe that ends the
 * loop.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <idtree/fluid.h>
#include <idtree/handle.h>

#include "test/test_server.h"
#include "libfluid/block.h"
#include "libmsg/stream.h"
#include "libutil/base64.h"
#include "libutil/queue/fifo.h"

#define MAX_CONNS 16
#define PROXY_TAG 4711
#define SUBSCRIPTIONS_MAX 8

struct conn {
    int fd; /* -1: the entry is unused */
    struct msg_stream *stream;
    struct fifo held;                        /* requests for test.hold that were not answered yet */
    const idt_msg_t *proxied;                /* the request for test.request that waits for the client's answer */
    char subscribed[SUBSCRIPTIONS_MAX][128]; /* prefixes; "": the entry is unused */
    bool broken;
};

struct test_server {
    char dir[64];
    char uri[128];
    int listen_fd;
    int stop_fd[2];
    unsigned char welcome;
    pthread_t thread;

    struct conn conns[MAX_CONNS];
    uint32_t count;
    uint32_t seq;
    uint64_t last_id;
    char level[16]; /* the attribute log-level */
    char instance[64];
    char log[4096];
    void *fluid_answer; /* payload of the answers to fluid.block; NULL: they are correct */
    size_t fluid_size;
    bool fluid_canned;
    int fluid_refusals, fluid_errnum;

    test_plug_f plug; /* NULL: not set */
    void *plug_arg;
};

/* --- answers -------------------------------------------------------------------------------- */

static void must (bool good, const char *what)
{
    if (!good) {
        printf ("Bail out! test server: %s: %s\n", what, strerror (errno));
        fflush (stdout);
        _exit (1);
    }
}

static void conn_send (struct conn *c, const idt_msg_t *msg)
{
    if (!c->broken)
        must (msg_stream_put (c->stream, msg) == 0, "put");
}

static void respond_raw (struct conn *c, const idt_msg_t *req, int errnum, const void *data, size_t size)
{
    if (idt_msg_has_flag (req, IDT_MSGFLAG_NORESPONSE))
        return;
    idt_msg_t *msg = idt_msg_respond (req, (uint32_t)errnum);
    must (msg && idt_msg_set_payload (msg, data, size) == 0, "respond");
    conn_send (c, msg);
    idt_msg_unref (msg);
}

static void respond (struct conn *c, const idt_msg_t *req, int errnum, const char *s)
{
    respond_raw (c, req, errnum, s, s ? strlen (s) + 1 : 0);
}

static void send_event (struct test_server *s, struct conn *c, const char *topic, const void *data, size_t size)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_EVENT);

    must (msg && idt_msg_set_topic (msg, topic) == 0 && idt_msg_set_payload (msg, data, size) == 0, "event");
    idt_msg_set_seq (msg, ++s->seq);
    conn_send (c, msg);
    idt_msg_unref (msg);
}

static void send_numbered_event (struct test_server *s, struct conn *c, int i)
{
    char topic[32];

    snprintf (topic, sizeof (topic), "test.%d", i);
    send_event (s, c, topic, NULL, 0);
}

/* Remove the newest held request, and return it. */
static const idt_msg_t *pop_newest (struct fifo *q)
{
    if (q->count == 0)
        return NULL;
    q->count--;
    return q->items[(q->head + q->count) & (q->size - 1)];
}

static void release_one (struct conn *c)
{
    const idt_msg_t *held = pop_newest (&c->held);
    const char *payload = held ? idt_msg_string (held) : NULL;

    if (held)
        respond (c, held, 0, payload);
    idt_msg_unref (held);
}

static int get_n (const idt_msg_t *req)
{
    json_t *o;
    int n = -1;

    must (idt_msg_unpack (req, &o, NULL, "{s:i}", "n", &n) == 0, "n");
    json_decref (o);
    return n;
}

/* --- methods -------------------------------------------------------------------------------- */

typedef void (*method_f) (struct test_server *s, struct conn *c, const idt_msg_t *req);

static void attr_get (struct test_server *s, struct conn *c, const idt_msg_t *req)
{
    const char *name;
    char answer[128];
    json_t *o;

    must (idt_msg_unpack (req, &o, NULL, "{s:s}", "name", &name) == 0, "attr.get");
    if (strcmp (name, "rank") == 0)
        respond (c, req, 0, "{\"value\":\"3\",\"flags\":1}");
    else if (strcmp (name, "size") == 0)
        respond (c, req, 0, "{\"value\":\"8\",\"flags\":1}");
    else if (strcmp (name, "instance.uuid") == 0 && *s->instance) {
        snprintf (answer, sizeof (answer), "{\"value\":\"%s\",\"flags\":1}", s->instance);
        respond (c, req, 0, answer);
    }
    else if (strcmp (name, "bad") == 0)
        respond (c, req, 0, "{\"value\":17}");
    else if (strcmp (name, "log-level") == 0) {
        snprintf (answer, sizeof (answer), "{\"value\":\"%s\",\"flags\":0}", s->level);
        respond (c, req, 0, answer);
    }
    else
        respond (c, req, ENOENT, "unknown attribute");
    json_decref (o);
}

static void attr_set (struct test_server *s, struct conn *c, const idt_msg_t *req)
{
    const char *name, *value;
    json_t *o;

    must (idt_msg_unpack (req, &o, NULL, "{s:s s:s}", "name", &name, "value", &value) == 0, "attr.set");
    if (strcmp (name, "log-level") == 0) {
        snprintf (s->level, sizeof (s->level), "%s", value);
        respond (c, req, 0, NULL);
    }
    else if (strcmp (name, "instance.uuid") == 0) {
        test_server_set_instance (s, value);
        respond (c, req, 0, NULL);
    }
    else
        respond (c, req, EINVAL, "attribute may not be updated");
    json_decref (o);
}

static void event_subscribe (struct test_server *s, struct conn *c, const idt_msg_t *req)
{
    const char *topic;
    json_t *o;

    must (idt_msg_unpack (req, &o, NULL, "{s:s}", "topic", &topic) == 0, "event.subscribe");
    bool on = strcmp (idt_msg_topic (req), "event.subscribe") == 0;
    int i = 0;
    while (i < SUBSCRIPTIONS_MAX && strcmp (c->subscribed[i], on ? "" : topic) != 0)
        i++;
    must (i < SUBSCRIPTIONS_MAX, "subscriptions");
    snprintf (c->subscribed[i], sizeof (c->subscribed[i]), "%s", on ? topic : "");
    json_decref (o);
    respond (c, req, 0, NULL);
}

static bool wants (const struct conn *c, const char *topic)
{
    for (int i = 0; i < SUBSCRIPTIONS_MAX; i++) {
        const char *prefix = c->subscribed[i];
        if (*prefix && strncmp (prefix, topic, strlen (prefix)) == 0)
            return true;
    }
    return false;
}

static void publish (struct test_server *s, const char *topic, const void *data, size_t size)
{
    for (int i = 0; i < MAX_CONNS; i++) {
        struct conn *to = &s->conns[i];
        if (to->fd >= 0 && wants (to, topic))
            send_event (s, to, topic, data, size);
    }
}

static void event_publish (struct test_server *s, struct conn *c, const idt_msg_t *req)
{
    const char *topic, *text = NULL;
    char payload[1024], answer[32];
    ssize_t size = 0;
    int flags;
    json_t *o;

    must (idt_msg_unpack (req, &o, NULL, "{s:s s:i s?s}", "topic", &topic, "flags", &flags, "payload", &text) == 0,
          "event.publish");
    if (text)
        must ((size = base64_decode (text, strlen (text), payload, sizeof (payload))) >= 0, "base64");
    publish (s, topic, text ? payload : NULL, (size_t)size);
    snprintf (answer, sizeof (answer), "{\"seq\":%u}", (unsigned)s->seq);
    respond (c, req, 0, answer);
    json_decref (o);
}

/* Answer with runs of ids as a generator makes them. The first run is short, so that there are several. */
static void fluid_block (struct test_server *s, struct conn *c, const idt_msg_t *req)
{
    const uint8_t *p;
    size_t size;
    uint32_t count;
    fluid_t after;
    uint8_t *answer = NULL;
    size_t used = 0;

    if (s->fluid_refusals > 0) {
        s->fluid_refusals--;
        if (s->fluid_errnum != 0)
            respond (c, req, s->fluid_errnum, NULL);
        return;
    }
    if (s->fluid_canned) {
        respond_raw (c, req, 0, s->fluid_answer, s->fluid_size);
        return;
    }
    must (idt_msg_payload (req, (const void **)&p, &size) == 0 && block_get_request (p, size, &count, &after),
          "fluid.block");
    if (after > s->last_id) /* the client names an id of another server */
        s->last_id = after;
    for (uint32_t left = count; left > 0;) {
        uint64_t first = s->last_id + 1;
        uint32_t room = FLUID_PER_MS - (first & FLUID_SEQUENCE_MAX);
        uint32_t n = left < room ? left : room;
        must ((answer = realloc (answer, used + BLOCK_RUN_SIZE)) != NULL, "realloc");
        block_put_run (answer + used, (struct id_run){ first, n });
        used += BLOCK_RUN_SIZE;
        s->last_id = first + n - 1;
        left -= n;
    }
    respond_raw (c, req, 0, answer, used);
    free (answer);
}

static void log_append (struct test_server *s, struct conn *c, const idt_msg_t *req)
{
    const void *data;
    size_t size;

    must (idt_msg_payload (req, &data, &size) == 0 && size < sizeof (s->log), "log.append");
    memcpy (s->log, data, size);
    s->log[size] = '\0';
}

static void test_log (struct test_server *s, struct conn *c, const idt_msg_t *req)
{
    respond (c, req, 0, s->log);
}

static void test_echo (struct test_server *s, struct conn *c, const idt_msg_t *req)
{
    const void *data = NULL;
    size_t size = 0;

    (void)idt_msg_payload (req, &data, &size);
    respond_raw (c, req, 0, data, size);
}

static void test_error (struct test_server *s, struct conn *c, const idt_msg_t *req)
{
    const char *text = NULL;
    int errnum;
    json_t *o;

    must (idt_msg_unpack (req, &o, NULL, "{s:i s?s}", "errnum", &errnum, "text", &text) == 0, "error");
    respond (c, req, errnum, text);
    json_decref (o);
}

static void test_stream (struct test_server *s, struct conn *c, const idt_msg_t *req)
{
    char answer[32];
    int n = get_n (req);

    for (int i = 0; i < n; i++) {
        snprintf (answer, sizeof (answer), "{\"i\":%d}", i);
        respond (c, req, 0, answer);
    }
    respond (c, req, ENODATA, NULL);
}

static void test_never (struct test_server *s, struct conn *c, const idt_msg_t *req)
{
}

static void test_hold (struct test_server *s, struct conn *c, const idt_msg_t *req)
{
    must (fifo_push (&c->held, idt_msg_ref (req)) == 0, "hold");
}

static void test_release (struct test_server *s, struct conn *c, const idt_msg_t *req)
{
    while (c->held.count > 0)
        release_one (c);
    respond (c, req, 0, NULL);
}

static void test_batch (struct test_server *s, struct conn *c, const idt_msg_t *req)
{
    for (int i = 0, n = get_n (req); i < n; i++) {
        send_numbered_event (s, c, i);
        release_one (c);
    }
    respond (c, req, 0, NULL);
}

static void test_event (struct test_server *s, struct conn *c, const idt_msg_t *req)
{
    for (int i = 0, n = get_n (req); i < n; i++)
        send_numbered_event (s, c, i);
    respond (c, req, 0, NULL);
}

static void test_request (struct test_server *s, struct conn *c, const idt_msg_t *req)
{
    const char *topic, *payload = NULL;
    int rolemask, flags = 0, type = IDT_MSGTYPE_REQUEST;
    json_t *o;

    must (idt_msg_unpack (req, &o, NULL, "{s:s s?s s:i s?i s?i}", "topic", &topic, "payload", &payload, "rolemask",
                          &rolemask, "flags", &flags, "type", &type)
              == 0,
          "test.request");
    idt_msg_t *msg = idt_msg_create ((enum idt_msgtype)type);
    must (msg && idt_msg_set_topic (msg, topic) == 0 && idt_msg_set_string (msg, payload) == 0, "test.request");
    json_decref (o);
    idt_msg_set_cred (msg, (struct idt_cred){ .userid = 1000, .rolemask = (uint32_t)rolemask });
    bool wait = type == IDT_MSGTYPE_REQUEST && !(flags & IDT_MSGFLAG_NORESPONSE);
    if (type == IDT_MSGTYPE_REQUEST) {
        idt_msg_set_matchtag (msg, PROXY_TAG);
        idt_msg_set_flag (msg, flags);
        idt_msg_route_push (msg, "98f3bf69-0000-4000-8000-000000000000");
        idt_msg_route_push (msg, "ae4a1b51-0000-4000-8000-000000000000");
    }
    conn_send (c, msg);
    idt_msg_unref (msg);
    if (wait)
        c->proxied = idt_msg_ref (req);
    else
        respond (c, req, 0, NULL);
}

static void test_answer (struct test_server *s, struct conn *c, const idt_msg_t *req)
{
    size_t size = (size_t)get_n (req);
    char *data = calloc (1, size + 1);

    must (data != NULL, "calloc");
    respond_raw (c, req, 0, data, size);
    free (data);
}

static void test_fluid (struct test_server *s, struct conn *c, const idt_msg_t *req)
{
    const void *data;
    size_t size;

    s->fluid_canned = false;
    free (s->fluid_answer);
    s->fluid_answer = NULL;
    if (idt_msg_payload (req, &data, &size) == 0) {
        must ((s->fluid_answer = malloc (size + 1)) != NULL, "malloc");
        memcpy (s->fluid_answer, data, size);
        s->fluid_size = size;
        s->fluid_canned = true;
    }
    respond (c, req, 0, NULL);
}

static void test_refuse (struct test_server *s, struct conn *c, const idt_msg_t *req)
{
    json_t *o;

    must (idt_msg_unpack (req, &o, NULL, "{s:i s:i}", "n", &s->fluid_refusals, "errnum", &s->fluid_errnum) == 0,
          "refuse");
    json_decref (o);
    respond (c, req, 0, NULL);
}

static void test_count (struct test_server *s, struct conn *c, const idt_msg_t *req)
{
    char answer[32];

    snprintf (answer, sizeof (answer), "{\"count\":%u}", (unsigned)s->count);
    respond (c, req, 0, answer);
}

static void test_close (struct test_server *s, struct conn *c, const idt_msg_t *req)
{
    c->broken = true;
}

static void test_garbage (struct test_server *s, struct conn *c, const idt_msg_t *req)
{
    (void)msg_stream_flush (c->stream);
    must (write (c->fd, "this is no message", 18) == 18, "write");
    c->broken = true;
}

static const struct {
    const char *topic;
    method_f method;
} methods[] = {
    { "attr.get", attr_get },
    { "attr.set", attr_set },
    { "event.subscribe", event_subscribe },
    { "event.unsubscribe", event_subscribe },
    { "event.publish", event_publish },
    { "service.add", test_release },
    { "fluid.block", fluid_block },
    { "log.append", log_append },
    { "test.log", test_log },
    { "test.echo", test_echo },
    { "test.error", test_error },
    { "test.stream", test_stream },
    { "test.never", test_never },
    { "test.hold", test_hold },
    { "test.release", test_release },
    { "test.batch", test_batch },
    { "test.event", test_event },
    { "test.request", test_request },
    { "test.answer", test_answer },
    { "test.fluid", test_fluid },
    { "test.refuse", test_refuse },
    { "test.count", test_count },
    { "test.close", test_close },
    { "test.garbage", test_garbage },
};

/* --- connections ---------------------------------------------------------------------------- */

/* Let the function of the test answer. Returns false if it does not handle the request. */
static bool plugged (struct test_server *s, struct conn *c, const idt_msg_t *msg)
{
    struct test_reply reply = { 0 };

    if (!s->plug || !s->plug (s->plug_arg, msg, &reply))
        return false;
    if (reply.event_topic)
        publish (s, reply.event_topic, reply.event, strlen (reply.event) + 1);
    if (reply.close)
        c->broken = true;
    else if (!reply.silent)
        respond (c, msg, reply.errnum, reply.text);
    free (reply.event_topic);
    free (reply.event);
    free (reply.text);
    return true;
}

static void handle_request (struct test_server *s, struct conn *c, const idt_msg_t *msg)
{
    s->count++;
    for (size_t i = 0; i < sizeof (methods) / sizeof (methods[0]); i++) {
        if (strcmp (methods[i].topic, idt_msg_topic (msg)) == 0) {
            methods[i].method (s, c, msg);
            return;
        }
    }
    if (!plugged (s, c, msg))
        respond (c, msg, ENOSYS, NULL);
}

static void handle_response (struct conn *c, const idt_msg_t *msg)
{
    const void *data = NULL;
    size_t size = 0;

    must (c->proxied && idt_msg_matchtag (msg) == PROXY_TAG && idt_msg_route_count (msg) == 2,
          "unexpected response of the client");
    (void)idt_msg_payload (msg, &data, &size);
    respond_raw (c, c->proxied, (int)idt_msg_errnum (msg), data, size);
    idt_msg_unref (c->proxied);
    c->proxied = NULL;
}

static void conn_close (struct conn *c)
{
    const idt_msg_t *msg;

    while ((msg = pop_newest (&c->held)))
        idt_msg_unref (msg);
    fifo_fini (&c->held);
    idt_msg_unref (c->proxied);
    msg_stream_destroy (c->stream);
    close (c->fd);
    *c = (struct conn){ .fd = -1 };
}

static void conn_read (struct test_server *s, struct conn *c)
{
    bool eof = false;
    idt_msg_t *msg;

    if (msg_stream_fill (c->stream, &eof) < 0 && errno != EAGAIN)
        c->broken = true;
    while (!c->broken && (msg = msg_stream_next (c->stream, NULL))) {
        if (idt_msg_type (msg) == IDT_MSGTYPE_REQUEST)
            handle_request (s, c, msg);
        else if (idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE)
            handle_response (c, msg);
        idt_msg_unref (msg);
    }
    if (eof)
        c->broken = true;
}

static void conn_accept (struct test_server *s)
{
    int fd = accept4 (s->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct conn *c = NULL;

    /* If the client has closed the connection already, a later read detects this. */
    must (fd >= 0 && (send (fd, &s->welcome, 1, MSG_NOSIGNAL) == 1 || errno == EPIPE), "accept");
    for (int i = 0; i < MAX_CONNS && !c; i++)
        c = s->conns[i].fd < 0 ? &s->conns[i] : NULL;
    must (c != NULL, "too many connections");
    c->fd = fd;
    c->broken = s->welcome != 0;

    must ((c->stream = msg_stream_create (fd, MSG_STREAM_MAX_MESSAGE, 4 * MSG_STREAM_MAX_QUEUE)) != NULL, "stream");
}

/* Write what is queued, and close the connection if it is broken. */
static void conn_settle (struct conn *c)
{
    if (c->fd < 0)
        return;
    if (msg_stream_flush (c->stream) < 0 || c->broken)
        conn_close (c);
}

static void *server_main (void *arg)
{
    struct test_server *s = arg;

    for (;;) {
        struct pollfd pfds[MAX_CONNS + 2] = {
            { .fd = s->stop_fd[0], .events = POLLIN },
            { .fd = s->listen_fd, .events = POLLIN },
        };
        for (int i = 0; i < MAX_CONNS; i++) {
            struct conn *c = &s->conns[i];
            pfds[i + 2].fd = c->fd;
            pfds[i + 2].events = POLLIN;
            if (c->fd >= 0 && msg_stream_queued (c->stream) > 0)
                pfds[i + 2].events |= POLLOUT;
        }
        must (poll (pfds, MAX_CONNS + 2, -1) > 0 || errno == EINTR, "poll");
        if (pfds[0].revents)
            break;
        if (pfds[1].revents)
            conn_accept (s);
        for (int i = 0; i < MAX_CONNS; i++) {
            if (s->conns[i].fd >= 0 && (pfds[i + 2].revents & ~POLLOUT))
                conn_read (s, &s->conns[i]);
            conn_settle (&s->conns[i]);
        }
    }
    for (int i = 0; i < MAX_CONNS; i++) {
        if (s->conns[i].fd >= 0)
            conn_close (&s->conns[i]);
    }
    return NULL;
}

/* --- public functions ----------------------------------------------------------------------- */

const char *test_server_uri (const struct test_server *s)
{
    return s->uri;
}

idt_t *test_server_open (const struct test_server *s)
{
    idt_t *h = idt_open (s->uri, NULL);

    must (h != NULL, "idt_open");
    return h;
}

void test_server_plug (struct test_server *s, test_plug_f plug, void *arg)
{
    s->plug = plug;
    s->plug_arg = arg;
}

void test_server_set_instance (struct test_server *s, const char *uuid)
{
    snprintf (s->instance, sizeof (s->instance), "%s", uuid ? uuid : "");
}

void test_server_stop (struct test_server *s)
{
    must (write (s->stop_fd[1], "", 1) == 1, "stop");
    pthread_join (s->thread, NULL);
    close (s->stop_fd[0]);
    close (s->stop_fd[1]);
    close (s->listen_fd);
    s->listen_fd = -1;
}

void test_server_start (struct test_server *s)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };

    snprintf (addr.sun_path, sizeof (addr.sun_path), "%s/local", s->dir);
    unlink (addr.sun_path);
    must ((s->listen_fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0
              && bind (s->listen_fd, (struct sockaddr *)&addr, sizeof (addr)) == 0 && listen (s->listen_fd, 16) == 0
              && pipe (s->stop_fd) == 0 && pthread_create (&s->thread, NULL, server_main, s) == 0,
          "start");
}

void test_server_destroy (struct test_server *s)
{
    if (s->listen_fd >= 0)
        test_server_stop (s);
    unlink (s->uri + strlen ("local://"));
    rmdir (s->dir);
    free (s->fluid_answer);
    free (s);
}

struct test_server *test_server_create (unsigned char welcome)
{
    struct test_server *s = calloc (1, sizeof (*s));

    must (s != NULL, "calloc");
    strcpy (s->dir, "/tmp/idtree-test-XXXXXX");
    must (mkdtemp (s->dir) != NULL, "mkdtemp");
    snprintf (s->uri, sizeof (s->uri), "local://%s/local", s->dir);
    for (int i = 0; i < MAX_CONNS; i++)
        s->conns[i].fd = -1;
    s->welcome = welcome;
    s->last_id = (UINT64_C (12345) << 24) + 1000; /* the first block of ids then crosses a millisecond */
    strcpy (s->level, "7");
    test_server_start (s);
    return s;
}
