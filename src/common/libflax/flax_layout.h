/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flax_layout.h - an id as two numbers: bytes 0-4 are the time, bytes 5-11 the random part, both
 * big endian
 */
#ifndef FLAX_LAYOUT_H
#define FLAX_LAYOUT_H

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#include "idtree/flax.h"

/* The upper 64 and the lower 32 bits: how an id is loaded and stored whole. */
struct flax_halves {
    uint64_t upper;
    uint32_t lower;
};

static inline struct flax_halves flax_load (const flax_t *id)
{
    struct flax_halves h;

    memcpy (&h.upper, id->bytes, 8);
    memcpy (&h.lower, id->bytes + 8, 4);
    return (struct flax_halves){ be64toh (h.upper), be32toh (h.lower) };
}

static inline void flax_store (flax_t *id, struct flax_halves h)
{
    h = (struct flax_halves){ htobe64 (h.upper), htobe32 (h.lower) };
    memcpy (id->bytes, &h.upper, 8);
    memcpy (id->bytes + 8, &h.lower, 4);
}

/* flax_ms_at but for errno. */
static inline bool flax_ms_fits (int64_t unix_ms, uint64_t *ms)
{
    *ms = (uint64_t)unix_ms - (uint64_t)FLAX_EPOCH_MS;
    return *ms <= FLAX_MS_MAX;
}

/* Fields that are known to be in range. */
static inline struct flax_halves flax_pack (const struct flax_fields *fields)
{
    return (struct flax_halves){ fields->ms << 24 | fields->random >> 32, (uint32_t)fields->random };
}

#endif /* FLAX_LAYOUT_H */
