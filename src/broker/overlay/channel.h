/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* channel.h - one link to another broker, the same at both ends: queues, credit, parts of long messages; part of the
 * core
 *
 * A channel has no socket.  If the other side has room for a message, the message is put on the wire immediately.
 * Otherwise the message is queued by class: control messages are sent first, then responses, events, requests.
 * Requests of different requesters take turns, and so do responses.
 *
 * 1. Load never ends a link while the peer reads.  A request that does not fit is refused, and a response that does not
 *    fit is replaced by an error.
 * 2. The queues are limited in bytes or in number; channel_close () frees them.
 * 3. A message larger than CHANNEL_PART is sent in parts, so that control messages wait for a short time only and no
 *    frame is large.
 * 4. A channel becomes broken if its connection is closed, without memory, or if the peer violates the protocol.  It is
 *    also a violation if the peer does not even read control messages, or CHANNEL_MAX_ERRORS errors.  channel.broken
 *    has the reason.
 *
 * A peer that does not know credit gets whole messages, as many as its socket takes.
 */
#ifndef BROKER_CHANNEL_H
#define BROKER_CHANNEL_H

#include <idtree/msg.h>

#include "libutil/queue/drr_queue.h"
#include "libutil/queue/fifo.h"

#define CHANNEL_PART ((size_t)256 << 10)        /* largest number of bytes of a message in one frame */
#define CHANNEL_MAX_MESSAGE ((size_t)128 << 20) /* largest number of bytes of a message between brokers */
#define CHANNEL_MAX_ASKS 16384                  /* queued requests; one requester may have at most half of them */
#define CHANNEL_MAX_ASK_BYTES ((size_t)8 << 20)
#define CHANNEL_MAX_CONTROL 1024
#define CHANNEL_MAX_ERRORS 65536 /* queued errors that replace responses */
#define CHANNEL_OVERHEAD 256     /* bytes of memory for each message beside its encoding */

/* Classes in the order in which they are sent.  Control messages need no credit. */
enum link_class { CLASS_CONTROL, CLASS_ANSWER, CLASS_EVENT, CLASS_ASK, CLASS_COUNT };

struct channel_ops {
    /* Put a message on the wire.  Returns 0, or -1 with errno set.  EAGAIN means that the wire takes nothing now; any
     * other errno means that the link is closed.
     */
    int (*send) (void *arg, const idt_msg_t *msg);
    /* message (): a complete request, response or event has arrived (steals the reference).  control (): a control
     * message has arrived (borrowed).
     */
    void (*message) (void *arg, idt_msg_t *msg);
    void (*control) (void *arg, const idt_msg_t *msg);
    /* event (): returns the next event for this link (borrowed), or NULL.  event_sent (): this event was sent
     * completely. If 'event' is NULL, events are passed to channel_send () instead.
     */
    const idt_msg_t *(*event) (void *arg);
    void (*event_sent) (void *arg);
    /* The channel became broken.  The callback must not act on this immediately, but later.  May be NULL. */
    void (*broken) (void *arg);
};

/* A message that is being sent or received, in parts if it is large.  'msg' is NULL if there is no message. */
struct piece {
    idt_msg_t *msg; /* sending: the message, which must not be changed; receiving: a buffer */
    size_t size;    /* sending: bytes of the encoded message; receiving: bytes of the buffer */
    size_t done;    /* bytes that were sent or received */
};

/* Both directions of the credit of a link.  Credit limits how much may be on its way to a broker.
 *
 * Each class but control has two totals, of messages and of bytes, which begin at 0 with the link.  The receiver grants
 * totals up to which the other side may send, and grants more as it reads.  Credit so limits what is in the queues of
 * ZeroMQ and of sockets, and a sender waits only for the other side's reactor.  Totals are absolute, so repeating one
 * has no effect.
 *
 * 1. A class is not sent while one of its totals is at or over the granted one.  One message may exceed the limit, so
 *    no message is too large for it.
 * 2. A side violates the protocol if it sends while a total is at or over the granted one, or if it lowers a grant.
 *
 * For each class a grant has, big-endian: u8 class, 3 bytes 0, u32 messages, u64 bytes.
 */
#define WINDOW_RECORD 16 /* bytes of a grant for one class */

struct total {
    uint32_t messages; /* may wrap, so values are compared by their difference */
    uint64_t bytes;
};

struct window {
    bool credits;                   /* the other side knows credit; false: nothing is limited */
    struct total size[CLASS_COUNT]; /* how much may be on its way to us */
    struct total sent[CLASS_COUNT];
    struct total limit[CLASS_COUNT]; /* limit of 'sent', which the other side has granted */
    struct total received[CLASS_COUNT];
    struct total granted[CLASS_COUNT]; /* limit of 'received', which we have granted */
};

struct channel_stats {
    size_t answers, events, asks; /* numbers of queued messages */
    size_t bytes;                 /* bytes of all queued messages */
    uint64_t refused;             /* number of refused requests */
    uint64_t failed;              /* number of responses that errors replaced */
    uint64_t dropped;             /* number of dropped events */
};

struct channel {
    const struct channel_ops *ops;
    void *arg;
    bool open;
    int version; /* version of the link that the other side knows */
    struct window window;
    uint64_t window_bytes;
    uint32_t window_messages;
    size_t max_queue;                     /* largest number of bytes of queued responses, and of queued events */
    struct fifo fifo[CLASS_COUNT];        /* for control messages and events */
    struct drr_queue *turns[CLASS_COUNT]; /* for requests and for responses; requesters take turns */
    size_t bytes[CLASS_COUNT];            /* bytes that are queued or partly sent */
    size_t errors;                        /* number of errors among the queued responses */
    struct piece out[CLASS_COUNT];
    struct piece in[CLASS_COUNT];
    const idt_msg_t *last; /* control message to be sent after everything else */
    bool blocked;          /* the wire takes nothing now */
    bool holding;          /* received messages, except control messages, wait in 'held' */
    struct fifo held;
    const char *broken; /* why the link is broken; NULL: the link is not broken */
    struct channel_stats stats;
};

/* Initialize a channel.  'ops' is borrowed.  'window_bytes' and 'window_messages' are the size of the window of each
 * direction.  Returns 0, or -1 with errno ENOMEM.
 */
int channel_init (struct channel *ch, const struct channel_ops *ops, void *arg, size_t max_queue, uint64_t window_bytes,
                  uint32_t window_messages);
void channel_fini (struct channel *ch);

/* The link is connected: begin with empty queues.  'version' is the version of the other side: from CHANNEL_CREDITS on
 * the other side knows credit and parts, from CHANNEL_WHOLE on it takes a message in one frame.
 */
#define CHANNEL_CREDITS 1
#define CHANNEL_WHOLE 2
#define CHANNEL_VERSION CHANNEL_WHOLE /* our version */
void channel_open (struct channel *ch, int version);

/* The link is closed: free all queued messages. */
void channel_close (struct channel *ch);

/* Send a message (with a reference of its own).  A response that does not fit is replaced by an error with ENOBUFS or
 * EMSGSIZE, and the call returns 0.  Returns 0, or -1 with errno set:
 *   EHOSTUNREACH  the channel is not open, or is broken
 *   EXFULL        no room for a request; no part of it was sent
 *   ENOBUFS       no room for an event
 *   EMSGSIZE      larger than CHANNEL_MAX_MESSAGE; not for a response
 *   ENOMEM
 */
int channel_send (struct channel *ch, const idt_msg_t *msg);

/* Send a control message when everything that is queued was sent (steals the reference). */
void channel_send_last (struct channel *ch, idt_msg_t *msg);

/* A message has arrived (steals the reference).  Returns 0, or -1 with errno EPROTO: the other side violated the
 * protocol, or there was no memory.  The channel is then broken, and drops all later messages.
 */
int channel_received (struct channel *ch, idt_msg_t *msg);

/* channel_hold (): received messages, except control messages, may be stale, so keep them.  channel_release (): handle
 * the messages that were kept, and all later ones.
 */
void channel_hold (struct channel *ch);
void channel_release (struct channel *ch);

/* Break the link.  The first reason is kept; 'why' must stay valid. */
void channel_break (struct channel *ch, const char *why);

/* channel_pump (): there may be new events.  channel_retry (): there may be room on the wire.  Both send what can be
 * sent.
 */
void channel_pump (struct channel *ch);
void channel_retry (struct channel *ch);

/* Drop the queued events, and the event that is partly sent, because another stream begins. */
void channel_forget_events (struct channel *ch);

/* Whether a request from the other side must be refused, because the other side does not take its responses.  The other
 * side does not take them if responses for that side use more than a quarter of 'max_queue', and some of these are for
 * the requester of 'ask'.
 */
bool channel_is_slow (const struct channel *ch, const idt_msg_t *ask);

struct channel_stats channel_stats (const struct channel *ch);

#endif /* BROKER_CHANNEL_H */
