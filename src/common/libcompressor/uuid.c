/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uuid.c - UUIDs as numbers and as text, and what makes a UUID one of version 4
 *
 * As text it is 32 hex digits with hyphens after the 8th, 12th, 16th and 20th; a text that is accepted is written back
 * as its lower case form.  Digits are converted 8 at a time, in words of 64 bits.
 */

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "libutil/errprintf.h"
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

/* The 8 bytes of a UUID from 'at' on as a number. */
static uint64_t get_word (const struct idcomp_uuid *uuid, size_t at)
{
    uint64_t x;

    memcpy (&x, uuid->bytes + at, sizeof (x));
    return be64toh (x);
}

/* The UUID whose first and last 8 bytes are these numbers. */
static struct idcomp_uuid join (uint64_t high, uint64_t low)
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

u128 uuidnum_from_uuid (const struct idcomp_uuid *uuid)
{
    uint64_t hi = get_word (uuid, 0);
    uint64_t lo = get_word (uuid, 8);

    return uuidnum_join ((hi & 0xfff) >> 2 | hi >> 16 << 10, (lo & LOW_62) | (hi & 3) << 62);
}

struct idcomp_uuid uuidnum_to_uuid (u128 num)
{
    uint64_t high = num >> 64;
    uint64_t low = num;
    uint64_t mid = low >> 62 | (high & 0x3ff) << 2;

    return join (high >> 10 << 16 | VERSION_4 | mid, (low & LOW_62) | VARIANT);
}

static int parse_lenient (const char *text, u128 *num)
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
    struct idcomp_uuid u = join (x >> 64, x);
    *num = uuidnum_from_uuid (&u);
    return 0;
error:
    return errset (IDCOMP_EBAD_UUID);
}

/* --- text --- */

/* The 8 hex digits of a word as 8 characters, first digit in the lowest byte: each nibble is moved
 * to a byte of its own, and those above 9 get the distance from '9' + 1 to 'a' added.
 */
static inline uint64_t hex8 (uint32_t word)
{
    uint64_t x = __builtin_bswap32 (word);

    x = (x << 16 | x) & UINT64_C (0x0000ffff0000ffff);
    x = (x << 8 | x) & UINT64_C (0x00ff00ff00ff00ff);
    x = (x >> 4 & UINT64_C (0x000f000f000f000f)) | (x & UINT64_C (0x000f000f000f000f)) << 8;
    uint64_t letters = (x + UINT64_C (0x0606060606060606)) >> 4 & UINT64_C (0x0101010101010101);
    return x + UINT64_C (0x3030303030303030) + letters * ('a' - '9' - 1);
}

/* The word of 8 hex digits in either case, taken back from its characters: the way of hex8 ()
 * backwards.  Characters that are no digits give a word whose digits are others, or lack the bits
 * that all digits have; then '*bad' is not 0 any more.
 */
static inline uint32_t unhex8 (uint64_t chars, uint64_t *bad)
{
    const uint64_t case_bits = UINT64_C (0x2020202020202020);
    uint64_t letters = chars >> 6 & UINT64_C (0x0101010101010101);
    uint64_t x = ((chars & UINT64_C (0x0f0f0f0f0f0f0f0f)) + letters * 9) & UINT64_C (0x0f0f0f0f0f0f0f0f);

    x = (x << 4 | x >> 8) & UINT64_C (0x00ff00ff00ff00ff);
    x = (x | x >> 8) & UINT64_C (0x0000ffff0000ffff);
    uint32_t word = __builtin_bswap32 ((x | x >> 16) & 0xffffffff);
    *bad |= hex8 (word) ^ (chars | case_bits);
    *bad |= ~(chars | chars >> 1) & case_bits;
    return word;
}

/* 8 characters, or 4 and 4 with something between, as a number with the first one in the lowest
 * byte.
 */
static uint64_t get8 (const char *text)
{
    uint64_t chars;

    memcpy (&chars, text, sizeof (chars));
    return le64toh (chars);
}

static uint64_t get4_4 (const char *text, const char *more)
{
    uint32_t low;
    uint32_t high;

    memcpy (&low, text, sizeof (low));
    memcpy (&high, more, sizeof (high));
    return (uint64_t)le32toh (high) << 32 | le32toh (low);
}

static void put_chars (char *text, uint64_t chars, size_t n)
{
    chars = htole64 (chars);
    memcpy (text, &chars, n);
}

static bool hyphens_stand (const char *text)
{
    return text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-';
}

/* Read 36 characters: true if hyphens are where they belong and all others are hex digits in either case, else
 * '*uuid' is undefined.  Version and variant are not looked at.
 */
static bool read_text (const char *text, struct idcomp_uuid *uuid)
{
    uint64_t bad = 0;
    uint64_t hi = unhex8 (get8 (text), &bad);
    hi = hi << 32 | unhex8 (get4_4 (text + 9, text + 14), &bad);
    uint64_t lo = unhex8 (get4_4 (text + 19, text + 24), &bad);
    lo = lo << 32 | unhex8 (get8 (text + 28), &bad);

    *uuid = join (hi, lo);
    return bad == 0 && hyphens_stand (text);
}

int idcomp_uuid_format (const struct idcomp_uuid *uuid, char *text, size_t size)
{
    if (size < IDCOMP_UUID_TEXT_MAX)
        return errset (ENOSPC);
    uint64_t hi = get_word (uuid, 0);
    uint64_t lo = get_word (uuid, 8);
    uint64_t mid = hex8 (hi & 0xffffffff);
    uint64_t variant = hex8 (lo >> 32);

    put_chars (text, hex8 (hi >> 32), 8);
    put_chars (text + 9, mid, 4);
    put_chars (text + 14, mid >> 32, 4);
    put_chars (text + 19, variant, 4);
    put_chars (text + 24, variant >> 32, 4);
    put_chars (text + 28, hex8 (lo & 0xffffffff), 8);
    text[8] = text[13] = text[18] = text[23] = '-';
    text[IDCOMP_UUID_TEXT_LEN] = '\0';
    return IDCOMP_UUID_TEXT_LEN;
}

/* True if 'c' may be character 'i' of the text of a UUID of version 4. */
static bool may_stand (size_t i, char c)
{
    switch (i) {
    case 8:
    case 13:
    case 18:
    case 23:
        return c == '-';
    case 14:
        return c == '4';
    case 19:
        return hex_value (c) >= 8 && hex_value (c) < 12;
    default:
        return hex_value (c) >= 0;
    }
}

/* Say what is wrong with a text that is none. */
__attribute__ ((noinline, cold)) static int refuse (const char *text, size_t len, size_t *errpos)
{
    size_t pos = 0;

    if (len != IDCOMP_UUID_TEXT_LEN)
        pos = len < IDCOMP_UUID_TEXT_LEN ? len : IDCOMP_UUID_TEXT_LEN;
    else
        while (pos < len && may_stand (pos, text[pos]))
            pos++;
    if (errpos)
        *errpos = pos;
    return errset (len == IDCOMP_UUID_TEXT_LEN ? EINVAL : EMSGSIZE);
}

int idcomp_uuid_parse (const char *text, size_t len, struct idcomp_uuid *uuid, size_t *errpos)
{
    struct idcomp_uuid u;

    if (len != IDCOMP_UUID_TEXT_LEN || !read_text (text, &u) || !uuid_is_v4 (&u))
        return refuse (text, len, errpos);
    *uuid = u;
    return 0;
}

int uuidnum_of_text (const char *text, bool lenient, u128 *num)
{
    struct idcomp_uuid uuid;

    if (lenient)
        return parse_lenient (text, num);
    if (idcomp_uuid_parse (text, strnlen (text, IDCOMP_UUID_TEXT_MAX), &uuid, NULL) < 0)
        return errset (IDCOMP_EBAD_UUID);
    *num = uuidnum_from_uuid (&uuid);
    return 0;
}

bool idcomp_is_stable_id (const char *text)
{
    u128 num;
    int saved = errno;
    bool is_uuid = uuidnum_of_text (text, false, &num) == 0;

    errno = saved;
    return is_uuid && text[19] != 'A' && text[19] != 'B';
}
