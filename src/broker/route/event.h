/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* event.h - deliver events in sequence to their subscribers (protocol.md sections 3 and 6); part of the core
 *
 * Rank 0 numbers events 1, 2, 3, ....  Every broker delivers each event once, in this order.  Rank 0, and brokers with
 * children, keep the newest events.
 *
 * Nothing is queued for a slow child: the number of the last event that was sent to the child is enough, because the
 * next one is among the kept events (event_after ()).
 *
 * A number has 64 bits, but a message carries only its lower 32 bits: the receiver takes the number that is nearest to
 * the number of its last event.  A broker detects a gap by the next event, or by the newest number in a hello or
 * heartbeat.  The broker then delivers no newer event until it has fetched the missing events from rank 0, or knows
 * that they are lost.  For lost events all subscribers get event.lost.  If the queue of a subscriber did not take an
 * event, this subscriber gets event.lost before the next event.
 */
#ifndef BROKER_EVENT_H
#define BROKER_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/msg.h>

struct event;
struct peer;

struct event_ops {
    /* Offer the next event in sequence to the children.  event.c itself sends the event to the subscribers. */
    void (*forward) (void *arg, const idt_msg_t *msg);
    /* Ask rank 0 for the events from number 'from' on.  Pass rank 0's response to event_replay (). */
    void (*fetch) (void *arg, const char *stream, uint64_t from);
    /* Another stream begins.  Report event_stream () and event_seq () to the children before any event of the new
     * stream.
     */
    void (*announce) (void *arg);
    /* A subscriber took an event.  May be NULL. */
    void (*given) (void *arg, const struct peer *p, const idt_msg_t *msg);
};

#define EVENT_REPLAY_BYTES ((size_t)64 << 20)
#define EVENT_RING_COUNT 16384 /* events that ranks other than 0 keep for their children */
#define EVENT_RING_BYTES ((size_t)16 << 20)
#define EVENT_MAX_BYTES ((size_t)64 << 20)  /* bytes of one event */
#define EVENT_MAX_SUBSCRIPTIONS 4096        /* per peer; a client has one for each of its documents */
#define EVENT_FETCH_BYTES ((size_t)1 << 20) /* bytes of the events in one response to a fetch */

/* 'root' says whether this is rank 0.  Rank 0 names its stream 'uuid'; other ranks do not use 'uuid'.  The newest
 * 'ring_count' events are kept; 0 for a broker without children.  Returns NULL with errno ENOMEM.
 */
struct event *event_create (bool root, const char *uuid, size_t ring_count, const struct event_ops *ops, void *arg);
void event_destroy (struct event *ev);

/* At rank 0, before its first event: give the first event the number 'seq' + 1.  Only tests of high numbers call this:
 * a broker's first event has number 1.
 */
void event_start_after (struct event *ev, uint64_t seq);

/* event_subscribe (): subscribe a peer to topics that begin with 'prefix'.  The peer gets the events that 'user' may
 * see (libmsg/access.h). Returns 0, or -1 with errno
 *   ENOSPC  the peer has EVENT_MAX_SUBSCRIPTIONS, or the user has as many over all peers as QUOTA_SUBSCRIPTIONS allows
 *   EINVAL  'prefix' is longer than any topic
 *   ENOMEM
 * event_unsubscribe (): end a subscription.  Returns 0, or -1 with errno ENOENT.
 */
int event_subscribe (struct event *ev, struct peer *p, struct idt_cred user, const char *prefix);
int event_unsubscribe (struct event *ev, struct peer *p, struct idt_cred user, const char *prefix);
void event_forget (struct event *ev, struct peer *p); /* drop all subscriptions of the peer */

/* At rank 0: number and deliver an event (steals the reference).  Returns the number, or 0 with errno EMSGSIZE (more
 * than EVENT_MAX_BYTES) or ENOMEM.
 */
uint64_t event_publish_new (struct event *ev, idt_msg_t *msg);

/* At rank 0: encode the events from number 'from' on for event_replay (), until EVENT_FETCH_BYTES are reached.
 * 'stream' is the stream that the fetching broker follows.  The encoding is big-endian: u32 lower bits of the number of
 * the first available event, u32 lower bits of the newest number, then for each event u32 length and the encoded event.
 * The caller frees '*buf'.  Returns 0, or -1 with errno ENOENT (rank 0 has another stream) or ENOMEM.
 */
int event_window (struct event *ev, const char *stream, uint64_t from, void **buf, size_t *size);

/* At other ranks.  event_receive (): take an event from the parent.  event_newest (): take the number of the last event
 * that the parent has sent.  event_newest_low (): the same, with only the lower 32 bits of that number.
 * event_replay (): take rank 0's response to a fetch.  'buf' NULL means that the fetch failed; the next message from
 * the parent starts another one.
 */
void event_receive (struct event *ev, const idt_msg_t *msg);
void event_newest (struct event *ev, const char *stream, uint64_t seq);
void event_newest_low (struct event *ev, const char *stream, uint32_t seq);
void event_replay (struct event *ev, const void *buf, size_t size);

/* The number of the last event that this broker delivered, and the stream that it follows. */
uint64_t event_seq (const struct event *ev);
const char *event_stream (const struct event *ev); /* "" before the first stream */

/* Find the oldest kept event with a number above 'after', and store its number in '*seq'.  Returns the event
 * (borrowed), or NULL if no such event is kept.
 */
const idt_msg_t *event_after (const struct event *ev, uint64_t after, uint64_t *seq);

struct event_stats {
    uint64_t delivered;  /* events; each counts once, however many subscribers it has */
    uint64_t gaps;       /* fetches that were started because of a gap */
    uint64_t recovered;  /* events fetched after a gap */
    uint64_t lost;       /* events that were no longer available */
    uint64_t duplicates; /* events dropped because they had been delivered */
    size_t subscribers;  /* clients that are subscribed now */
};
struct event_stats event_stats (const struct event *ev);

#endif /* BROKER_EVENT_H */
