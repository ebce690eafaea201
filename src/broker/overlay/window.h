/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* window.h - both ends of a link's credit: how much may be on its way to a broker; part of the core
 *
 * Each class of messages has totals of messages and of bytes, which begin at 0 with the link.  The receiver grants
 * totals up to which the other side may send, and grants more as it reads.  So the contents of ZeroMQ and of sockets
 * are limited, and a sender waits only for the other side's reactor.  Totals are absolute: repeating one has no effect.
 *
 * 1. A class is not sent while its total is at or over the granted one.  One message may pass the limit, so no message
 *    is too large for it.
 * 2. A side that sends while it is at or over its grant, or that lowers a grant, violates the protocol: EPROTO.
 *
 * A grant is, for each class, big-endian: u8 class, 3 bytes 0, u32 messages, u64 bytes.
 */
#ifndef BROKER_WINDOW_H
#define BROKER_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order of sending.  Control messages need no credit. */
enum link_class { CLASS_CONTROL, CLASS_ANSWER, CLASS_EVENT, CLASS_ASK, CLASS_COUNT };

#define WINDOW_RECORD 16 /* bytes of a grant for one class */
#define WINDOW_GRANT_SIZE (WINDOW_RECORD * (CLASS_COUNT - 1))

struct total {
    uint32_t messages; /* may wrap: compared by difference */
    uint64_t bytes;
};

struct window {
    bool credits;                   /* the other side knows credit; otherwise nothing is limited */
    struct total size[CLASS_COUNT]; /* may be on its way to us */
    struct total sent[CLASS_COUNT];
    struct total limit[CLASS_COUNT]; /* of 'sent', granted to us */
    struct total received[CLASS_COUNT];
    struct total granted[CLASS_COUNT]; /* of 'received', granted by us */
};

/* Reset for a new link.  'bytes' and 'messages' limit what may be on its way to us in total. */
void window_open (struct window *w, bool credits, uint64_t bytes, uint32_t messages);

bool window_may_send (const struct window *w, enum link_class c);
void window_sent (struct window *w, enum link_class c, size_t bytes);

/* Return 0, or -1 with errno EPROTO: rule 2. */
int window_received (struct window *w, enum link_class c, size_t bytes);
int window_granted (struct window *w, const void *payload, size_t size);

/* Write grants for the classes of which a quarter of the window is used.  Returns the size of the payload; 0: no grant
 * is due.
 */
size_t window_grant (struct window *w, uint8_t payload[WINDOW_GRANT_SIZE]);

#endif /* BROKER_WINDOW_H */
