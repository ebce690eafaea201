/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flax_layout.h - an id as two numbers: bytes 0-4 are the time, bytes 5-11 the random part, both big endian */
#ifndef FLAX_LAYOUT_H
#define FLAX_LAYOUT_H

#include <assert.h>
#include <stdbool.h>

#include "idtree/flax.h"
#include "libutil/be.h"

/* As flax_ms_at (), but returns false instead of setting errno. */
static inline bool flax_ms_fits (int64_t unix_ms, uint64_t *ms)
{
    *ms = (uint64_t)unix_ms - (uint64_t)FLAX_EPOCH_MS;
    return *ms <= FLAX_MS_MAX;
}

/* Store fields that must be in range. */
static inline void flax_store (flax_t *id, const struct flax_fields *fields)
{
    assert (fields->ms <= FLAX_MS_MAX && fields->random <= FLAX_RANDOM_MAX);
    put_be (id->bytes, 8, fields->ms << 24 | fields->random >> 32);
    put_be (id->bytes + 8, 4, fields->random);
}

#endif /* FLAX_LAYOUT_H */
