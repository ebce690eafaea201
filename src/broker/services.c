/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* services.c - the broker's own services: attr, config, event, service, state-machine, shutdown */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "broker/private.h"
#include "libidtree/json.h"
#include "libmsg/access.h"
#include "libutil/base64.h"

#define MAX_SERVICES 64 /* of one client or module */

/* The client or module that sent a request over a connection to this broker; NULL: the request came from another
 * broker.
 */
static struct peer *local_sender (struct broker *b, const idt_msg_t *msg)
{
    struct peer *p = idt_msg_route_count (msg) == 1 ? router_peer (b->router, idt_msg_route_newest (msg)) : NULL;

    return p && (p->kind == PEER_CLIENT || p->kind == PEER_MODULE) ? p : NULL;
}

/* --- attr ------------------------------------------------------------------------------------------- */

static void respond_value (idt_t *h, const idt_msg_t *msg, const char *value, int flags)
{
    idt_respond_pack (h, msg, "{s:s s:i}", "value", value, "flags", flags & ATTR_IMMUTABLE);
}

static void hostlist_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct broker *b = up->owner;
    const char *value;

    if (idt_rpc_get_unpack (f, "{s:s}", "value", &value) < 0)
        idt_respond_error (b->h, up->msg, errno, idt_future_error (f));
    else
        respond_value (b->h, up->msg, value, ATTR_IMMUTABLE);
    upcall_destroy (up);
}

/* The list of hosts is long and seldom requested, so it is made, or fetched from rank 0, on request. */
static void get_hostlist (struct broker *b, const idt_msg_t *msg)
{
    char *text = b->boot->hosts ? hostlist_text (b->boot->hosts) : NULL;
    struct upcall *up = NULL;

    if (text)
        respond_value (b->h, msg, text, ATTR_IMMUTABLE);
    else if (b->boot->hosts)
        idt_respond_error (b->h, msg, ENOMEM, NULL);
    else if ((up = upcall_create (&b->ups, idt_rpc_pack (b->h, "attr.get", 0, 0, "{s:s}", "name", "hostlist"), -1,
                                  hostlist_cb, b)))
        up->msg = idt_msg_ref (msg);
    else
        idt_respond_error (b->h, msg, errno, "cannot ask rank 0 for the list of hosts");
    free (text);
}

static void attr_get_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct broker *b = arg;
    const struct peer *p = local_sender (b, msg);
    const char *name, *value;
    idt_error_t err;
    int flags;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s:s}", "name", &name) < 0) {
        idt_respond_error (h, msg, EPROTO, err.text);
        return;
    }
    if (strcmp (name, "hostlist") == 0)
        get_hostlist (b, msg);
    else if ((value = p && p->kind == PEER_MODULE ? attr_get (b->attrs, name, &flags)
                                                  : attr_look (b->attrs, name, &flags)))
        respond_value (h, msg, value, flags);
    else
        idt_respond_error (h, msg, ENOENT, NULL);
    json_decref (o);
}

static void attr_set_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct broker *b = arg;
    const char *name, *value;
    idt_error_t err;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s:s s:s}", "name", &name, "value", &value) < 0) {
        idt_respond_error (h, msg, EPROTO, err.text);
        return;
    }
    if (attr_set (b->attrs, name, value, &err) < 0)
        idt_respond_error (h, msg, errno, err.text);
    else
        idt_respond (h, msg, NULL);
    json_decref (o);
}

/* A module defines an attribute of its own (idt_attr_define ()). */
static void attr_define_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct broker *b = arg;
    struct peer *p = local_sender (b, msg);
    const char *name, *value, *kept;
    idt_error_t err;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s:s s:s}", "name", &name, "value", &value) < 0) {
        idt_respond_error (h, msg, EPROTO, err.text);
        return;
    }
    if (!p || p->kind != PEER_MODULE)
        idt_respond_error (h, msg, EPERM, "only modules of this broker define attributes");
    else if (!(kept = attr_default (b->attrs, name, value, &err)))
        idt_respond_error (h, msg, errno, err.text);
    else
        idt_respond_pack (h, msg, "{s:s s:i}", "value", kept, "flags", 0);
    json_decref (o);
}

static void append_name (const char *name, const char *value, void *arg)
{
    json_add_new (arg, json_string (name));
}

static void attr_list_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct broker *b = arg;
    json_t *names = json_array ();

    attr_foreach (b->attrs, append_name, &names);
    idt_respond_pack (h, msg, "{s:o}", "names", names);
}

/* --- config ----------------------------------------------------------------------------------------- */

/* Clients of Flux read the configuration for optional behaviour (flux shutdown: whether to clean up a content store,
 * which idtree does not have), and fail without an answer. idtree is configured only by attributes, so the answer is
 * empty.
 */
static void config_get_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    idt_respond_pack (h, msg, "{}");
}

static void config_reload_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct broker *b = arg;
    idt_error_t err = { "" };
    json_t *report = b->conf.ops->reload ? b->conf.ops->reload (b->conf.arg, &err) : errset_null (ENOSYS);

    if (report)
        idt_respond_pack (h, msg, "o", report);
    else
        idt_respond_error (h, msg, errno, err.text[0] ? err.text : NULL);
}

/* --- event ------------------------------------------------------------------------------------------ */

static void subscription (struct broker *b, const idt_msg_t *msg,
                          int (*change) (struct event *ev, struct peer *p, struct idt_cred user, const char *prefix))
{
    struct peer *p = local_sender (b, msg);
    const char *topic;
    idt_error_t err;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s:s}", "topic", &topic) < 0) {
        idt_respond_error (b->h, msg, EPROTO, err.text);
        return;
    }
    if (!p)
        idt_respond_error (b->h, msg, EPROTO,
                           "send requests for events to the broker of the connection, not to "
                           "another rank");
    else if (change (b->event, p, idt_msg_cred (msg), topic) < 0)
        idt_respond_error (b->h, msg, errno,
                           errno == ENOSPC
                               ? "too many subscriptions: the limits are 4096 for a connection, 4096 for a user, 64 "
                                 "for a guest, 16384 for all users but the owner: end some first"
                           : errno == EINVAL ? "a subscription is longer than any topic (1024 bytes)"
                                             : NULL);
    else
        idt_respond (b->h, msg, NULL);
    json_decref (o);
}

static void subscribe_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    subscription (arg, msg, event_subscribe);
}

static void unsubscribe_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    subscription (arg, msg, event_unsubscribe);
}

/* Make an event from a request event.publish. NULL with errno set. */
static idt_msg_t *make_event (const idt_msg_t *request, const char *topic, int flags, const char *payload)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_EVENT);
    size_t len = payload ? strlen (payload) : 0;
    void *data = malloc (BASE64_DECODED_SIZE (len) + 1);
    ssize_t n = 0;

    if (!msg || !data || idt_msg_set_topic (msg, topic) < 0
        || (payload
            && ((n = base64_decode (payload, len, data, BASE64_DECODED_SIZE (len))) < 0
                || idt_msg_set_payload (msg, data, n) < 0))) {
        int saved_errno = errno;

        idt_msg_unref (msg);
        free (data);
        return errset_null (saved_errno);
    }
    free (data);
    if (flags & IDT_MSGFLAG_PRIVATE)
        idt_msg_set_flag (msg, IDT_MSGFLAG_PRIVATE);
    idt_msg_set_cred (msg, idt_msg_cred (request));
    idt_msg_route_clear (msg);
    return msg;
}

static void publish_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct broker *b = arg;
    const char *topic, *payload = NULL;
    idt_error_t err;
    idt_msg_t *event;
    int flags = 0;
    uint64_t seq;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s:s s?i s?s}", "topic", &topic, "flags", &flags, "payload", &payload) < 0) {
        idt_respond_error (h, msg, EPROTO, err.text);
        return;
    }
    if (b->rank != 0)
        idt_respond_error (h, msg, EPROTO, "only rank 0 publishes: send event.publish to nodeid 0");
    else if (!access_may_publish (idt_msg_cred (msg), topic))
        idt_respond_error (h, msg, EPERM,
                           "only the instance owner may publish events whose topics begin with the "
                           "name of a service");
    else if (flags & ~IDT_MSGFLAG_PRIVATE)
        idt_respond_error (h, msg, EPROTO, "flags must be 0 or 32 (private)");
    else if (!(event = make_event (msg, topic, flags, payload)))
        idt_respond_error (h, msg, errno == EINVAL ? EPROTO : errno, "topic or payload is malformed");
    else if ((seq = event_publish_new (b->event, event)) == 0)
        idt_respond_error (h, msg, errno, errno == EMSGSIZE ? "an event is larger than 64 MiB" : NULL);
    else
        idt_respond_pack (h, msg, "{s:I}", "seq", (json_int_t)seq);
    json_decref (o);
}

static void replay_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct broker *b = arg;
    const char *stream;
    json_int_t from;
    idt_error_t err;
    void *buf;
    size_t size;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s:s s:I}", "stream", &stream, "from", &from) < 0) {
        idt_respond_error (h, msg, EPROTO, err.text);
        return;
    }
    if (b->rank != 0 || from < 1)
        idt_respond_error (h, msg, EPROTO, "only rank 0 replays events, and their numbers begin at 1");
    else if (event_window (b->event, stream, from, &buf, &size) < 0)
        idt_respond_error (h, msg, errno, NULL);
    else {
        idt_respond_raw (h, msg, buf, size);
        free (buf);
    }
    json_decref (o);
}

static void event_stats_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct broker *b = arg;
    struct event_stats s = event_stats (b->event);

    idt_respond_pack (h, msg, "{s:I s:s s:I s:I s:I s:I s:I s:I}", "seq", (json_int_t)event_seq (b->event), "stream",
                      event_stream (b->event), "delivered", (json_int_t)s.delivered, "gaps", (json_int_t)s.gaps,
                      "recovered", (json_int_t)s.recovered, "lost", (json_int_t)s.lost, "duplicates",
                      (json_int_t)s.duplicates, "subscribers", (json_int_t)s.subscribers);
}

/* --- service ---------------------------------------------------------------------------------------- */

static const char *why_no_change (int errnum)
{
    switch (errnum) {
    case ENOSPC:
        return "a client may add at most 64 services";
    case EEXIST:
        return "the name is already in use on this rank: choose another, or wait until its owner removes it";
    case EINVAL:
        return "the name of a service must have 1 to 64 characters and no dot";
    case ENOENT:
        return "no service of this name was added over this connection: only the connection that added a service can "
               "remove it";
    default:
        return NULL;
    }
}

static void service_change (struct broker *b, const idt_msg_t *msg,
                            int (*change) (struct router *r, const char *name, struct peer *p))
{
    struct peer *p = local_sender (b, msg);
    const char *name;
    idt_error_t err;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s:s}", "service", &name) < 0) {
        idt_respond_error (b->h, msg, EPROTO, err.text);
        return;
    }
    if (!p)
        idt_respond_error (b->h, msg, EPROTO,
                           "a service can be added only at the broker of the connection, not at "
                           "another rank");
    else if (change (b->router, name, p) < 0)
        idt_respond_error (b->h, msg, errno, why_no_change (errno));
    else
        idt_respond (b->h, msg, NULL);
    json_decref (o);
}

static void count_cb (const char *name, void *arg)
{
    (*(int *)arg)++;
}

static int add_service (struct router *r, const char *name, struct peer *p)
{
    int count = 0;

    router_service_foreach (r, p, count_cb, &count);
    if (count >= MAX_SERVICES)
        return errset (ENOSPC);
    return router_service_add (r, name, p);
}

static void service_add_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    service_change (arg, msg, add_service);
}

static void service_remove_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    service_change (arg, msg, router_service_remove);
}

/* --- state-machine, shutdown, broker --------------------------------------------------------------------- */

static void state_get_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct broker *b = arg;

    idt_respond_pack (h, msg, "{s:s s:f}", "state", state_name (b->state), "duration",
                      clock_s (CLOCK_MONOTONIC) - b->state_since);
}

/* A streaming request gets its end when the broker ends. */
static void shutdown_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct broker *b = arg;
    idt_error_t err;

    if (!idt_msg_has_flag (msg, IDT_MSGFLAG_STREAMING))
        idt_respond (h, msg, NULL);
    else if (msglist_add (b->shutdown_streams, msg, &err) < 0) {
        idt_respond_error (h, msg, errno, err.text);
        return;
    }
    broker_begin_stop (b, "a request");
}

static void shutdown_disconnect_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct broker *b = arg;

    msglist_disconnect (b->shutdown_streams, msg);
}

static void broker_stats_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct broker *b = arg;
    struct router_stats s = router_stats (b->router);

    idt_respond_pack (h, msg, "{s:I s:I s:I s:I s:I s:I}", "requests", (json_int_t)s.requests, "responses",
                      (json_int_t)s.responses, "failed", (json_int_t)s.failed, "unroutable", (json_int_t)s.unroutable,
                      "pending", (json_int_t)s.pending, "clients", (json_int_t)usock_count (b->local));
}

/* For services without statistics, as for modules without a handler of their own. */
static void no_stats_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    idt_respond (h, msg, "{}");
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST, "attr.stats-get", no_stats_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "config.stats-get", no_stats_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "service.stats-get", no_stats_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "state-machine.stats-get", no_stats_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "shutdown.stats-get", no_stats_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "metrics.stats-get", no_stats_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "module.stats-get", no_stats_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "attr.define", attr_define_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "attr.get", attr_get_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "attr.list", attr_list_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "attr.set", attr_set_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "config.get", config_get_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "config.reload", config_reload_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "event.subscribe", subscribe_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "event.unsubscribe", unsubscribe_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "event.publish", publish_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "event.replay", replay_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "event.stats-get", event_stats_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "service.add", service_add_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "service.remove", service_remove_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "state-machine.get", state_get_cb, 0 },
    { IDT_MSGTYPE_REQUEST | IDT_HANDLER_STREAM, "shutdown.start", shutdown_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "shutdown.disconnect", shutdown_disconnect_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "broker.stats-get", broker_stats_cb, 0 },
    IDT_HANDLERS_END,
};

static const char *names[] = { "broker",   "attr", "config",  "event",  "service", "state-machine",
                               "shutdown", "log",  "metrics", "module", "overlay" };

int broker_serve (struct broker *b)
{
    const struct metrics_service_conf metrics_service = {
        .h = b->h,
        .topo = b->topo,
        .rank = b->rank,
        .for_process = boot_rank (b->boot, 0) == b->rank,
        .overlay = b->overlay,
        .modules = b->modules,
        .router = b->router,
        .event = b->event,
        .local = b->local,
    };

    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++)
        if (router_service_add (b->router, names[i], &b->peer) < 0)
            return -1;
    if (idt_handlers_add (b->h, handlers, b) < 0 || log_serve (b->log, b->h) < 0 || overlay_serve (b->overlay, b->h) < 0
        || modules_serve (b->modules, b->h) < 0 || !(b->metrics_service = metrics_service_create (&metrics_service))
        || !(b->trace = trace_create (b->h, b->router)))
        return -1;
    return 0;
}
