/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* window.h - both ends of a link's credit: how much may be on its way to a broker; a thinking part
 *
 * Each class of messages has totals, of messages and of bytes, that begin at 0 with the link.  The receiver grants
 * totals up to which the other may send, and grants more as it reads; so what lies in ZeroMQ and in sockets is bounded,
 * and nobody waits for anything but the other's reactor.  Totals are absolute: to say one again does no harm.
 *
 * 1. Nothing is sent of a class whose total is at or over what was granted: one message may pass the limit, so none is
 *    too large for it.
 * 2. Who sends at or over what was granted, or takes a grant back, breaks the rules: EPROTO.
 *
 * A grant is, for each class, big-endian: u8 class, 3 bytes 0, u32 messages, u64 bytes.
 */
#ifndef BROKER_WINDOW_H
#define BROKER_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order in which they are sent.  Control needs no credit. */
enum link_class { CLASS_CONTROL, CLASS_ANSWER, CLASS_EVENT, CLASS_ASK, CLASS_COUNT };

#define WINDOW_RECORD 16 /* bytes of a grant for one class */
#define WINDOW_GRANT_SIZE (WINDOW_RECORD * (CLASS_COUNT - 1))

struct total {
    uint32_t messages; /* may wrap: compared by difference */
    uint64_t bytes;
};

struct window {
    bool credits;                   /* the other side knows of them; else nothing is limited */
    struct total size[CLASS_COUNT]; /* that may be on its way to us */
    struct total sent[CLASS_COUNT];
    struct total limit[CLASS_COUNT]; /* of sent: granted to us */
    struct total received[CLASS_COUNT];
    struct total granted[CLASS_COUNT]; /* of received: by us */
};

/* Begin anew.  'bytes' and 'messages' may be on their way to us in all. */
void window_open (struct window *w, bool credits, uint64_t bytes, uint32_t messages);

bool window_may_send (const struct window *w, enum link_class c);
void window_sent (struct window *w, enum link_class c, size_t bytes);

/* Return 0, or -1 with errno EPROTO: rule 2. */
int window_received (struct window *w, enum link_class c, size_t bytes);
int window_granted (struct window *w, const void *payload, size_t size);

/* Grant anew where a quarter is used up.  Returns the size of the payload, 0: there is no news. */
size_t window_grant (struct window *w, uint8_t payload[WINDOW_GRANT_SIZE]);

#endif /* BROKER_WINDOW_H */
