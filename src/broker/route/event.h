/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* event.h - events in sequence, to who subscribed (protocol.md sections 3 and 6); a thinking part
 *
 * Rank 0 numbers events 1, 2, 3, ...; every broker hands them on in that order, each once, and keeps the last ones:
 * nothing is queued for a slow child, which has a place in them (event_after ()).  Numbers have 64 bits; a message
 * carries the lower 32, which tell the number near the last one.
 * A gap is seen by the next event or by a newest number that is told (hello, heartbeat); nothing newer is handed
 * on before the missing ones were fetched from rank 0, or are known to be lost: all subscribers get event.lost then.
 * One that does not take an event gets event.lost before the next that it takes.
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
    /* An event in its turn: the children may have it.  (Subscribers are served by this part.) */
    void (*forward) (void *arg, const idt_msg_t *msg);
    /* Ask rank 0 for the events from number 'from' on; event_replay () takes the answer. */
    void (*fetch) (void *arg, const char *stream, uint64_t from);
    /* Another stream begins: tell the children, before any event of it is given to them, what event_stream () and
     * event_seq () are.
     */
    void (*announce) (void *arg);
    /* A subscriber has taken an event.  NULL: nobody wants to know. */
    void (*given) (void *arg, const struct peer *p, const idt_msg_t *msg);
};

#define EVENT_REPLAY_COUNT 131072
#define EVENT_REPLAY_BYTES ((size_t)64 << 20)
#define EVENT_RING_COUNT 16384 /* that other brokers keep for their children */
#define EVENT_RING_BYTES ((size_t)16 << 20)
#define EVENT_MAX_BYTES ((size_t)64 << 20)  /* of one event */
#define EVENT_MAX_SUBSCRIPTIONS 4096        /* of one peer: a client has two for each of its documents */
#define EVENT_FETCH_BYTES ((size_t)1 << 20) /* of events in one answer to a fetch */

/* 'root': this is rank 0, whose stream is named 'uuid'.  So many events are kept; 0: none, it has no children.  NULL
 * with errno ENOMEM.
 */
struct event *event_create (bool root, const char *uuid, size_t ring_count, const struct event_ops *ops, void *arg);
void event_destroy (struct event *ev);

/* Rank 0, before its first event: that follows number 'seq'.  For tests of high numbers: brokers begin at 0. */
void event_start_after (struct event *ev, uint64_t seq);

/* Subscribe a peer to topics that begin with 'prefix', of which it gets what 'user' may see (libmsg/access.h).  Returns
 * 0, or -1 with errno ENOSPC (the peer has EVENT_MAX_SUBSCRIPTIONS, or the user as many as QUOTA_SUBSCRIPTIONS allows
 * over all peers), EINVAL (longer than any topic), ENOMEM.
 */
int event_subscribe (struct event *ev, struct peer *p, struct idt_cred user, const char *prefix);
int event_unsubscribe (struct event *ev, struct peer *p, struct idt_cred user, const char *prefix); /* -1, ENOENT */
void event_forget (struct event *ev, struct peer *p); /* drop all of its subscriptions */

/* Rank 0: number and publish (steals the reference).  Returns the number, or 0 with errno set (EMSGSIZE). */
uint64_t event_publish_new (struct event *ev, idt_msg_t *msg);

/* Rank 0: the events from number 'from' on, as many as EVENT_FETCH_BYTES hold, for event_replay (): u32 lower bits of
 * the first number that is there, u32 of the newest, then each event as u32 length and its bytes.  Big-endian.  The
 * caller frees '*buf'.  'stream' is what the asker follows.  Returns 0, or -1 with errno ENOENT (another stream),
 * ENOMEM.
 */
int event_window (struct event *ev, const char *stream, uint64_t from, void **buf, size_t *size);

/* Others: an event from the parent; what the parent said of its newest, the number or its lower bits; rank 0's answer
 * to a fetch (buf NULL: it failed; it is repeated when the parent speaks again).
 */
void event_receive (struct event *ev, const idt_msg_t *msg);
void event_newest (struct event *ev, const char *stream, uint64_t seq);
void event_newest_low (struct event *ev, const char *stream, uint32_t seq);
void event_replay (struct event *ev, const void *buf, size_t size);

/* What this broker handed on last. */
uint64_t event_seq (const struct event *ev);
const char *event_stream (const struct event *ev); /* "": none yet */

/* The oldest event that is kept here of those after number 'after', borrowed; its number goes to '*seq'.  NULL: none.
 */
const idt_msg_t *event_after (const struct event *ev, uint64_t after, uint64_t *seq);

struct event_stats {
    uint64_t delivered;  /* handed on, each event once */
    uint64_t gaps;       /* seen */
    uint64_t recovered;  /* events fetched after a gap */
    uint64_t lost;       /* events that could not be had any more */
    uint64_t duplicates; /* dropped */
    size_t subscribers;  /* clients among them, now */
};
struct event_stats event_stats (const struct event *ev);

#endif /* BROKER_EVENT_H */
