/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* trace.c - sends the messages that pass this broker to clients that trace them
 *
 * The router shows messages only while there is a tracer. Lines are responses of the broker's own services. Like all of
 * these they wait until the next turn, because the router must not be called while it handles a message. Lines
 * themselves are not traced.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <jansson.h>

#include "broker/overlay/control.h"
#include "broker/trace.h"
#include "libidtree/json.h"
#include "libmodule/module.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define TOPIC_SIZE 64 /* of a control message */

struct tracer {
    LIST_ENTRY (tracer) link;
    const idt_msg_t *request;
    json_t *options; /* payload of the request, which owns the strings */
    const char *glob;
    json_t *names; /* NULL: all */
    unsigned peers;
    int typemask;
    int64_t nodeid;
    int64_t id;
    bool full;
    bool of_modules; /* as a module sees it: "rx" means that a module received the message */
    bool paced;      /* the client reports what it has read */
    uint64_t window;
    uint64_t unread; /* bytes of lines that are not known to be read */
    uint64_t lost;   /* number of lost lines that are not reported yet */
};

struct trace {
    idt_t *h;
    struct router *router;
    LIST_HEAD (, tracer) tracers;
    unsigned count;
};

/* A message of which tracers may get a line. */
struct seen {
    enum router_way way;
    const struct peer *peer;
    const idt_msg_t *msg;
    const char *topic;
    char control[TOPIC_SIZE];
};

static const char *const peer_names[] = {
    [PEER_CLIENT] = "client", [PEER_MODULE] = "module", [PEER_BUILTIN] = "broker",
    [PEER_ABSENT] = "absent", [PEER_CHILD] = "child",   [PEER_PARENT] = "parent",
};

#define BIT(kind) (1u << (kind))
#define OF_LINKS (BIT (PEER_CHILD) | BIT (PEER_PARENT))
#define OF_MODULES (BIT (PEER_MODULE) | BIT (PEER_BUILTIN))

/* --- filters ------------------------------------------------------------------------------------------ */

static bool is_named (const struct tracer *t, const struct peer *p)
{
    size_t i;
    json_t *name;

    if (!t->names || !p->name)
        return !t->names;
    json_array_foreach (t->names, i, name)
        if (strcmp (json_string_value (name), p->name) == 0)
            return true;
    return false;
}

static bool is_link (const struct peer *p)
{
    return BIT (p->kind) & OF_LINKS;
}

static bool matches (const struct tracer *t, const struct seen *s)
{
    return (t->peers & BIT (s->peer->kind)) && (t->typemask & (int)idt_msg_type (s->msg)) && is_named (t, s->peer)
           && (t->nodeid < 0 || (is_link (s->peer) && s->peer->rank == t->nodeid))
           && (!t->glob || fnmatch (t->glob, s->topic, 0) == 0);
}

/* --- lines -------------------------------------------------------------------------------------------- */

static const char *name_control (const idt_msg_t *msg, char buf[TOPIC_SIZE])
{
    static const char *const names[] = { "control", "heartbeat", "disconnect", "stop",  "goodbye",
                                         "keys",    "credit",    "part",       "joined" };
    uint32_t type = idt_msg_control_type (msg);

    snprintf (buf, TOPIC_SIZE, "%s %u", names[type < sizeof (names) / sizeof (names[0]) ? type : 0],
              idt_msg_control_status (msg));
    return buf;
}

static void add_data (json_t *o, const uint8_t *data, size_t size)
{
    char hex[2 * TRACE_DATA_MAX + 1] = "";

    for (size_t i = 0; i < size && i < TRACE_DATA_MAX; i++)
        snprintf (hex + 2 * i, 3, "%02x", data[i]);
    json_object_set_new (o, "data", json_string (hex));
}

static void add_payload (json_t *o, const void *data, size_t size)
{
    const char *text = data;
    json_t *payload = NULL;

    if (size > 0 && size <= TRACE_PAYLOAD_MAX)
        payload = json_loadb (text, text[size - 1] ? size : size - 1, JSON_DECODE_ANY, NULL);
    if (payload)
        json_object_set_new (o, "payload", payload);
    else
        add_data (o, data, size);
}

static json_t *describe (const struct tracer *t, const struct seen *s)
{
    bool response = idt_msg_type (s->msg) == IDT_MSGTYPE_RESPONSE;
    bool from = (s->way == ROUTER_FROM) != t->of_modules;
    uint32_t errnum = response ? idt_msg_errnum (s->msg) : 0;
    const char *text = errnum != 0 && t->full ? idt_msg_string (s->msg) : NULL;
    const void *data = NULL;
    size_t size = 0;

    idt_msg_payload (s->msg, &data, &size);
    json_t *o = json_pack ("{s:f s:s s:s s:s s:I s:i s:s s:I s:I s:s}", "timestamp", clock_s (CLOCK_REALTIME), "prefix",
                           from ? "rx" : "tx", "peer", peer_names[s->peer->kind], "name",
                           s->peer->name ? s->peer->name : s->peer->uuid, "rank",
                           is_link (s->peer) ? (json_int_t)s->peer->rank : -1, "type", (int)idt_msg_type (s->msg),
                           "topic", s->topic, "payload_size", (json_int_t)size, "errnum", (json_int_t)errnum, "errstr",
                           text ? text : "");
    if (o && t->full && errnum == 0 && size > 0)
        add_payload (o, data, size);
    return o;
}

/* Send a line (stolen; NULL: there was no memory for it). Returns whether it was sent, because it fits into the window.
 */
static bool tell_new (struct trace *tr, struct tracer *t, json_t *line)
{
    char *text = line ? json_dumps (line, JSON_COMPACT) : NULL;
    size_t size = text ? strlen (text) + 1 : 0;
    bool fits = text && t->unread + size <= t->window && idt_respond (tr->h, t->request, text) == 0;

    if (fits)
        t->unread += size;
    assert (t->unread <= t->window);
    json_decref (line);
    free (text);
    return fits;
}

/* Report lost lines, if any. Returns whether further lines may be sent. */
static bool tell_lost (struct trace *tr, struct tracer *t)
{
    if (t->lost > 0 && t->paced
        && tell_new (tr, t,
                     json_pack ("{s:f s:I}", "timestamp", clock_s (CLOCK_REALTIME), "lost", (json_int_t)t->lost)))
        t->lost = 0;
    return t->lost == 0 || !t->paced;
}

static bool is_own (const char *topic)
{
    return strcmp (topic, "broker.trace") == 0 || strcmp (topic, "broker.trace-more") == 0
           || strcmp (topic, "module.trace") == 0 || strcmp (topic, "overlay.trace") == 0;
}

static void show (void *arg, enum router_way way, const struct peer *p, const idt_msg_t *msg)
{
    struct trace *tr = arg;
    struct seen s = { .way = way, .peer = p, .msg = msg };
    struct tracer *t;

    s.topic = idt_msg_type (msg) == IDT_MSGTYPE_CONTROL ? name_control (msg, s.control) : idt_msg_topic (msg);
    if (!s.topic || is_own (s.topic))
        return;
    LIST_FOREACH (t, &tr->tracers, link)
        if (matches (t, &s) && (t->unread >= t->window || !tell_lost (tr, t) || !tell_new (tr, t, describe (t, &s))))
            t->lost++;
}

void trace_turn (struct trace *tr)
{
    struct tracer *t;

    LIST_FOREACH (t, &tr->tracers, link)
        if (!t->paced)
            t->unread = 0;
}

/* --- tracers ------------------------------------------------------------------------------------------ */

static void tracer_destroy (struct trace *tr, struct tracer *t)
{
    assert (tr->count > 0);
    LIST_REMOVE (t, link);
    if (--tr->count == 0)
        router_watch (tr->router, NULL, NULL);
    json_decref (t->options);
    idt_msg_unref (t->request);
    free (t);
}

/* Returns 0, or -1 if a name is unknown. */
static int read_peers (json_t *peers, unsigned *mask)
{
    size_t i;
    json_t *peer;

    *mask = peers ? 0 : ~0u;
    if (peers && !json_is_array (peers))
        return -1;
    json_array_foreach (peers, i, peer) {
        const char *name = json_string_value (peer);
        unsigned kind = 0;

        while (name && kind <= PEER_PARENT && strcmp (name, peer_names[kind]) != 0)
            kind++;
        if (!name || kind > PEER_PARENT)
            return -1;
        *mask |= BIT (kind);
    }
    return 0;
}

/* Returns 0, or -1 if not all names are strings. */
static int read_names (json_t *names, json_t **kept)
{
    size_t i;
    json_t *name;

    *kept = json_array_size (names) > 0 ? names : NULL;
    if (names && !json_is_array (names))
        return -1;
    json_array_foreach (names, i, name)
        if (!json_is_string (name))
            return -1;
    return 0;
}

/* Returns 0, or -1 with errno EPROTO and 'errp' filled. */
static int read_options (struct tracer *t, const idt_msg_t *msg, idt_error_t *errp)
{
    json_t *peers = NULL, *names = NULL;
    json_int_t window = 0, nodeid = -1, id = 0;
    int full = 0;

    t->typemask = IDT_MSGTYPE_ANY;
    if (idt_msg_unpack (msg, &t->options, errp, "{s?i s?s s?b s?o s?I s?o s?I s?I}", "typemask", &t->typemask,
                        "topic_glob", &t->glob, "full", &full, "names", &names, "nodeid", &nodeid, "peers", &peers,
                        "window", &window, "id", &id)
        < 0)
        return errset (EPROTO);
    if (read_peers (peers, &t->peers) < 0)
        return errsetf (errp, EPROTO, "peers must be an array of client, module, broker, absent, child, parent");
    if (read_names (names, &t->names) < 0)
        return errsetf (errp, EPROTO, "names must be an array of names of modules");
    if (window < 0 || window > (json_int_t)TRACE_WINDOW_MAX)
        return errsetf (errp, EPROTO, "window must be a number of bytes up to %ju", (uintmax_t)TRACE_WINDOW_MAX);
    t->paced = window > 0;
    t->window = window > 0 ? (uint64_t)window : TRACE_WINDOW;
    t->full = full;
    t->nodeid = nodeid;
    t->id = id;
    return 0;
}

/* Limit the peers to the kinds that belong to the topic of the stream. */
static void narrow (struct tracer *t)
{
    const char *topic = idt_msg_topic (t->request);

    t->of_modules = strcmp (topic, "module.trace") == 0;
    if (t->of_modules)
        t->peers &= OF_MODULES;
    else if (strcmp (topic, "overlay.trace") == 0)
        t->peers &= OF_LINKS;
}

static void trace_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct trace *tr = arg;
    struct tracer *t = NULL;
    idt_error_t err = { "" };

    if (!idt_msg_has_flag (msg, IDT_MSGFLAG_STREAMING))
        errsetf (&err, EPROTO, "a trace must be a streaming request");
    else if (tr->count >= TRACE_MAX)
        errsetf (&err, ENOSPC, "too many clients trace messages already: the limit is %d", TRACE_MAX);
    else if ((t = calloc (1, sizeof (*t))) && read_options (t, msg, &err) == 0) {
        t->request = idt_msg_ref (msg);
        narrow (t);
        LIST_INSERT_HEAD (&tr->tracers, t, link);
        tr->count++;
        router_watch (tr->router, show, tr);
        assert (tr->count <= TRACE_MAX);
        return;
    }
    idt_respond_error (h, msg, errno, err.text[0] ? err.text : NULL);
    if (t)
        json_decref (t->options);
    free (t);
}

static void more_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct trace *tr = arg;
    struct tracer *t;
    json_int_t id = 0, bytes;
    idt_error_t err;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s?I s:I}", "id", &id, "bytes", &bytes) < 0) {
        idt_respond_error (h, msg, EPROTO, err.text);
        return;
    }
    LIST_FOREACH (t, &tr->tracers, link)
        if (module_same_client (t->request, msg) && t->id == id && bytes > 0) {
            t->unread -= (uint64_t)bytes < t->unread ? (uint64_t)bytes : t->unread;
            tell_lost (tr, t);
        }
    idt_respond (h, msg, NULL);
    json_decref (o);
}

void trace_disconnect (struct trace *tr, const idt_msg_t *msg)
{
    struct tracer *next;

    for (struct tracer *t = LIST_FIRST (&tr->tracers); t; t = next) {
        next = LIST_NEXT (t, link);
        if (module_same_client (t->request, msg))
            tracer_destroy (tr, t);
    }
}

static void disconnect_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    trace_disconnect (arg, msg);
}

/* --- life --------------------------------------------------------------------------------------------- */

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST | IDT_HANDLER_STREAM, "broker.trace", trace_cb, 0 },
    { IDT_MSGTYPE_REQUEST | IDT_HANDLER_STREAM, "module.trace", trace_cb, 0 },
    { IDT_MSGTYPE_REQUEST | IDT_HANDLER_STREAM, "overlay.trace", trace_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "broker.trace-more", more_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "broker.disconnect", disconnect_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "module.disconnect", disconnect_cb, 0 },
    IDT_HANDLERS_END,
};

struct trace *trace_create (idt_t *h, struct router *r)
{
    struct trace *tr = calloc (1, sizeof (*tr));

    if (!tr)
        return NULL;
    *tr = (struct trace){ .h = h, .router = r };
    LIST_INIT (&tr->tracers);
    if (idt_handlers_add (h, handlers, tr) == 0)
        return tr;
    free (tr);
    return NULL;
}

void trace_destroy (struct trace *tr)
{
    struct tracer *t;

    while (tr && (t = LIST_FIRST (&tr->tracers)))
        tracer_destroy (tr, t);
    free (tr);
}
