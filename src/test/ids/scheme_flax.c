/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* scheme_flax.c - flax ids, random and increasing, for the conformance suite */
#include <stdlib.h>
#include <string.h>

#include "idtree/flax.h"
#include "test/ids/scheme.h"

static int64_t now_ms (void *arg)
{
    struct scheme_clock *clock = arg;
    int64_t ns = atomic_load (&clock->now_ns);
    return ns / 1000000 - (ns % 1000000 < 0);
}

static void *create (enum flax_mode mode, struct scheme_clock *clock)
{
    struct flax_gen *gen = flax_gen_create (&(struct flax_gen_config){ .mode = mode, .time = { now_ms, clock } });
    if (!gen)
        abort ();
    return gen;
}

static void *create_random (struct scheme_clock *clock)
{
    return create (FLAX_RANDOM, clock);
}

static void *create_increasing (struct scheme_clock *clock)
{
    return create (FLAX_INCREASING, clock);
}

static void destroy (void *gen)
{
    flax_gen_destroy (gen);
}

static int make (void *gen, uint8_t *id)
{
    return flax_gen_make (gen, (flax_t *)id);
}

static void encode (const uint8_t *id, char *text)
{
    flax_format ((const flax_t *)id, text, FLAX_TEXT_MAX);
}

static int decode (const char *text, size_t len, uint8_t *id)
{
    return flax_parse (text, len, (flax_t *)id, NULL);
}

#define COMMON                                                                                             \
    .size = FLAX_SIZE, .step_ns = 1000000, .begin_ns = FLAX_EPOCH_MS * 1000000,                            \
    .end_ns = (FLAX_EPOCH_MS + (int64_t)FLAX_MS_MAX + 1) * 1000000, .canonical = true, .destroy = destroy, \
    .make = make, .encode = encode, .decode = decode

const struct scheme scheme_flax_random = {
    .name = "flax",
    .create = create_random,
    COMMON,
};

const struct scheme scheme_flax_increasing = {
    .name = "increasing flax",
    .ordered = true,
    .always_ordered = true,
    .create = create_increasing,
    COMMON,
};
