/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* channel.h - one link to another broker, the same at both ends: what waits for it, its credit, its parts
 *
 * A thinking part: it has no socket.  What is sent is put on the wire at once where the other side has room for it,
 * else it waits here, by classes: control goes first, then answers, events, asks; asks by turns over those who ask.
 *
 * 1. Load never ends a link.  An ask that finds no room is refused; an answer too large for what is left becomes an
 *    error; both are told by whom it is not taken.
 * 2. All that waits is bounded in bytes, and freed by channel_close ().
 * 3. A message over CHANNEL_PART goes in parts, so that control waits for little, and no frame is large.
 * 4. The link is broken only by a peer that breaks the rules, or for want of memory: channel.broken tells why.
 *
 * A peer that does not know of credit gets whole messages, as many as its socket takes.
 */
#ifndef BROKER_CHANNEL_H
#define BROKER_CHANNEL_H

#include <idtree/msg.h>

#include "broker/overlay/window.h"
#include "libutil/queue/fifo.h"
#include "libutil/queue/drr_queue.h"

#define CHANNEL_PART ((size_t)256 << 10)        /* bytes of a message that go in one frame */
#define CHANNEL_MAX_MESSAGE ((size_t)128 << 20) /* bytes of a message between brokers */
#define CHANNEL_MAX_ASKS 16384                  /* that wait: of one asker, half */
#define CHANNEL_MAX_ASK_BYTES ((size_t)8 << 20)
#define CHANNEL_MAX_CONTROL 1024
#define CHANNEL_MAX_ERRORS 65536 /* that wait in the place of answers */
#define CHANNEL_OVERHEAD 256     /* bytes that a message costs beside its own */

struct channel_ops {
    /* Put a message on the wire.  Returns 0, or -1 with errno set: EAGAIN (not now), or the link is gone. */
    int (*send) (void *arg, const idt_msg_t *msg);
    /* A request, response or event came, whole (steals the reference), or a control message (borrowed). */
    void (*message) (void *arg, idt_msg_t *msg);
    void (*control) (void *arg, const idt_msg_t *msg);
    /* The next event for this link, borrowed, NULL: none; it was sent whole.  NULL: events are given to
     * channel_send ().
     */
    const idt_msg_t *(*event) (void *arg);
    void (*event_sent) (void *arg);
};

/* A message on its way, in parts if it is large.  NULL: none. */
struct piece {
    idt_msg_t *msg; /* that goes, and is not to be changed; or that comes: no message yet, but its bytes */
    size_t size;    /* of its encoding; or for which there is room */
    size_t done;    /* bytes of it that went, or came */
    size_t cost;    /* as it was counted */
};

struct channel_stats {
    size_t answers, events, asks; /* that wait */
    size_t bytes;                 /* of all of them */
    uint64_t refused;             /* asks */
    uint64_t failed;              /* answers that became errors */
    uint64_t dropped;             /* events */
};

struct channel {
    const struct channel_ops *ops;
    void *arg;
    bool open;
    int version; /* that the other side knows */
    struct window window;
    uint64_t window_bytes;
    uint32_t window_messages;
    size_t max_queue;                     /* bytes of answers that may wait, and of events */
    struct fifo fifo[CLASS_COUNT];        /* control, events */
    struct drr_queue *turns[CLASS_COUNT]; /* asks; answers, too: nobody waits behind all that another one wants */
    size_t bytes[CLASS_COUNT];            /* that wait, or are half sent */
    size_t errors;                        /* among the answers */
    struct piece out[CLASS_COUNT];
    struct piece in[CLASS_COUNT];
    const idt_msg_t *last; /* goes behind all else */
    bool blocked;          /* the wire takes nothing now */
    bool holding;          /* what comes waits in 'held' */
    struct fifo held;
    const char *broken; /* why it is; NULL: it is not */
    struct channel_stats stats;
};

/* 'ops' is borrowed.  Both directions get windows of so much.  Returns 0, or -1 with errno ENOMEM. */
int channel_init (struct channel *ch, const struct channel_ops *ops, void *arg, size_t max_queue, uint64_t window_bytes,
                  uint32_t window_messages);
void channel_fini (struct channel *ch);

/* The link is there: begin anew.  'version' of the other side: CHANNEL_CREDITS or more knows of credit and parts,
 * CHANNEL_WHOLE or more takes a message in one frame.
 */
#define CHANNEL_CREDITS 1
#define CHANNEL_WHOLE 2
#define CHANNEL_VERSION CHANNEL_WHOLE /* ours */
void channel_open (struct channel *ch, int version);

bool channel_takes_whole (const struct channel *ch);

/* The link is gone: free all that waits. */
void channel_close (struct channel *ch);

/* Send (reference of its own).  Returns 0, or -1 with errno set:
 *   EHOSTUNREACH  not open, or broken
 *   EXFULL        an ask that finds no room: it was not begun
 *   ENOBUFS       an event that finds none
 *   EMSGSIZE      over CHANNEL_MAX_MESSAGE
 */
int channel_send (struct channel *ch, const idt_msg_t *msg);

/* Send control behind all that waits (steals the reference). */
void channel_send_last (struct channel *ch, idt_msg_t *msg);

/* A message came (steals the reference).  Returns 0, or -1 with errno EPROTO: the other side breaks the rules, or there
 * was no memory, and the channel is broken.  Then nothing more is taken.
 */
int channel_received (struct channel *ch, idt_msg_t *msg);

/* Take in what comes, but for control, only after channel_release (): it may be stale. */
void channel_hold (struct channel *ch);
void channel_release (struct channel *ch);

/* The link is broken; the first reason (borrowed for ever) stays. */
void channel_break (struct channel *ch, const char *why);

/* There may be new events, or room on the wire: send what can be sent. */
void channel_pump (struct channel *ch);
void channel_retry (struct channel *ch);

/* Forget the event that is half sent, and those that wait: another stream begins. */
void channel_forget_events (struct channel *ch);

/* Whether so many answers wait for the other side that an ask from there is to be refused: its asker has some of them.
 */
bool channel_is_slow (const struct channel *ch, const idt_msg_t *ask);

struct channel_stats channel_stats (const struct channel *ch);

#endif /* BROKER_CHANNEL_H */
