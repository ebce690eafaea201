/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* event.h - deliver events in sequence to their subscribers (protocol.md sections 3 and 6); part of the core
 *
 * Rank 0 numbers events 1, 2, 3, ....  Every broker delivers them in this order, each once; rank 0 and brokers with
 * children keep the last ones.
 * Nothing is queued for a slow child: its position in the kept events is enough (event_after ()).  Numbers have 64
 * bits. A message carries the lower 32 bits; the receiver takes the number nearest to its last one. A broker detects a
 * gap by the next event, or by the newest number in a hello or heartbeat.  It delivers nothing newer until it has
 * fetched the missing events from rank 0 or knows that they are lost.  All subscribers get event.lost for lost events.
 * A subscriber whose queue did not take an event gets event.lost before the next event that it takes.
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
    /* Offer the next event in sequence to the children.  (event.c sends it to the subscribers itself.) */
    void (*forward) (void *arg, const idt_msg_t *msg);
    /* Ask rank 0 for the events from number 'from' on.  Pass the response to event_replay (). */
    void (*fetch) (void *arg, const char *stream, uint64_t from);
    /* Another stream begins.  Report event_stream () and event_seq () to the children before any event of it. */
    void (*announce) (void *arg);
    /* A subscriber took an event.  May be NULL. */
    void (*given) (void *arg, const struct peer *p, const idt_msg_t *msg);
};

#define EVENT_REPLAY_BYTES ((size_t)64 << 20)
#define EVENT_RING_COUNT 16384 /* events that ranks other than 0 keep for their children */
#define EVENT_RING_BYTES ((size_t)16 << 20)
#define EVENT_MAX_BYTES ((size_t)64 << 20)  /* of one event */
#define EVENT_MAX_SUBSCRIPTIONS 4096        /* per peer; a client has one for each of its documents */
#define EVENT_FETCH_BYTES ((size_t)1 << 20) /* of events in one response to a fetch */

/* 'root' says whether this is rank 0; its stream is named 'uuid'.  'ring_count' events are kept; 0 for a broker without
 * children.  Returns NULL with errno ENOMEM.
 */
struct event *event_create (bool root, const char *uuid, size_t ring_count, const struct event_ops *ops, void *arg);
void event_destroy (struct event *ev);

/* At rank 0, before its first event: let the first event have number 'seq' + 1.  For tests of high numbers; brokers
 * begin at 1.
 */
void event_start_after (struct event *ev, uint64_t seq);

/* Subscribe a peer to topics that begin with 'prefix'.  The peer gets the events that 'user' may see (libmsg/access.h).
 * Returns 0, or -1 with errno
 *   ENOSPC  the peer has EVENT_MAX_SUBSCRIPTIONS, or the user has as many over all peers as QUOTA_SUBSCRIPTIONS allows
 *   EINVAL  'prefix' is longer than any topic
 *   ENOMEM
 */
int event_subscribe (struct event *ev, struct peer *p, struct idt_cred user, const char *prefix);
int event_unsubscribe (struct event *ev, struct peer *p, struct idt_cred user, const char *prefix); /* or -1, ENOENT */
void event_forget (struct event *ev, struct peer *p); /* drop all of its subscriptions */

/* At rank 0: number and deliver an event (steals the reference).  Returns the number, or 0 with errno EMSGSIZE (more
 * than EVENT_MAX_BYTES) or ENOMEM.
 */
uint64_t event_publish_new (struct event *ev, idt_msg_t *msg);

/* At rank 0: encode the events from number 'from' on for event_replay (), until EVENT_FETCH_BYTES are reached.
 * 'stream' is the stream that the fetching broker follows.  The encoding is big-endian: u32 lower bits of the first
 * number that is available, u32 lower bits of the newest number, then for each event its u32 length and its bytes.  The
 * caller frees '*buf'.  Returns 0, or -1 with errno ENOENT (rank 0 has another stream) or ENOMEM.
 */
int event_window (struct event *ev, const char *stream, uint64_t from, void **buf, size_t *size);

/* At other ranks: take an event from the parent; the number of the last event that the parent has sent, or its lower 32
 * bits; rank 0's response to a fetch.  'buf' NULL means that the fetch failed; it is repeated after the next message
 * from the parent.
 */
void event_receive (struct event *ev, const idt_msg_t *msg);
void event_newest (struct event *ev, const char *stream, uint64_t seq);
void event_newest_low (struct event *ev, const char *stream, uint32_t seq);
void event_replay (struct event *ev, const void *buf, size_t size);

/* The last event that this broker delivered, and its stream. */
uint64_t event_seq (const struct event *ev);
const char *event_stream (const struct event *ev); /* "" before the first stream */

/* The oldest kept event with a number above 'after' (borrowed).  Its number goes to '*seq'.  NULL if no such event is
 * kept.
 */
const idt_msg_t *event_after (const struct event *ev, uint64_t after, uint64_t *seq);

struct event_stats {
    uint64_t delivered;  /* each event once */
    uint64_t gaps;       /* gaps detected */
    uint64_t recovered;  /* events fetched after a gap */
    uint64_t lost;       /* events that were no longer available */
    uint64_t duplicates; /* events dropped because they had been delivered */
    size_t subscribers;  /* clients that are subscribed now */
};
struct event_stats event_stats (const struct event *ev);

#endif /* BROKER_EVENT_H */
