/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* event.c - deliver events in sequence to their subscribers (protocol.md sections 3 and 6)
 *
 * The ring keeps the newest events by number.  The number of events and their bytes are limited, but the newest event
 * is always kept.
 */
#include "config.h"

#include <assert.h>
#include <czmq.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "broker/route/event.h"
#include "broker/route/router.h"
#include "libmodule/quota.h"
#include "libmsg/access.h"
#include "libutil/minmax.h"
#include "libutil/errprintf.h"

#define STREAM_LEN IDT_MSG_UUID_LEN
#define LOSSES 2 /* streams for which a subscriber's losses are remembered; the losses in older streams are dropped */
#define OVERHEAD 320 /* bytes that a kept message uses beside its encoding: struct, routes, allocator */

struct loss {
    char stream[STREAM_LEN + 1];
    uint64_t from, to; /* 0: no loss */
};

struct subscription {
    LIST_ENTRY (subscription) link;
    struct idt_cred user;
    char prefix[];
};

struct subscriber {
    struct peer *peer;
    LIST_HEAD (, subscription) subscriptions; /* a prefix that was subscribed to twice is in the list twice */
    size_t count;
    struct loss loss[LOSSES]; /* events that the subscriber's queue did not take: one entry per stream, oldest first */
};

/* The events base + 1 ... newest; event n is in slot n % max_count. */
struct ring {
    size_t max_count; /* 0: keeps no events */
    size_t max_bytes;
    size_t bytes; /* bytes of the events, plus OVERHEAD for each event */
    uint64_t base;
    uint64_t newest;
    const idt_msg_t **slots;
};

struct event {
    const struct event_ops *ops;
    void *arg;
    bool root;
    char stream[STREAM_LEN + 1];
    uint64_t seq;    /* number of the last delivered event */
    uint64_t newest; /* highest number known; higher than 'seq' while there is a gap */
    bool fetching;
    struct event_stats stats;
    zhashx_t *subscribers; /* key: UUID of the peer */
    struct quota quota;    /* limits subscriptions per user */
    struct ring ring;
};

/* --- the last events ------------------------------------------------------------------------ */

static const idt_msg_t **slot_of (const struct ring *r, uint64_t number)
{
    return &r->slots[number % r->max_count];
}

static void drop_oldest (struct ring *r)
{
    const idt_msg_t **slot = slot_of (r, ++r->base);

    assert (r->base <= r->newest);
    r->bytes -= idt_msg_encode_size (*slot) + OVERHEAD;
    idt_msg_unref (*slot);
    *slot = NULL;
}

/* Drop all events.  The ring then expects the event with number 'number' + 1. */
static void ring_reset (struct ring *r, uint64_t number)
{
    while (r->base < r->newest)
        drop_oldest (r);
    assert (r->bytes == 0);
    r->base = r->newest = number;
}

/* Put the event with this number.  If the ring does not have the event before it, all older events are dropped. */
static void ring_put (struct ring *r, uint64_t number, const idt_msg_t *msg)
{
    if (r->max_count == 0)
        return;
    if (number != r->newest + 1)
        ring_reset (r, number - 1);
    if (r->newest - r->base == r->max_count)
        drop_oldest (r);
    *slot_of (r, ++r->newest) = idt_msg_ref (msg);
    r->bytes += idt_msg_encode_size (msg) + OVERHEAD;
    while (r->bytes > r->max_bytes && r->base + 1 < r->newest)
        drop_oldest (r);
    assert (r->base < r->newest && r->newest - r->base <= r->max_count);
}

/* The event with this number, borrowed.  NULL if it is not yet, or no longer, in the ring. */
static const idt_msg_t *ring_get (const struct ring *r, uint64_t number)
{
    return number > r->base && number <= r->newest ? *slot_of (r, number) : NULL;
}

/* --- life ----------------------------------------------------------------------------------- */

static void subscriber_free (void **item)
{
    struct subscriber *s = *item;
    struct subscription *sub;

    while ((sub = LIST_FIRST (&s->subscriptions))) {
        LIST_REMOVE (sub, link);
        free (sub);
    }
    free (s);
    *item = NULL;
}

struct event *event_create (bool root, const char *uuid, size_t ring_count, const struct event_ops *ops, void *arg)
{
    struct event *ev = calloc (1, sizeof (*ev));

    if (!ev || !(ev->subscribers = zhashx_new ())
        || (ring_count > 0 && !(ev->ring.slots = calloc (ring_count, sizeof (ev->ring.slots[0]))))) {
        event_destroy (ev);
        return errset_null (ENOMEM);
    }
    zhashx_set_destructor (ev->subscribers, subscriber_free);
    ev->ops = ops;
    ev->arg = arg;
    ev->root = root;
    ev->ring.max_count = ring_count;
    ev->ring.max_bytes = root ? EVENT_REPLAY_BYTES : EVENT_RING_BYTES;
    quota_init (&ev->quota, QUOTA_SUBSCRIPTIONS);
    if (root)
        snprintf (ev->stream, sizeof (ev->stream), "%s", uuid);
    return ev;
}

void event_destroy (struct event *ev)
{
    if (!ev)
        return;
    ring_reset (&ev->ring, 0);
    free (ev->ring.slots);
    zhashx_destroy (&ev->subscribers);
    quota_fini (&ev->quota);
    free (ev);
}

/* --- subscriptions -------------------------------------------------------------------------- */

/* Returns NULL with errno EINVAL ('prefix' is longer than any topic) or ENOMEM. */
static struct subscription *subscription_create (struct idt_cred user, const char *prefix)
{
    size_t size = strlen (prefix) + 1;
    struct subscription *sub = size > IDT_MSG_MAX_TOPIC + 1 ? errset_null (EINVAL) : malloc (sizeof (*sub) + size);

    if (sub) {
        sub->user = user;
        memcpy (sub->prefix, prefix, size);
    }
    return sub;
}

static struct subscriber *subscriber_of (struct event *ev, struct peer *p)
{
    struct subscriber *s = zhashx_lookup (ev->subscribers, p->uuid);

    if (s || !(s = calloc (1, sizeof (*s))))
        return s;
    s->peer = p;
    zhashx_insert (ev->subscribers, p->uuid, s);
    return s;
}

int event_subscribe (struct event *ev, struct peer *p, struct idt_cred user, const char *prefix)
{
    struct subscription *sub = subscription_create (user, prefix);
    struct subscriber *s = sub ? subscriber_of (ev, p) : NULL;

    if (s && s->count >= EVENT_MAX_SUBSCRIPTIONS)
        errno = ENOSPC;
    else if (s && quota_take (&ev->quota, user, NULL) == 0) {
        LIST_INSERT_HEAD (&s->subscriptions, sub, link);
        s->count++;
        return 0;
    }
    int saved = errno;
    free (sub);
    if (s && s->count == 0)
        event_forget (ev, p);
    return errset (saved);
}

int event_unsubscribe (struct event *ev, struct peer *p, struct idt_cred user, const char *prefix)
{
    struct subscriber *s = zhashx_lookup (ev->subscribers, p->uuid);
    struct subscription *sub = s ? LIST_FIRST (&s->subscriptions) : NULL;

    while (sub
           && (sub->user.userid != user.userid || sub->user.rolemask != user.rolemask
               || strcmp (sub->prefix, prefix) != 0))
        sub = LIST_NEXT (sub, link);
    if (!sub)
        return errset (ENOENT);
    assert (s->count > 0);
    LIST_REMOVE (sub, link);
    free (sub);
    quota_give (&ev->quota, user);
    if (--s->count == 0)
        event_forget (ev, p);
    return 0;
}

void event_forget (struct event *ev, struct peer *p)
{
    struct subscriber *s = zhashx_lookup (ev->subscribers, p->uuid);
    const struct subscription *sub = s ? LIST_FIRST (&s->subscriptions) : NULL;

    for (; sub; sub = LIST_NEXT (sub, link))
        quota_give (&ev->quota, sub->user);
    zhashx_delete (ev->subscribers, p->uuid);
}

/* Whether a subscription of 's' matches the topic and the user of that subscription may see the event. */
static bool wants (struct subscriber *s, const idt_msg_t *msg)
{
    const char *topic = idt_msg_topic (msg);
    const struct subscription *sub;

    LIST_FOREACH (sub, &s->subscriptions, link)
        if (strncmp (topic, sub->prefix, strlen (sub->prefix)) == 0 && access_may_see (sub->user, msg))
            return true;
    return false;
}

static idt_msg_t *make_lost (const char *stream, uint64_t from, uint64_t to)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_EVENT);
    char text[160];

    snprintf (text, sizeof (text), "{\"stream\":\"%s\",\"from\":%ju,\"to\":%ju}", stream, (uintmax_t)from,
              (uintmax_t)to);
    if (msg && idt_msg_set_topic (msg, "event.lost") == 0 && idt_msg_set_string (msg, text) == 0)
        return msg;
    idt_msg_unref (msg);
    return NULL;
}

static void drop_first_loss (struct subscriber *s)
{
    memmove (s->loss, s->loss + 1, (LOSSES - 1) * sizeof (s->loss[0]));
    s->loss[LOSSES - 1] = (struct loss){ .from = 0 };
}

/* Report to 's' the events that it missed, before it gets any newer event.  Returns whether all reports were sent. */
static bool report_missed (struct subscriber *s)
{
    bool sent = true;

    while (sent && s->loss[0].from > 0) {
        idt_msg_t *msg = make_lost (s->loss[0].stream, s->loss[0].from, s->loss[0].to);

        sent = msg && s->peer->send (s->peer->arg, msg) == 0;
        idt_msg_unref (msg);
        if (sent)
            drop_first_loss (s);
    }
    return sent;
}

/* Record that 's' missed the events 'from' ... 'to' of 'stream'.  Earlier losses stay recorded. */
static void note_missed (struct subscriber *s, const char *stream, uint64_t from, uint64_t to)
{
    struct loss *l = s->loss;

    while (l < s->loss + LOSSES && l->from > 0 && strcmp (l->stream, stream) != 0)
        l++;
    if (l == s->loss + LOSSES) {
        drop_first_loss (s);
        l--;
    }
    if (l->from == 0) {
        snprintf (l->stream, sizeof (l->stream), "%s", stream);
        l->from = from;
    }
    l->to = to;
}

static void give (struct event *ev, struct subscriber *s, const idt_msg_t *msg)
{
    if (!report_missed (s) || s->peer->send (s->peer->arg, msg) < 0)
        note_missed (s, ev->stream, ev->seq, ev->seq);
    else if (ev->ops->given)
        ev->ops->given (ev->arg, s->peer, msg);
}

static void serve_subscribers (struct event *ev, const idt_msg_t *msg)
{
    struct subscriber *s = zhashx_first (ev->subscribers);

    for (; s; s = zhashx_next (ev->subscribers))
        if (wants (s, msg))
            give (ev, s, msg);
}

/* Deliver the next event: keep it, and send it to subscribers and children.  Only this function counts 'seq' up by one
 * for an event.
 */
static void deliver (struct event *ev, const idt_msg_t *msg)
{
    ring_put (&ev->ring, ++ev->seq, msg);
    ev->stats.delivered++;
    serve_subscribers (ev, msg);
    ev->ops->forward (ev->arg, msg);
}

const idt_msg_t *event_after (const struct event *ev, uint64_t after, uint64_t *seq)
{
    const struct ring *r = &ev->ring;

    assert (r->newest <= ev->seq);
    if (after >= r->newest)
        return NULL;
    *seq = after > r->base ? after + 1 : r->base + 1;
    return ring_get (r, *seq);
}

/* --- rank 0 --------------------------------------------------------------------------------- */

void event_start_after (struct event *ev, uint64_t seq)
{
    ev->seq = seq;
    ring_reset (&ev->ring, seq);
}

/* Return a message without routes and without the memory that they used.  Steals 'msg'.  NULL with errno ENOMEM. */
static idt_msg_t *without_routes (idt_msg_t *msg)
{
    idt_msg_t *copy;

    if (idt_msg_route_count (msg) == 0)
        return msg;
    idt_msg_route_clear (msg);
    copy = idt_msg_copy (msg, true);
    idt_msg_unref (msg);
    return copy;
}

uint64_t event_publish_new (struct event *ev, idt_msg_t *msg)
{
    assert (ev->root);
    if (idt_msg_encode_size (msg) > EVENT_MAX_BYTES) {
        idt_msg_unref (msg);
        errno = EMSGSIZE;
        return 0;
    }
    if (!(msg = without_routes (msg)))
        return 0;
    idt_msg_set_seq (msg, (uint32_t)(ev->seq + 1));
    deliver (ev, msg);
    idt_msg_unref (msg);
    return ev->seq;
}

/* The number after the last event that fits in one response to a fetch that starts at 'from'.  '*size' becomes the
 * number of bytes of the events in the response.  The first event always fits.
 */
static uint64_t window_end (struct event *ev, uint64_t from, size_t *size)
{
    const idt_msg_t *msg;
    uint64_t i = from;

    for (*size = 0; (msg = ring_get (&ev->ring, i)) && (i == from || *size < EVENT_FETCH_BYTES); i++)
        *size += 4 + idt_msg_encode_size (msg);
    return i;
}

int event_window (struct event *ev, const char *stream, uint64_t from, void **buf, size_t *size)
{
    uint64_t first = from > ev->ring.base ? from : ev->ring.base + 1, end;
    unsigned char *p;

    assert (ev->root);
    if (strcmp (stream, ev->stream) != 0)
        return errset (ENOENT);
    end = window_end (ev, first, size);
    *size += 8;
    if (!(*buf = p = malloc (*size)))
        return -1;
    put_be (p, 4, first);
    put_be (p + 4, 4, ev->seq);
    p += 8;
    for (uint64_t i = first; i < end; i++) {
        const idt_msg_t *msg = ring_get (&ev->ring, i);
        size_t len = idt_msg_encode_size (msg);

        put_be (p, 4, len);
        idt_msg_encode (msg, p + 4, len);
        p += 4 + len;
    }
    return 0;
}

/* --- other ranks ---------------------------------------------------------------------------- */

/* Find the event number that has these lower 32 bits and is nearest to the number of our last event.  0: this number
 * would lie before the first event.
 */
static uint64_t whole_number (const struct event *ev, uint32_t low)
{
    int32_t distance = (int32_t)(low - (uint32_t)ev->seq);

    return distance < 0 && (uint64_t) - (int64_t)distance > ev->seq ? 0 : ev->seq + (int64_t)distance;
}

/* Fetch the missing events, if there are any, unless a fetch is under way.  Returns whether a fetch was started. */
static bool fetch (struct event *ev)
{
    if (ev->fetching || ev->newest <= ev->seq)
        return false;
    ev->fetching = true;
    ev->ops->fetch (ev->arg, ev->stream, ev->seq + 1);
    return true;
}

void event_receive (struct event *ev, const idt_msg_t *msg)
{
    uint64_t seq = whole_number (ev, idt_msg_seq (msg));

    if (seq <= ev->seq) {
        ev->stats.duplicates++;
        return;
    }
    if (seq > ev->newest)
        ev->newest = seq;
    if (seq == ev->seq + 1)
        deliver (ev, msg);
    ev->stats.gaps += fetch (ev);
}

/* Report to all subscribers that the events 'from' ... 'to' of a stream are lost.  The topics of lost events are
 * unknown, so any subscriber may have missed one.
 */
static void report_lost (struct event *ev, const char *stream, uint64_t from, uint64_t to)
{
    idt_msg_t *msg = make_lost (stream, from, to);
    struct subscriber *s = msg ? zhashx_first (ev->subscribers) : NULL;

    for (; s; s = zhashx_next (ev->subscribers))
        if (s->loss[0].from > 0 || s->peer->send (s->peer->arg, msg) < 0)
            note_missed (s, stream, from, to);
    idt_msg_unref (msg);
    ev->stats.lost += to - from + 1;
}

/* Follow another stream because rank 0 has restarted.  The old stream may have had events after the last one that this
 * broker got, but their number is unknown.  So one event is reported as lost.
 */
static void switch_stream (struct event *ev, const char *stream, uint64_t seq)
{
    bool had_one = ev->stream[0] != '\0';
    char old[STREAM_LEN + 1];
    uint64_t next = ev->seq + 1;

    memcpy (old, ev->stream, sizeof (old));
    snprintf (ev->stream, sizeof (ev->stream), "%s", stream);
    ev->fetching = false;
    ev->seq = had_one ? 0 : seq; /* a joining broker needs no older event; others need all events of the new stream */
    ev->newest = seq;
    ring_reset (&ev->ring, ev->seq);
    if (had_one)
        report_lost (ev, old, next, next);
}

void event_newest_low (struct event *ev, const char *stream, uint32_t seq)
{
    event_newest (ev, stream, strcmp (stream, ev->stream) == 0 ? whole_number (ev, seq) : seq);
}

void event_newest (struct event *ev, const char *stream, uint64_t seq)
{
    if (ev->root)
        return;
    if (strcmp (stream, ev->stream) != 0) {
        switch_stream (ev, stream, seq);
        ev->ops->announce (ev->arg);
    }
    if (seq > ev->newest)
        ev->newest = seq;
    ev->stats.gaps += fetch (ev);
}

/* Deliver one event of a response.  Returns its size in bytes, or 0 at the end of the response or for malformed data.
 */
static size_t replay_one (struct event *ev, const unsigned char *p, size_t size)
{
    size_t len = size >= 4 ? get_be (p, 4) : 0;
    idt_msg_t *msg;

    if (len == 0 || len > size - 4 || !(msg = idt_msg_decode (p + 4, len)))
        return 0;
    if (idt_msg_type (msg) == IDT_MSGTYPE_EVENT && idt_msg_topic (msg)
        && idt_msg_seq (msg) == (uint32_t)(ev->seq + 1)) {
        deliver (ev, msg);
        ev->stats.recovered++;
    }
    idt_msg_unref (msg);
    return 4 + len;
}

void event_replay (struct event *ev, const void *buf, size_t size)
{
    const unsigned char *p = buf;
    uint64_t before = ev->seq, first, newest;
    size_t n;

    ev->fetching = false;
    if (!buf || size < 8)
        return;
    first = whole_number (ev, get_be (p, 4));
    newest = whole_number (ev, get_be (p + 4, 4));
    if (first > ev->seq + 1) {
        report_lost (ev, ev->stream, ev->seq + 1, first - 1);
        ev->seq = first - 1;
    }
    if (newest > ev->newest)
        ev->newest = newest;
    for (p += 8, size -= 8; (n = replay_one (ev, p, size)) > 0; p += n, size -= n)
        ;
    if (ev->seq > before) /* without progress, the parent's next message starts another fetch */
        fetch (ev);
}

uint64_t event_seq (const struct event *ev)
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
