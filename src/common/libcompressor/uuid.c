/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uuid.c - UUIDs as numbers, and what makes a UUID one of version 4 */

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "uuid.h"

#define VERSION_4 UINT64_C (0x4000)
#define VARIANT UINT64_C (0x8000000000000000)
#define LOW_62 UINT64_C (0x3fffffffffffffff)

/* The value of a hex digit, or -1. */
static int hex_value (char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

uint64_t uuid_high (const struct idcomp_uuid *uuid)
{
    uint64_t x;

    memcpy (&x, uuid->bytes, sizeof (x));
    return be64toh (x);
}

uint64_t uuid_low (const struct idcomp_uuid *uuid)
{
    uint64_t x;

    memcpy (&x, uuid->bytes + 8, sizeof (x));
    return be64toh (x);
}

struct idcomp_uuid uuid_join (uint64_t high, uint64_t low)
{
    struct idcomp_uuid u;

    high = htobe64 (high);
    low = htobe64 (low);
    memcpy (u.bytes, &high, sizeof (high));
    memcpy (u.bytes + 8, &low, sizeof (low));
    return u;
}

bool uuid_is_v4 (const struct idcomp_uuid *uuid)
{
    return uuid->bytes[6] >> 4 == 4 && uuid->bytes[8] >> 6 == 2;
}

struct idcomp_uuid idcomp_uuid_random (const unsigned char random[16])
{
    struct idcomp_uuid u;

    memcpy (u.bytes, random, sizeof (u.bytes));
    u.bytes[6] = (u.bytes[6] & 0x0f) | 0x40;
    u.bytes[8] = (u.bytes[8] & 0x3f) | 0x80;
    return u;
}

bool idcomp_is_stable_id (const char *text)
{
    struct idcomp_uuid u;
    int saved = errno;
    bool is_uuid = idcomp_uuid_parse (text, &u) == 0;

    errno = saved;
    return is_uuid && text[19] != 'A' && text[19] != 'B';
}

u128 uuidnum_from_uuid (const struct idcomp_uuid *uuid)
{
    uint64_t hi = uuid_high (uuid);
    uint64_t lo = uuid_low (uuid);

    return uuidnum_join ((hi & 0xfff) >> 2 | hi >> 16 << 10, (lo & LOW_62) | (hi & 3) << 62);
}

struct idcomp_uuid uuidnum_to_uuid (u128 num)
{
    uint64_t high = num >> 64;
    uint64_t low = num;
    uint64_t mid = low >> 62 | (high & 0x3ff) << 2;

    return uuid_join (high >> 10 << 16 | VERSION_4 | mid, (low & LOW_62) | VARIANT);
}

int uuidnum_parse_lenient (const char *text, u128 *num)
{
    u128 x = 0;
    int digits = 0;

    for (; *text; text++) {
        if (*text == '-')
            continue;
        int digit = hex_value (*text);
        if (digit < 0 || ++digits > 32)
            goto error;
        x = x << 4 | (unsigned int)digit;
    }
    if (digits == 0)
        goto error;
    struct idcomp_uuid u = uuid_join (x >> 64, x);
    *num = uuidnum_from_uuid (&u);
    return 0;
error:
    errno = IDCOMP_EBAD_UUID;
    return -1;
}
