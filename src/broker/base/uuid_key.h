/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uuid_key.h - the text of a UUID: made at random; its 64 bits for tables, and who does not know the seed cannot make many
 * that are alike
 */
#ifndef BROKER_UUID_KEY_H
#define BROKER_UUID_KEY_H

#include <czmq.h>
#include <stdint.h>
#include <string.h>

#define UUID_KEY_LEN 36 /* characters */

/* Returns 0, or -1 with errno ENOMEM. */
static inline int uuid_make (char text[UUID_KEY_LEN + 1])
{
    zuuid_t *uuid = zuuid_new ();

    if (!uuid)
        return -1;
    memcpy (text, zuuid_str_canonical (uuid), UUID_KEY_LEN + 1);
    zuuid_destroy (&uuid);
    return 0;
}

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
