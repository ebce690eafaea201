/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* events.c - the events of a broker: connects route/event, which decides, with the overlay and with clients (event.*)
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "broker/events.h"
#include "libmsg/access.h"
#include "libutil/base64.h"
#include "libutil/errprintf.h"

/* --- between the core and its peers ------------------------------------------------------------------ */

/* Publish an event (steals the reference) if its sender is allowed to. Rank 0 numbers the event; another rank sends it
 * to its parent.
 */
static void publish_new (struct broker_events *ev, idt_msg_t *msg)
{
    if (!idt_msg_topic (msg) || !access_may_publish (idt_msg_cred (msg), idt_msg_topic (msg))) {
        idt_msg_unref (msg);
        return;
    }
    if (ev->rank == 0) {
        if (event_publish_new (ev->core, msg) == 0)
            log_printf (ev->log, LOG_WARNING, "event", "an event is dropped: %s", strerror (errno));
        return;
    }
    if (overlay_event_up (ev->overlay, msg) < 0)
        log_printf (ev->log, LOG_WARNING, "event", "event %.64s could not be sent to rank 0 and is dropped: %s",
                    idt_msg_topic (msg), strerror (errno));
    idt_msg_unref (msg);
}

/* An event from the parent is numbered and in sequence. An event from another peer is new and must be published. */
void events_take_new (struct broker_events *ev, struct peer *from, idt_msg_t *msg)
{
    assert (ev->overlay && ev->h);
    router_show (ev->router, ROUTER_FROM, from, msg);
    if (from->kind != PEER_PARENT) {
        publish_new (ev, msg);
        return;
    }
    if (idt_msg_topic (msg))
        event_receive (ev->core, msg);
    idt_msg_unref (msg);
}

static void event_forward (void *arg, const idt_msg_t *msg)
{
    struct broker_events *ev = arg;

    overlay_event_down (ev->overlay);
}

static void fetched (idt_future_t *f, void *arg)
{
    struct broker_events *ev = arg;
    const void *buf = NULL;
    size_t size = 0;

    if (idt_rpc_get_raw (f, &buf, &size) < 0)
        buf = NULL;
    event_replay (ev->core, buf, size);
    idt_future_destroy (f);
}

static void event_fetch (void *arg, const char *stream, uint64_t from)
{
    struct broker_events *ev = arg;
    idt_future_t *f = idt_rpc_pack (ev->h, "event.replay", 0, 0, "{s:s s:I}", "stream", stream, "from",
                                    (json_int_t)from);

    log_printf (ev->log, LOG_INFO, "event", "events from number %ju on are missing: asking rank 0", (uintmax_t)from);
    if (!f || idt_future_then (f, -1., fetched, ev) < 0) {
        idt_future_destroy (f);
        event_replay (ev->core, NULL, 0);
    }
}

static void event_announce (void *arg)
{
    struct broker_events *ev = arg;

    overlay_event_position (ev->overlay);
}

static void event_given (void *arg, const struct peer *p, const idt_msg_t *msg)
{
    struct broker_events *ev = arg;

    router_show (ev->router, ROUTER_TO, p, msg);
}

static const struct event_ops event_ops = {
    .forward = event_forward,
    .given = event_given,
    .fetch = event_fetch,
    .announce = event_announce,
};

/* --- event.* ------------------------------------------------------------------------------------------ */

static void subscription (struct broker_events *ev, const idt_msg_t *msg,
                          int (*change) (struct event *core, struct peer *p, struct idt_cred user, const char *prefix))
{
    struct peer *p = router_local_sender (ev->router, msg);
    const char *topic;
    idt_error_t err;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s:s}", "topic", &topic) < 0) {
        idt_respond_error (ev->h, msg, EPROTO, err.text);
        return;
    }
    if (!p)
        idt_respond_error (ev->h, msg, EPROTO,
                           "send requests for events to the broker of the connection, not to "
                           "another rank");
    else if (change (ev->core, p, idt_msg_cred (msg), topic) < 0)
        idt_respond_error (ev->h, msg, errno,
                           errno == ENOSPC
                               ? "too many subscriptions: the limits are 4096 for a connection, 4096 for a user, 64 "
                                 "for a guest, 16384 for all users but the owner: end some first"
                           : errno == EINVAL ? "a subscription is longer than any topic (1024 bytes)"
                                             : NULL);
    else
        idt_respond (ev->h, msg, NULL);
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

/* Make the event that a request event.publish describes. NULL with errno set. */
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
    struct broker_events *ev = arg;
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
    if (ev->rank != 0)
        idt_respond_error (h, msg, EPROTO, "only rank 0 publishes: send event.publish to nodeid 0");
    else if (!access_may_publish (idt_msg_cred (msg), topic))
        idt_respond_error (h, msg, EPERM,
                           "only the instance owner may publish events whose topics begin with the "
                           "name of a service");
    else if (flags & ~IDT_MSGFLAG_PRIVATE)
        idt_respond_error (h, msg, EPROTO, "flags must be 0 or 32 (private)");
    else if (!(event = make_event (msg, topic, flags, payload)))
        idt_respond_error (h, msg, errno == EINVAL ? EPROTO : errno, "topic or payload is malformed");
    else if ((seq = event_publish_new (ev->core, event)) == 0)
        idt_respond_error (h, msg, errno, errno == EMSGSIZE ? "an event is larger than 64 MiB" : NULL);
    else
        idt_respond_pack (h, msg, "{s:I}", "seq", (json_int_t)seq);
    json_decref (o);
}

static void replay_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct broker_events *ev = arg;
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
    if (ev->rank != 0 || from < 1)
        idt_respond_error (h, msg, EPROTO, "only rank 0 replays events, and their numbers begin at 1");
    else if (event_window (ev->core, stream, from, &buf, &size) < 0)
        idt_respond_error (h, msg, errno, NULL);
    else {
        idt_respond_raw (h, msg, buf, size);
        free (buf);
    }
    json_decref (o);
}

static void event_stats_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct broker_events *ev = arg;
    struct event_stats stats = event_stats (ev->core);

    idt_respond_pack (h, msg, "{s:I s:s s:I s:I s:I s:I s:I s:I}", "seq", (json_int_t)event_seq (ev->core), "stream",
                      event_stream (ev->core), "delivered", (json_int_t)stats.delivered, "gaps", (json_int_t)stats.gaps,
                      "recovered", (json_int_t)stats.recovered, "lost", (json_int_t)stats.lost, "duplicates",
                      (json_int_t)stats.duplicates, "subscribers", (json_int_t)stats.subscribers);
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST, "event.subscribe", subscribe_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "event.unsubscribe", unsubscribe_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "event.publish", publish_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "event.replay", replay_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "event.stats-get", event_stats_cb, 0 },
    IDT_HANDLERS_END,
};

int events_serve (struct broker_events *ev, struct overlay *overlay, idt_t *h)
{
    ev->overlay = overlay;
    ev->h = h;
    return idt_handlers_add (h, handlers, ev);
}

int events_init (struct broker_events *ev, const char *uuid, struct attrs *attrs, const struct topo *topo,
                 idt_error_t *errp)
{
    uint32_t replay;

    assert (ev->router && ev->log);
    if (attr_u32 (attrs, "event.replay", "131072", 1, 10000000, &replay, errp) < 0)
        return -1;
    if (ev->rank > 0)
        replay = topo_child_count (topo, ev->rank) > 0 ? EVENT_RING_COUNT : 0;
    if (!(ev->core = event_create (ev->rank == 0, uuid, replay, &event_ops, ev)))
        return errprintf (errp, "out of memory");
    return 0;
}

void events_fini (struct broker_events *ev)
{
    event_destroy (ev->core);
}
