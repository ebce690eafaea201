/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uuid_key.h - 64 bits of a UUID's text, for tables; who does not know the seed cannot make many that are alike */
#ifndef BROKER_UUID_KEY_H
#define BROKER_UUID_KEY_H

#include <stdint.h>
#include <string.h>

#define UUID_KEY_LEN 36 /* characters */

static inline uint64_t uuid_key_mix (uint64_t h, uint64_t x)
{
    h = (h ^ x) * UINT64_C (0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

static inline uint64_t uuid_key (uint64_t seed, const char *uuid)
{
    uint64_t h = seed, x;

    for (int i = 0; i + 8 <= UUID_KEY_LEN; i += 8) {
        memcpy (&x, uuid + i, 8);
        h = uuid_key_mix (h, x);
    }
    memcpy (&x, uuid + UUID_KEY_LEN - 8, 8);
    return uuid_key_mix (h, x);
}

#endif /* BROKER_UUID_KEY_H */
