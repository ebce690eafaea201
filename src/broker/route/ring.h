/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ring.h - the last events, by their numbers; a thinking part
 *
 * Bounded in events and in bytes, what each costs beside its own bytes included; the newest is always there.
 */
#ifndef BROKER_RING_H
#define BROKER_RING_H

#include <stddef.h>
#include <stdint.h>

#include <idtree/msg.h>

struct ring;

/* Of at most 'max_count' events, above 0, and 'max_bytes'.  NULL with errno ENOMEM. */
struct ring *ring_create (size_t max_count, size_t max_bytes);
void ring_destroy (struct ring *r);

/* Empty it: 'number' + 1 is put next. */
void ring_reset (struct ring *r, uint64_t number);

/* Put the next one (reference of its own). */
void ring_put (struct ring *r, const idt_msg_t *msg);

/* Borrowed; NULL: not there, or not any more. */
const idt_msg_t *ring_get (const struct ring *r, uint64_t number);

/* The numbers of the oldest that is there, and of the newest that was put; empty: oldest is newest + 1. */
uint64_t ring_oldest (const struct ring *r);
uint64_t ring_newest (const struct ring *r);

#endif /* BROKER_RING_H */
