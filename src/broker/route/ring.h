/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ring.h - the last events by number; part of the core
 *
 * The events kept are limited in number and in bytes, with the memory overhead of each event included.  The newest
 * event is always kept.
 */
#ifndef BROKER_RING_H
#define BROKER_RING_H

#include <stddef.h>
#include <stdint.h>

#include <idtree/msg.h>

struct ring;

/* Create a ring of at most 'max_count' events (above 0) and 'max_bytes' bytes.  Returns NULL with errno ENOMEM. */
struct ring *ring_create (size_t max_count, size_t max_bytes);
void ring_destroy (struct ring *r);

/* Drop all events.  The next event that is put has number 'number' + 1. */
void ring_reset (struct ring *r, uint64_t number);

/* Put the next event.  The ring takes a reference of its own. */
void ring_put (struct ring *r, const idt_msg_t *msg);

/* The event with this number, borrowed.  NULL if it is not yet, or no longer, in the ring. */
const idt_msg_t *ring_get (const struct ring *r, uint64_t number);

/* The number of the oldest kept event, and of the newest event that was put.  In an empty ring oldest is newest + 1. */
uint64_t ring_oldest (const struct ring *r);
uint64_t ring_newest (const struct ring *r);

#endif /* BROKER_RING_H */
