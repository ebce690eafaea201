/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ring.c - the last events by number: base + 1 ... newest, event n in slot n % max_count */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "broker/route/ring.h"

#define OVERHEAD 320 /* bytes a kept message uses beside its encoding: struct, routes, allocator */

struct ring {
    size_t max_count;
    size_t max_bytes;
    size_t bytes;
    uint64_t base;
    uint64_t newest;
    const idt_msg_t *slots[];
};

struct ring *ring_create (size_t max_count, size_t max_bytes)
{
    struct ring *r = calloc (1, sizeof (*r) + max_count * sizeof (r->slots[0]));

    if (r) {
        r->max_count = max_count;
        r->max_bytes = max_bytes;
    }
    return r;
}

void ring_destroy (struct ring *r)
{
    if (r) {
        ring_reset (r, 0);
        free (r);
    }
}

static const idt_msg_t **slot_of (const struct ring *r, uint64_t number)
{
    return (const idt_msg_t **)&r->slots[number % r->max_count];
}

static void drop_oldest (struct ring *r)
{
    const idt_msg_t **slot = slot_of (r, ++r->base);

    r->bytes -= idt_msg_encode_size (*slot) + OVERHEAD;
    idt_msg_unref (*slot);
    *slot = NULL;
}

void ring_reset (struct ring *r, uint64_t number)
{
    while (r->base < r->newest)
        drop_oldest (r);
    r->base = r->newest = number;
}

void ring_put (struct ring *r, const idt_msg_t *msg)
{
    if (r->newest - r->base == r->max_count)
        drop_oldest (r);
    *slot_of (r, ++r->newest) = idt_msg_ref (msg);
    r->bytes += idt_msg_encode_size (msg) + OVERHEAD;
    while (r->bytes > r->max_bytes && r->base + 1 < r->newest)
        drop_oldest (r);
}

const idt_msg_t *ring_get (const struct ring *r, uint64_t number)
{
    return number > r->base && number <= r->newest ? *slot_of (r, number) : NULL;
}

uint64_t ring_oldest (const struct ring *r)
{
    return r->base + 1;
}

uint64_t ring_newest (const struct ring *r)
{
    return r->newest;
}
