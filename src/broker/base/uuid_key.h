/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uuid_key.h - the text of a random UUID, and a keyed 64-bit hash of it for tables: a peer that does not know the seed
 * cannot make UUIDs that collide
 */
#ifndef BROKER_UUID_KEY_H
#define BROKER_UUID_KEY_H

#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#define UUID_KEY_LEN 36 /* characters */

/* Make a UUID of version 4 (RFC 9562 5.4), in lower case. Returns 0, or -1 with errno of getrandom (). libuuid is not
 * used, because it makes a dozen system calls for each UUID. A process with thousands of brokers makes six UUIDs for
 * each broker before it serves.
 */
static inline int uuid_make (char text[UUID_KEY_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t bits[16];
    char *p = text;

    if (getrandom (bits, sizeof (bits), 0) != sizeof (bits))
        return -1;
    bits[6] = (bits[6] & 0x0f) | 0x40;
    bits[8] = (bits[8] & 0x3f) | 0x80;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *p++ = '-';
        *p++ = digits[bits[i] >> 4];
        *p++ = digits[bits[i] & 15];
    }
    *p = '\0';
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
