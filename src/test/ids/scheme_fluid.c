/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* scheme_fluid.c - FLUIDs for the conformance suite
 *
 * A FLUID generator may be used by one thread only, as in a broker; here threads take a lock. The epoch is the Unix
 * epoch. The text is the dotted hexadecimal form.
 */
#include <pthread.h>
#include <stdlib.h>

#include "idtree/fluid.h"
#include "test/ids/scheme.h"

struct broker {
    pthread_mutex_t lock;
    struct scheme_clock *clock;
    struct fluid_gen gen;
};

static void to_bytes (fluid_t id, uint8_t *bytes)
{
    for (int i = 8; i-- > 0; id >>= 8)
        bytes[i] = (uint8_t)id;
}

static fluid_t from_bytes (const uint8_t *bytes)
{
    fluid_t id = 0;
    for (int i = 0; i < 8; i++)
        id = id << 8 | bytes[i];
    return id;
}

static void *create (struct scheme_clock *clock)
{
    struct broker *broker = calloc (1, sizeof (*broker));

    if (!broker)
        abort ();
    pthread_mutex_init (&broker->lock, NULL);
    broker->clock = clock;
    fluid_gen_init (&broker->gen, &(struct fluid_gen_config){ .generator = 77, .hi_ms = FLUID_TIMESTAMP_MAX + 1 });
    return broker;
}

static void destroy (void *gen)
{
    struct broker *broker = gen;

    pthread_mutex_destroy (&broker->lock);
    free (broker);
}

static int make (void *gen, uint8_t *id)
{
    struct broker *broker = gen;
    fluid_t fluid;

    pthread_mutex_lock (&broker->lock);
    int64_t now_ns = atomic_load (&broker->clock->now_ns);
    int64_t now_ms = now_ns / 1000000 - (now_ns % 1000000 < 0);
    int n = fluid_gen_reserve (&broker->gen, (uint64_t)now_ms, 1, &fluid);
    pthread_mutex_unlock (&broker->lock);
    if (n != 1)
        return -1;
    to_bytes (fluid, id);
    return 0;
}

static void encode (const uint8_t *id, char *text)
{
    fluid_format (from_bytes (id), FLUID_DOTHEX, text, SCHEME_TEXT_MAX);
}

static int decode (const char *text, size_t len, uint8_t *id)
{
    fluid_t fluid;

    if (fluid_parse (text, len, &fluid, NULL) < 0)
        return -1;
    to_bytes (fluid, id);
    return 0;
}

const struct scheme scheme_fluid = {
    .name = "FLUID",
    .size = 8,
    .step_ns = 1000000,
    .begin_ns = 0,
    .end_ns = (int64_t)(FLUID_TIMESTAMP_MAX + 1) * 1000000,
    .per_step = FLUID_PER_MS,
    .ordered = true,
    .always_ordered = true,
    .canonical = false, /* ids have other forms, may have blanks around them, and letters of either case */
    .create = create,
    .destroy = destroy,
    .make = make,
    .encode = encode,
    .decode = decode,
};
