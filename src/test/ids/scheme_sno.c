/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* scheme_sno.c - snos for the conformance suite */
#include <stdlib.h>

#include "idtree/sno.h"
#include "test/ids/scheme.h"

static int64_t now_ns (void *arg)
{
    struct scheme_clock *clock = arg;
    return atomic_load (&clock->now_ns);
}

static void *create (struct scheme_clock *clock)
{
    struct sno_gen *gen = sno_gen_create (
        &(struct sno_gen_config){ .start = { .partition = 77 }, .time = { .now_ns = now_ns, .arg = clock } });
    if (!gen)
        abort ();
    return gen;
}

static void destroy (void *gen)
{
    sno_gen_destroy (gen);
}

static int make (void *gen, uint8_t *id)
{
    return sno_gen_try (gen, 7, (sno_t *)id, NULL);
}

static void encode (const uint8_t *id, char *text)
{
    sno_format ((const sno_t *)id, text, SNO_TEXT_MAX);
}

static int decode (const char *text, size_t len, uint8_t *id)
{
    return sno_parse (text, len, (sno_t *)id, NULL);
}

const struct scheme scheme_sno = {
    .name = "sno",
    .size = SNO_SIZE,
    .step_ns = SNO_UNIT_NS,
    .begin_ns = SNO_EPOCH_NS,
    .end_ns = SNO_EPOCH_NS + (int64_t)(SNO_UNIT_MAX + 1) * SNO_UNIT_NS,
    .per_step = SNO_PER_UNIT,
    .ordered = true,
    .canonical = true,
    .create = create,
    .destroy = destroy,
    .make = make,
    .encode = encode,
    .decode = decode,
};
