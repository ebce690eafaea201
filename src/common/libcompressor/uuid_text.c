/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uuid_text.c - UUIDs as text: 32 hex digits with hyphens after the 8th, 12th, 16th and 20th
 *
 * A text that is accepted is written back as its lower case form.  There are a form on words of 64
 * bits, 8 digits at a time, and one on vectors; both must agree on every input.
 */

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "libutil/ssse3.h"
#include "uuid.h"
#include "uuid_text.h"

static bool hyphens_stand (const char *text)
{
    return text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-';
}

/* --- words --- */

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
    uint64_t x =
        ((chars & UINT64_C (0x0f0f0f0f0f0f0f0f)) + letters * 9) & UINT64_C (0x0f0f0f0f0f0f0f0f);

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

static bool read_words (const char *text, struct idcomp_uuid *uuid)
{
    uint64_t bad = 0;
    uint64_t hi = unhex8 (get8 (text), &bad);
    hi = hi << 32 | unhex8 (get4_4 (text + 9, text + 14), &bad);
    uint64_t lo = unhex8 (get4_4 (text + 19, text + 24), &bad);
    lo = lo << 32 | unhex8 (get8 (text + 28), &bad);

    *uuid = uuid_join (hi, lo);
    return bad == 0 && hyphens_stand (text);
}

static void write_words (const struct idcomp_uuid *uuid, char text[IDCOMP_UUID_TEXT])
{
    uint64_t hi = uuid_high (uuid);
    uint64_t lo = uuid_low (uuid);
    uint64_t mid = hex8 (hi & 0xffffffff);
    uint64_t variant = hex8 (lo >> 32);

    put_chars (text, hex8 (hi >> 32), 8);
    put_chars (text + 9, mid, 4);
    put_chars (text + 14, mid >> 32, 4);
    put_chars (text + 19, variant, 4);
    put_chars (text + 24, variant >> 32, 4);
    put_chars (text + 28, hex8 (lo & 0xffffffff), 8);
    text[8] = text[13] = text[18] = text[23] = '-';
    text[IDCOMP_UUID_TEXT - 1] = '\0';
}

/* --- vectors --- */

#ifdef SSSE3_POSSIBLE

#define WITH_SSSE3 __attribute__ ((target ("ssse3")))

/* What moves bytes lists for each the place it comes from, -1 for none. */
struct constants {
    /* writing */
    int8_t nibble[16];
    int8_t digits[16];
    int8_t head[16], head_hyphens[16]; /* characters 0-15 from digits 0-15 */
    int8_t tail[16], tail_hyphens[16]; /* characters 16-31 from digits 14-29 */
    /* reading */
    int8_t from_head[16], from_middle[16]; /* digits 0-15 from characters 0-15 and 14-29 */
    int8_t from_tail[16], from_end[16];    /* digits 16-31 from characters 19-34 and 20-35 */
    int8_t last_digit[16], case_bit[16], zero[16], to_letter[16], to_top[16], gap[16];
    int8_t join[16]; /* two nibbles to a byte: * 16, + */
} SSSE3_ALIGNED;

SSSE3_CONSTANTS struct constants constants = {
    .nibble = SSSE3_ALL (15),
    .digits = {'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'},
    .head = {0, 1, 2, 3, 4, 5, 6, 7, -1, 8, 9, 10, 11, -1, 12, 13},
    .head_hyphens = {[8] = '-', [13] = '-'},
    .tail = {0, 1, -1, 2, 3, 4, 5, -1, 6, 7, 8, 9, 10, 11, 12, 13},
    .tail_hyphens = {[2] = '-', [7] = '-'},
    .from_head = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 14, 15, -1, -1},
    .from_middle = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 2, 3},
    .from_tail = {0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, -1},
    .from_end = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 15},
    .last_digit = SSSE3_ALL ('9'),
    .case_bit = SSSE3_ALL ('a' - 'A'),
    .zero = SSSE3_ALL ('0'),
    .to_letter = SSSE3_ALL ('a' - '0'),
    .to_top = SSSE3_ALL (INT8_MAX - 15),
    .gap = SSSE3_ALL ('a' - '0' - 10),
    .join = {16, 1, 16, 1, 16, 1, 16, 1, 16, 1, 16, 1, 16, 1, 16, 1},
};

SSSE3_INLINE __m128i load (const char *p)
{
    return _mm_loadu_si128 ((const __m128i *)p);
}

WITH_SSSE3 static void write_vectors (const struct idcomp_uuid *uuid, char text[IDCOMP_UUID_TEXT])
{
    const struct constants *k = &constants;
    __m128i bytes = load ((const char *)uuid->bytes), mask = SSSE3_LOAD (k->nibble);
    __m128i high = _mm_and_si128 (_mm_srli_epi16 (bytes, 4), mask);
    __m128i low = _mm_and_si128 (bytes, mask);
    __m128i digits = SSSE3_LOAD (k->digits);
    __m128i first = _mm_shuffle_epi8 (digits, _mm_unpacklo_epi8 (high, low));
    __m128i last = _mm_shuffle_epi8 (digits, _mm_unpackhi_epi8 (high, low));
    __m128i head = _mm_shuffle_epi8 (first, SSSE3_LOAD (k->head));
    __m128i tail = _mm_shuffle_epi8 (_mm_alignr_epi8 (last, first, 14), SSSE3_LOAD (k->tail));
    int32_t end = _mm_cvtsi128_si32 (_mm_srli_si128 (last, 12));

    head = _mm_or_si128 (head, SSSE3_LOAD (k->head_hyphens));
    tail = _mm_or_si128 (tail, SSSE3_LOAD (k->tail_hyphens));
    _mm_storeu_si128 ((__m128i *)text, head);
    _mm_storeu_si128 ((__m128i *)(text + 16), tail);
    memcpy (text + 32, &end, sizeof (end));
    text[IDCOMP_UUID_TEXT - 1] = '\0';
}

/* The values of 16 digits as 8 lanes of a byte each.  What is above '9' should be a letter, whose
 * case is folded, anything else a digit.  A character is wrong if and only if it lies below the
 * first of its kind or its value is above 15; then '*bad' gets the top bit of its byte.
 */
SSSE3_INLINE __m128i values_of (__m128i chars, __m128i *bad, const struct constants *k)
{
    __m128i letters = _mm_cmpgt_epi8 (chars, SSSE3_LOAD (k->last_digit));
    __m128i folded = _mm_or_si128 (chars, _mm_and_si128 (letters, SSSE3_LOAD (k->case_bit)));
    __m128i digits = _mm_sub_epi8 (folded, SSSE3_LOAD (k->zero));
    __m128i offset = _mm_sub_epi8 (digits, _mm_and_si128 (letters, SSSE3_LOAD (k->to_letter)));
    __m128i values = _mm_sub_epi8 (digits, _mm_and_si128 (letters, SSSE3_LOAD (k->gap)));

    *bad =
        _mm_or_si128 (*bad, _mm_or_si128 (offset, _mm_adds_epu8 (values, SSSE3_LOAD (k->to_top))));
    return _mm_maddubs_epi16 (values, SSSE3_LOAD (k->join));
}

WITH_SSSE3 static bool read_vectors (const char *text, struct idcomp_uuid *uuid)
{
    const struct constants *k = &constants;
    __m128i bad = _mm_setzero_si128 ();
    __m128i first = _mm_or_si128 (_mm_shuffle_epi8 (load (text), SSSE3_LOAD (k->from_head)),
                                  _mm_shuffle_epi8 (load (text + 14), SSSE3_LOAD (k->from_middle)));
    __m128i last = _mm_or_si128 (_mm_shuffle_epi8 (load (text + 19), SSSE3_LOAD (k->from_tail)),
                                 _mm_shuffle_epi8 (load (text + 20), SSSE3_LOAD (k->from_end)));

    first = values_of (first, &bad, k);
    last = values_of (last, &bad, k);
    _mm_storeu_si128 ((__m128i *)uuid->bytes, _mm_packus_epi16 (first, last));
    return _mm_movemask_epi8 (bad) == 0 && hyphens_stand (text);
}

static inline bool has_ssse3 (void)
{
    return __builtin_expect (__builtin_cpu_supports ("ssse3"), 1);
}

#else

#define read_vectors read_words
#define write_vectors write_words

static inline bool has_ssse3 (void)
{
    return false;
}

#endif /* SSSE3_POSSIBLE */

/* --- the choice --- */

bool uuid_path_works (enum uuid_path path)
{
    return path == UUID_PATH_SCALAR || has_ssse3 ();
}

bool uuid_path_read (enum uuid_path path, const char *text, struct idcomp_uuid *uuid)
{
    return path == UUID_PATH_SSSE3 ? read_vectors (text, uuid) : read_words (text, uuid);
}

void uuid_path_write (enum uuid_path path, const struct idcomp_uuid *uuid,
                      char text[IDCOMP_UUID_TEXT])
{
    if (path == UUID_PATH_SSSE3)
        write_vectors (uuid, text);
    else
        write_words (uuid, text);
}

static inline enum uuid_path best_path (void)
{
    return has_ssse3 () ? UUID_PATH_SSSE3 : UUID_PATH_SCALAR;
}

void idcomp_uuid_format (const struct idcomp_uuid *uuid, char text[IDCOMP_UUID_TEXT])
{
    uuid_path_write (best_path (), uuid, text);
}

int idcomp_uuid_parse (const char *text, struct idcomp_uuid *uuid)
{
    struct idcomp_uuid u;

    if (strnlen (text, IDCOMP_UUID_TEXT) != IDCOMP_UUID_TEXT - 1 ||
        !uuid_path_read (best_path (), text, &u) || !uuid_is_v4 (&u)) {
        errno = IDCOMP_EBAD_UUID;
        return -1;
    }
    *uuid = u;
    return 0;
}
