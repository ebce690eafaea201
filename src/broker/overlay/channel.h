/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* channel.h - one link to another broker, the same at both ends: queues, credit, parts of long messages; part of the
 * core
 *
 * A channel has no socket.  A message is put on the wire immediately if the other side has room for it.  Otherwise it
 * is queued by class: control messages are sent first, then responses, events, requests.  Requests and responses of
 * different requesters take turns.
 *
 * 1. Load never ends a link while the peer reads.  A request that does not fit is refused, and a response that does not
 *    fit becomes an error.
 * 2. The queues are limited in bytes or in number; channel_close () frees them.
 * 3. A message larger than CHANNEL_PART is sent in parts, so that control messages wait for little and no frame is
 *    large.
 * 4. The link is broken if its connection is closed, if the peer violates the protocol (it does not even read control
 *    messages, or CHANNEL_MAX_ERRORS errors), or without memory.  channel.broken has the reason.
 *
 * A peer that does not know credit gets whole messages, as many as its socket takes.
 */
#ifndef BROKER_CHANNEL_H
#define BROKER_CHANNEL_H

#include <idtree/msg.h>

#include "libutil/queue/drr_queue.h"
#include "libutil/queue/fifo.h"

#define CHANNEL_PART ((size_t)256 << 10)        /* bytes of a message in one frame */
#define CHANNEL_MAX_MESSAGE ((size_t)128 << 20) /* bytes of a message between brokers */
#define CHANNEL_MAX_ASKS 16384                  /* queued; of one requester, at most half */
#define CHANNEL_MAX_ASK_BYTES ((size_t)8 << 20)
#define CHANNEL_MAX_CONTROL 1024
#define CHANNEL_MAX_ERRORS 65536 /* queued in place of responses */
#define CHANNEL_OVERHEAD 256     /* bytes of memory per message beside its encoding */

/* In the order of sending.  Control messages need no credit. */
enum link_class { CLASS_CONTROL, CLASS_ANSWER, CLASS_EVENT, CLASS_ASK, CLASS_COUNT };

struct channel_ops {
    /* Put a message on the wire.  Returns 0, or -1 with errno set: EAGAIN means not now, others that the link is
     * closed.
     */
    int (*send) (void *arg, const idt_msg_t *msg);
    /* A complete request, response or event arrived (steals the reference), or a control message (borrowed). */
    void (*message) (void *arg, idt_msg_t *msg);
    void (*control) (void *arg, const idt_msg_t *msg);
    /* event () returns the next event for this link (borrowed), or NULL; event_sent () says that it was sent
     * completely. 'event' NULL: events are passed to channel_send () instead.
     */
    const idt_msg_t *(*event) (void *arg);
    void (*event_sent) (void *arg);
    /* The channel became broken.  Act on it later.  May be NULL. */
    void (*broken) (void *arg);
};

/* A message that is being sent or received, in parts if it is large.  Empty if 'msg' is NULL. */
struct piece {
    idt_msg_t *msg; /* to send: not to be changed; to receive: a buffer */
    size_t size;    /* of its encoding; or of the buffer */
    size_t done;    /* bytes sent or received */
};

/* Both ends of the credit of a link: how much may be on its way to a broker.
 *
 * Each class but control has totals of messages and of bytes, which begin at 0 with the link.  The receiver grants
 * totals up to which the other side may send, and grants more as it reads.  So the contents of ZeroMQ and of sockets
 * are limited, and a sender waits only for the other side's reactor.  Totals are absolute: repeating one has no effect.
 *
 * 1. A class is not sent while its total is at or over the granted one.  One message may pass the limit, so no message
 *    is too large for it.
 * 2. A side that sends while it is at or over its grant, or that lowers a grant, violates the protocol.
 *
 * A grant is, for each class, big-endian: u8 class, 3 bytes 0, u32 messages, u64 bytes.
 */
#define WINDOW_RECORD 16 /* bytes of a grant for one class */

struct total {
    uint32_t messages; /* may wrap: compared by difference */
    uint64_t bytes;
};

struct window {
    bool credits;                   /* the other side knows credit; otherwise nothing is limited */
    struct total size[CLASS_COUNT]; /* may be on its way to us */
    struct total sent[CLASS_COUNT];
    struct total limit[CLASS_COUNT]; /* limit of 'sent', granted to us */
    struct total received[CLASS_COUNT];
    struct total granted[CLASS_COUNT]; /* limit of 'received', granted by us */
};

struct channel_stats {
    size_t answers, events, asks; /* queued */
    size_t bytes;                 /* of all queued messages */
    uint64_t refused;             /* requests */
    uint64_t failed;              /* responses replaced by errors */
    uint64_t dropped;             /* events */
};

struct channel {
    const struct channel_ops *ops;
    void *arg;
    bool open;
    int version; /* of the other side */
    struct window window;
    uint64_t window_bytes;
    uint32_t window_messages;
    size_t max_queue;                     /* limit in bytes for responses, and for events */
    struct fifo fifo[CLASS_COUNT];        /* control, events */
    struct drr_queue *turns[CLASS_COUNT]; /* requests and responses: requesters take turns */
    size_t bytes[CLASS_COUNT];            /* queued or partly sent */
    size_t errors;                        /* among the responses */
    struct piece out[CLASS_COUNT];
    struct piece in[CLASS_COUNT];
    const idt_msg_t *last; /* to send after everything else */
    bool blocked;          /* the wire takes nothing now */
    bool holding;          /* received messages wait in 'held' */
    struct fifo held;
    const char *broken; /* reason why the link is broken, or NULL */
    struct channel_stats stats;
};

/* 'ops' is borrowed.  'window_bytes' and 'window_messages' size the window of each direction.  Returns 0, or -1 with
 * errno ENOMEM.
 */
int channel_init (struct channel *ch, const struct channel_ops *ops, void *arg, size_t max_queue, uint64_t window_bytes,
                  uint32_t window_messages);
void channel_fini (struct channel *ch);

/* The link is connected: reset the channel.  'version' is the other side's: from CHANNEL_CREDITS on it knows credit and
 * parts, from CHANNEL_WHOLE on it takes a message in one frame.
 */
#define CHANNEL_CREDITS 1
#define CHANNEL_WHOLE 2
#define CHANNEL_VERSION CHANNEL_WHOLE /* our version */
void channel_open (struct channel *ch, int version);

/* The link is closed: free all queued messages. */
void channel_close (struct channel *ch);

/* Send a message (with a reference of its own).  A response that does not fit is replaced by an error with ENOBUFS, or
 * EMSGSIZE, and this returns 0.  Returns 0, or -1 with errno set:
 *   EHOSTUNREACH  not open, or broken
 *   EXFULL        no room for a request; nothing of it was sent
 *   ENOBUFS       no room for an event
 *   EMSGSIZE      over CHANNEL_MAX_MESSAGE; not for a response
 *   ENOMEM
 */
int channel_send (struct channel *ch, const idt_msg_t *msg);

/* Send a control message after everything that is queued (steals the reference). */
void channel_send_last (struct channel *ch, idt_msg_t *msg);

/* A message arrived (steals the reference).  Returns 0, or -1 with errno EPROTO: the other side violated the protocol
 * or there was no memory, and the channel is broken.  Later messages are dropped.
 */
int channel_received (struct channel *ch, idt_msg_t *msg);

/* Hold received messages, except control messages, until channel_release (): they may be stale. */
void channel_hold (struct channel *ch);
void channel_release (struct channel *ch);

/* Break the link.  The first reason ('why', which must stay valid) is kept. */
void channel_break (struct channel *ch, const char *why);

/* There may be new events (channel_pump ()), or room on the wire (channel_retry ()): send what can be sent. */
void channel_pump (struct channel *ch);
void channel_retry (struct channel *ch);

/* Drop the queued events and the one that is partly sent, because another stream begins. */
void channel_forget_events (struct channel *ch);

/* Whether a request from the other side must be refused: more than a quarter of 'max_queue' is used by responses for
 * that side, and some of these are for the same requester.
 */
bool channel_is_slow (const struct channel *ch, const idt_msg_t *ask);

struct channel_stats channel_stats (const struct channel *ch);

#endif /* BROKER_CHANNEL_H */
