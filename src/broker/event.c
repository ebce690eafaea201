/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* event.c - events in sequence, to who subscribed (protocol.md sections 3 and 6) */
#include "config.h"

#include <arpa/inet.h>
#include <czmq.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker/event.h"
#include "broker/router.h"

#define STREAM_LEN IDT_MSG_UUID_LEN

struct subscriber {
    struct peer *peer;
    zlistx_t *prefixes; /* a prefix that was asked for twice is here twice */
};

struct event {
    const struct event_ops *ops;
    void *arg;
    bool root;
    char stream[STREAM_LEN + 1];
    uint32_t seq;    /* handed on last */
    uint32_t newest; /* heard of: above seq while there is a gap */
    bool fetching;
    struct event_stats stats;
    zhashx_t *subscribers; /* by the peer's UUID */
    /* rank 0's window: a ring of the events base + 1 ... seq, event i at slot i % replay_count */
    const idt_msg_t **window;
    size_t replay_count;
    size_t bytes;
    uint32_t base;
};

static void subscriber_free (void **item)
{
    struct subscriber *s = *item;

    if (s) {
        zlistx_destroy (&s->prefixes);
        free (s);
    }
    *item = NULL;
}

struct event *event_create (bool root, const char *uuid, size_t replay_count, const struct event_ops *ops,
                            void *arg)
{
    struct event *ev = calloc (1, sizeof (*ev));

    if (!ev || !(ev->subscribers = zhashx_new ())
        || (root && !(ev->window = calloc (replay_count, sizeof (ev->window[0]))))) {
        event_destroy (ev);
        errno = ENOMEM;
        return NULL;
    }
    zhashx_set_destructor (ev->subscribers, subscriber_free);
    ev->ops = ops;
    ev->arg = arg;
    ev->root = root;
    ev->replay_count = replay_count;
    if (root)
        snprintf (ev->stream, sizeof (ev->stream), "%s", uuid);
    return ev;
}

static void window_drop_oldest (struct event *ev)
{
    const idt_msg_t **slot = &ev->window[++ev->base % ev->replay_count];

    ev->bytes -= idt_msg_encode_size (*slot);
    idt_msg_unref (*slot);
    *slot = NULL;
}

void event_destroy (struct event *ev)
{
    int saved_errno = errno;

    if (!ev)
        return;
    while (ev->window && ev->base < ev->seq)
        window_drop_oldest (ev);
    free (ev->window);
    zhashx_destroy (&ev->subscribers);
    free (ev);
    errno = saved_errno;
}

/* --- subscriptions -------------------------------------------------------------------------- */

static struct subscriber *subscriber_of (struct event *ev, struct peer *p)
{
    struct subscriber *s = zhashx_lookup (ev->subscribers, p->uuid);

    if (s || !(s = calloc (1, sizeof (*s))))
        return s;
    s->peer = p;
    if (!(s->prefixes = zlistx_new ())) {
        free (s);
        return NULL;
    }
    zlistx_set_duplicator (s->prefixes, (czmq_duplicator *)strdup);
    zlistx_set_destructor (s->prefixes, (czmq_destructor *)zstr_free);
    zlistx_set_comparator (s->prefixes, (czmq_comparator *)strcmp);
    zhashx_insert (ev->subscribers, p->uuid, s);
    return s;
}

int event_subscribe (struct event *ev, struct peer *p, const char *prefix)
{
    struct subscriber *s = subscriber_of (ev, p);

    if (!s)
        return -1;
    if (zlistx_size (s->prefixes) >= EVENT_MAX_SUBSCRIPTIONS) {
        errno = ENOSPC;
        return -1;
    }
    zlistx_add_end (s->prefixes, (void *)prefix);
    return 0;
}

int event_unsubscribe (struct event *ev, struct peer *p, const char *prefix)
{
    struct subscriber *s = zhashx_lookup (ev->subscribers, p->uuid);
    void *handle = s ? zlistx_find (s->prefixes, (void *)prefix) : NULL;

    if (!handle) {
        errno = ENOENT;
        return -1;
    }
    zlistx_delete (s->prefixes, handle);
    if (zlistx_size (s->prefixes) == 0)
        event_forget (ev, p);
    return 0;
}

void event_forget (struct event *ev, struct peer *p)
{
    zhashx_delete (ev->subscribers, p->uuid);
}

static bool wants (struct subscriber *s, const char *topic)
{
    const char *prefix = zlistx_first (s->prefixes);

    for (; prefix; prefix = zlistx_next (s->prefixes))
        if (strncmp (topic, prefix, strlen (prefix)) == 0)
            return true;
    return false;
}

static void serve_subscribers (struct event *ev, const idt_msg_t *msg)
{
    struct subscriber *s = zhashx_first (ev->subscribers);

    for (; s; s = zhashx_next (ev->subscribers))
        if (wants (s, idt_msg_topic (msg)))
            s->peer->send (s->peer->arg, msg);
}

/* The one place where an event is handed on. */
static void deliver (struct event *ev, const idt_msg_t *msg)
{
    ev->seq = idt_msg_seq (msg);
    ev->stats.delivered++;
    serve_subscribers (ev, msg);
    ev->ops->forward (ev->arg, msg);
}

/* --- rank 0 --------------------------------------------------------------------------------- */

uint32_t event_publish_new (struct event *ev, idt_msg_t *msg)
{
    idt_msg_set_seq (msg, ev->seq + 1);
    if (ev->seq - ev->base >= ev->replay_count)
        window_drop_oldest (ev);
    ev->window[(ev->seq + 1) % ev->replay_count] = msg;
    ev->bytes += idt_msg_encode_size (msg);
    deliver (ev, msg);
    while (ev->bytes > EVENT_REPLAY_BYTES && ev->base + 1 < ev->seq)
        window_drop_oldest (ev);
    return ev->seq;
}

static void put_u32 (void *p, uint32_t x)
{
    x = htonl (x);
    memcpy (p, &x, 4);
}

static uint32_t get_u32 (const void *p)
{
    uint32_t x;

    memcpy (&x, p, 4);
    return ntohl (x);
}

/* The number after the last of the events from 'from' on that fit in one answer; '*size' is their size. */
static uint32_t window_end (struct event *ev, uint32_t from, size_t *size)
{
    uint32_t i = from;

    *size = 0;
    while (i <= ev->seq && (i == from || *size < EVENT_FETCH_BYTES))
        *size += 4 + idt_msg_encode_size (ev->window[i++ % ev->replay_count]);
    return i;
}

int event_window (struct event *ev, const char *stream, uint32_t from, void **buf, size_t *size)
{
    uint32_t first = from > ev->base ? from : ev->base + 1;
    uint32_t end;
    unsigned char *p;

    if (strcmp (stream, ev->stream) != 0) {
        errno = ENOENT;
        return -1;
    }
    end = window_end (ev, first, size);
    *size += 8;
    if (!(*buf = p = malloc (*size)))
        return -1;
    put_u32 (p, first);
    put_u32 (p + 4, ev->seq);
    p += 8;
    for (uint32_t i = first; i < end; i++) {
        const idt_msg_t *msg = ev->window[i % ev->replay_count];
        size_t len = idt_msg_encode_size (msg);

        put_u32 (p, len);
        idt_msg_encode (msg, p + 4, len);
        p += 4 + len;
    }
    return 0;
}

/* --- others --------------------------------------------------------------------------------- */

/* Fetch what is missing, unless that is under way. */
static void close_gap (struct event *ev)
{
    if (ev->fetching || ev->newest <= ev->seq)
        return;
    ev->stats.gaps++;
    ev->fetching = true;
    ev->ops->fetch (ev->arg, ev->stream, ev->seq + 1);
}

void event_receive (struct event *ev, const idt_msg_t *msg)
{
    uint32_t seq = idt_msg_seq (msg);

    if (seq <= ev->seq) {
        ev->stats.duplicates++;
        return;
    }
    if (seq > ev->newest)
        ev->newest = seq;
    if (seq == ev->seq + 1)
        deliver (ev, msg);
    if (!ev->fetching)
        close_gap (ev);
}

/* Tell subscribers of the events 'from' ... 'to' of a stream that nobody can have any more. */
static void report_lost (struct event *ev, const char *stream, uint32_t from, uint32_t to)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_EVENT);
    char text[128];

    snprintf (text, sizeof (text), "{\"stream\":\"%s\",\"from\":%u,\"to\":%u}", stream, from, to);
    if (msg && idt_msg_set_topic (msg, "event.lost") == 0 && idt_msg_set_string (msg, text) == 0)
        serve_subscribers (ev, msg);
    idt_msg_unref (msg);
    ev->stats.lost += to - from + 1;
}

/* Another stream: rank 0 began anew.  What the old one had after our last event is unknown. */
static void switch_stream (struct event *ev, const char *stream, uint32_t seq)
{
    bool had_one = ev->stream[0] != '\0';
    char old[STREAM_LEN + 1];
    uint32_t next = ev->seq + 1;

    memcpy (old, ev->stream, sizeof (old));
    snprintf (ev->stream, sizeof (ev->stream), "%s", stream);
    ev->fetching = false;
    ev->seq = had_one ? 0 : seq; /* who joins is owed nothing older; who was here is owed the new stream whole */
    ev->newest = seq;
    if (had_one)
        report_lost (ev, old, next, next);
}

void event_newest (struct event *ev, const char *stream, uint32_t seq)
{
    if (ev->root)
        return;
    if (strcmp (stream, ev->stream) != 0) {
        switch_stream (ev, stream, seq);
        ev->ops->announce (ev->arg);
    }
    if (seq > ev->newest)
        ev->newest = seq;
    close_gap (ev);
}

/* One event of an answer; returns the bytes that it took, 0 at the end or where it is malformed. */
static size_t replay_one (struct event *ev, const unsigned char *p, size_t size)
{
    size_t len = size >= 4 ? get_u32 (p) : 0;
    idt_msg_t *msg;

    if (len == 0 || len > size - 4 || !(msg = idt_msg_decode (p + 4, len)))
        return 0;
    if (idt_msg_type (msg) == IDT_MSGTYPE_EVENT && idt_msg_topic (msg) && idt_msg_seq (msg) == ev->seq + 1) {
        deliver (ev, msg);
        ev->stats.recovered++;
    }
    idt_msg_unref (msg);
    return 4 + len;
}

void event_replay (struct event *ev, const void *buf, size_t size)
{
    const unsigned char *p = buf;
    uint32_t before = ev->seq;
    size_t n;

    ev->fetching = false;
    if (!buf || size < 8)
        return;
    if (get_u32 (p) > ev->seq + 1) {
        uint32_t first = get_u32 (p);

        report_lost (ev, ev->stream, ev->seq + 1, first - 1);
        ev->seq = first - 1;
    }
    if (get_u32 (p + 4) > ev->newest)
        ev->newest = get_u32 (p + 4);
    for (p += 8, size -= 8; (n = replay_one (ev, p, size)) > 0; p += n, size -= n)
        ;
    if (ev->newest > ev->seq && ev->seq > before) { /* no progress: the next heartbeat tries again */
        ev->fetching = true;
        ev->ops->fetch (ev->arg, ev->stream, ev->seq + 1);
    }
}

uint32_t event_seq (const struct event *ev)
{
    return ev->seq;
}

const char *event_stream (const struct event *ev)
{
    return ev->stream;
}

struct event_stats event_stats (const struct event *ev)
{
    struct event_stats s = ev->stats;

    for (struct subscriber *sub = zhashx_first (ev->subscribers); sub; sub = zhashx_next (ev->subscribers))
        s.subscribers += sub->peer->kind == PEER_CLIENT;
    return s;
}
