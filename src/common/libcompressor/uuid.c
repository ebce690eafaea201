/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uuid.c - UUIDs as numbers and as text, and the check for version 4
 *
 * The text form is 32 hex digits with hyphens after the 8th, 12th, 16th and 20th digit. Digits of both cases are
 * accepted; lower case is written. 16 digits are converted at a time.
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

/* Read 8 bytes of a UUID, from byte 'at' on, as a number. */
static uint64_t get_word (const struct idcomp_uuid *uuid, size_t at)
{
    uint64_t x;

    memcpy (&x, uuid->bytes + at, sizeof (x));
    return be64toh (x);
}

/* Make the UUID whose first and last 8 bytes are these numbers. */
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

/* A vector of 16 bytes, as a compiler extension, so that the compiler uses the best instructions of the processor. */
typedef unsigned char bytes16 __attribute__ ((vector_size (16)));
typedef signed char signed16 __attribute__ ((vector_size (16)));
typedef uint64_t words2 __attribute__ ((vector_size (16)));

/* Indexes for __builtin_shufflevector (). PAIRS: the bytes a0 b0 a1 b1 ... of vectors a and b, from their first halves
 * (PAIRS (0)) or their second halves (PAIRS (8)). EVERY_OTHER is the inverse: every other byte of two vectors.
 */
#define PAIRS(i) \
    i, i + 16, i + 1, i + 17, i + 2, i + 18, i + 3, i + 19, i + 4, i + 20, i + 5, i + 21, i + 6, i + 22, i + 7, i + 23
#define EVERY_OTHER(i)                                                                                             \
    i, i + 2, i + 4, i + 6, i + 8, i + 10, i + 12, i + 14, i + 16, i + 18, i + 20, i + 22, i + 24, i + 26, i + 28, \
        i + 30

/* The hex digits of 16 values below 16. The distance from '9' + 1 to 'a' is added to values above 9. */
static inline bytes16 hex_digits (bytes16 x)
{
    return x + '0' + ((bytes16)((signed16)x > 9) & ('a' - '9' - 1));
}

/* The values of 16 hex digits in either case. Each character that is not a digit sets its byte of '*bad'. */
static inline bytes16 hex_values (bytes16 c, bytes16 *bad)
{
    bytes16 number = c - '0';
    bytes16 letter = (c | 0x20) - 'a';
    bytes16 is_number = (bytes16)(number < 10);

    *bad |= ~(is_number | (bytes16)(letter < 6));
    return (number & is_number) | ((letter + 10) & ~is_number);
}

static bool hyphens_stand (const char *text)
{
    return text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-';
}

/* get8 () loads 8 bytes, get4_4 () two times 4 bytes, in memory order. They are loaded as the caller may have written
 * them, in parts: a processor stalls if a wider load reads them.
 */
static uint64_t get8 (const void *at)
{
    uint64_t x;

    memcpy (&x, at, sizeof (x));
    return x;
}

static uint64_t get4_4 (const char *text, const char *more)
{
    union {
        uint32_t half[2];
        uint64_t whole;
    } u;

    memcpy (&u.half[0], text, 4);
    memcpy (&u.half[1], more, 4);
    return u.whole;
}

/* Read 36 characters. Returns true if the hyphens are at their places and all other characters are hex digits in either
 * case; otherwise '*uuid' is undefined. Version and variant are not checked.
 */
static bool read_text (const char *text, struct idcomp_uuid *uuid)
{
    bytes16 bad = { 0 };
    bytes16 first = hex_values ((bytes16)(words2){ get8 (text), get4_4 (text + 9, text + 14) }, &bad);
    bytes16 second = hex_values ((bytes16)(words2){ get4_4 (text + 19, text + 24), get8 (text + 28) }, &bad);
    bytes16 bytes = __builtin_shufflevector (first, second, EVERY_OTHER (0)) << 4
                    | __builtin_shufflevector (first, second, EVERY_OTHER (1));
    words2 faults = (words2)bad;

    memcpy (uuid->bytes, &bytes, sizeof (bytes));
    return (faults[0] | faults[1]) == 0 && hyphens_stand (text);
}

int idcomp_uuid_format (const struct idcomp_uuid *uuid, char *text, size_t size)
{
    if (size < IDCOMP_UUID_TEXT_MAX)
        return errset (ENOSPC);

    bytes16 bytes = (bytes16)(words2){ get8 (uuid->bytes), get8 (uuid->bytes + 8) };
    bytes16 high = bytes >> 4;
    bytes16 low = bytes & 0x0f;
    bytes16 first = hex_digits (__builtin_shufflevector (high, low, PAIRS (0)));
    bytes16 second = hex_digits (__builtin_shufflevector (high, low, PAIRS (8)));

    /* Store each vector whole, so that one of its ends is in its place. The stores after them overwrite the rest. */
    memcpy (text, &first, 16);
    memcpy (text + 20, &second, 16);
    memcpy (text + 9, (char *)&first + 8, 4);
    memcpy (text + 14, (char *)&first + 12, 4);
    memcpy (text + 19, &second, 4);
    text[8] = text[13] = text[18] = text[23] = '-';
    text[IDCOMP_UUID_TEXT_LEN] = '\0';
    return IDCOMP_UUID_TEXT_LEN;
}

/* Whether 'c' may be character 'i' of the text of a version 4 UUID. */
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

/* Refuse a text that is not a UUID, and store the position of the error. */
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
