/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uuid.c - UUIDs as text and as numbers; a text that is accepted is written back as its lower case form */

#include <errno.h>
#include <string.h>

#include "uuid.h"

#define VERSION_4 UINT64_C (0x4000)
#define VARIANT UINT64_C (0x8000000000000000)
#define LOW_62 UINT64_C (0x3fffffffffffffff)

static const unsigned char hyphens[] = {8, 13, 18, 23};

/* The value of a hex digit, or -1. */
static int hex_value (char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static uint64_t load_be64 (const unsigned char *p)
{
    uint64_t x = 0;

    for (int i = 0; i < 8; i++)
        x = x << 8 | p[i];
    return x;
}

static void store_be64 (unsigned char *p, uint64_t x)
{
    for (int i = 7; i >= 0; i--, x >>= 8)
        p[i] = x & 0xff;
}

/* The 8 hex digits of a word as 8 characters, first digit in the lowest byte: each nibble is moved to a byte
 * of its own, and those above 9 get the distance from '9' + 1 to 'a' added.
 */
static uint64_t hex8 (uint32_t word)
{
    uint64_t x = __builtin_bswap32 (word);

    x = (x << 16 | x) & UINT64_C (0x0000ffff0000ffff);
    x = (x << 8 | x) & UINT64_C (0x00ff00ff00ff00ff);
    x = (x >> 4 & UINT64_C (0x000f000f000f000f)) | (x & UINT64_C (0x000f000f000f000f)) << 8;
    uint64_t letters = (x + UINT64_C (0x0606060606060606)) >> 4 & UINT64_C (0x0101010101010101);
    return x + UINT64_C (0x3030303030303030) + letters * ('a' - '9' - 1);
}

static void put (char *text, uint64_t chars, int n)
{
    for (int i = 0; i < n; i++, chars >>= 8)
        text[i] = chars & 0xff;
}

bool uuid_is_v4 (const struct idcomp_uuid *uuid)
{
    return uuid->bytes[6] >> 4 == 4 && uuid->bytes[8] >> 6 == 2;
}

int idcomp_uuid_parse (const char *text, struct idcomp_uuid *uuid)
{
    struct idcomp_uuid u;
    const char *p = text;
    int bad = 0; /* negative once a digit is none: looked at once, at the end */

    if (strnlen (text, IDCOMP_UUID_TEXT) != IDCOMP_UUID_TEXT - 1)
        goto error;
    for (size_t i = 0; i < sizeof (hyphens); i++)
        if (text[hyphens[i]] != '-')
            goto error;
    for (int i = 0; i < 16; i++, p += 2) {
        p += i == 4 || i == 6 || i == 8 || i == 10;
        int high = hex_value (p[0]);
        int low = hex_value (p[1]);
        bad |= high | low;
        u.bytes[i] = high << 4 | low;
    }
    if (bad < 0 || !uuid_is_v4 (&u))
        goto error;
    *uuid = u;
    return 0;
error:
    errno = IDCOMP_EBAD_UUID;
    return -1;
}

void idcomp_uuid_format (const struct idcomp_uuid *uuid, char text[IDCOMP_UUID_TEXT])
{
    uint64_t hi = load_be64 (uuid->bytes);
    uint64_t lo = load_be64 (uuid->bytes + 8);
    uint64_t b = hex8 (hi & 0xffffffff);
    uint64_t c = hex8 (lo >> 32);

    put (text, hex8 (hi >> 32), 8);
    put (text + 9, b, 4);
    put (text + 14, b >> 32, 4);
    put (text + 19, c, 4);
    put (text + 24, c >> 32, 4);
    put (text + 28, hex8 (lo & 0xffffffff), 8);
    for (size_t i = 0; i < sizeof (hyphens); i++)
        text[hyphens[i]] = '-';
    text[IDCOMP_UUID_TEXT - 1] = '\0';
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
    uint64_t hi = load_be64 (uuid->bytes);
    uint64_t lo = load_be64 (uuid->bytes + 8);

    return uuidnum_join ((hi & 0xfff) >> 2 | hi >> 16 << 10, (lo & LOW_62) | (hi & 3) << 62);
}

struct idcomp_uuid uuidnum_to_uuid (u128 num)
{
    struct idcomp_uuid u;
    uint64_t high = num >> 64;
    uint64_t low = num;
    uint64_t mid = low >> 62 | (high & 0x3ff) << 2;

    store_be64 (u.bytes, high >> 10 << 16 | VERSION_4 | mid);
    store_be64 (u.bytes + 8, (low & LOW_62) | VARIANT);
    return u;
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
    struct idcomp_uuid u;
    store_be64 (u.bytes, x >> 64);
    store_be64 (u.bytes + 8, x);
    *num = uuidnum_from_uuid (&u);
    return 0;
error:
    errno = IDCOMP_EBAD_UUID;
    return -1;
}
