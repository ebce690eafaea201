/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sno_text.c - base 32 text of an id: each half of 5 bytes is 8 characters of 5 bits
 *
 * The alphabet consists of two runs of ASCII, 2-9 and a-x, so a value becomes a character with two additions, and a
 * character is checked with two comparisons. This keeps the vector forms short. They are the same source compiled
 * twice: as SSSE3, and without the register copies as AVX2. All forms must agree on all input. Each call chooses a form
 * by what the compiler's runtime found at start-up: a load and a test. The AVX2 form is inlined in the functions that
 * choose: another call would add a tenth to the time, and a pointer set at start-up (ifunc) even more.
 */
#include "idtree/sno.h"
#include "libutil/be.h"
#include "libutil/errprintf.h"
#include "libutil/id_text.h"

#define DIGITS 8   /* values 0-7 are '2' ... '9' */
#define LETTERS 24 /* values 8-31 are 'a' ... 'x' */
#define GAP ('a' - '2' - DIGITS)

/* --- scalar ------------------------------------------------------------------------------ */

static const char alphabet[] = "23456789abcdefghijklmnopqrstuvwx";

static int value_of (char c)
{
    if (c >= '2' && c <= '9')
        return c - '2';
    if (c >= 'a' && c <= 'x')
        return c - 'a' + DIGITS;
    return -1;
}

static void encode_half (const uint8_t *bytes, char *text)
{
    uint64_t bits = get_be (bytes, 5);

    for (int i = 0; i < 8; i++)
        text[i] = alphabet[bits >> (35 - 5 * i) & 31];
}

static bool decode_half (const char *text, uint8_t *bytes)
{
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++) {
        int value = value_of (text[i]);
        if (value < 0)
            return false;
        bits = bits << 5 | (unsigned)value;
    }
    put_be (bytes, 5, bits);
    return true;
}

static void encode_plain (const sno_t *id, char *text)
{
    encode_half (id->bytes, text);
    encode_half (id->bytes + 5, text + 8);
}

static bool decode_plain (const char *text, sno_t *id)
{
    sno_t read;
    if (!decode_half (text, read.bytes) || !decode_half (text + 8, read.bytes + 5))
        return false;
    *id = read;
    return true;
}

/* --- vector ------------------------------------------------------------------------------ */

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define VECTOR_FORMS 1

/* A part of a vector form, inlined in its caller and compiled for the caller's target. */
#define VECTOR_INLINE static inline __attribute__ ((always_inline, target ("ssse3")))
#define ALL(v)                                         \
    {                                                  \
        v, v, v, v, v, v, v, v, v, v, v, v, v, v, v, v \
    }
#define LOAD(array) _mm_load_si128 ((const __m128i *)(array))

struct constants {
    int16_t shifts[8];     /* 1 << 5k mod 8 */
    int8_t head_pairs[16]; /* bytes 5k/8 + 1 and 5k/8 of the first half */
    int8_t tail_pairs[16]; /* ... of the second half, among bytes 2-9 */
    int8_t last_value[16], low_digit[16], gap[16];
    int8_t last_digit[16], to_letter[16], to_top[16];
    int8_t join_10[16]; /* two values to 10 bits: * 32, + */
    int16_t join_20[8]; /* two of those to 20: * 1024, +; the higher 20 are 4 bits up */
    int8_t high[16], low[16];
} __attribute__ ((aligned (16)));

/* Loading the constants from memory as operands is free. A compiler that knows their values would construct them in
 * each call, so the attributes make it assume that the values are used and may change elsewhere; the loader makes them
 * read-only.
 */
static __attribute__ ((used, section (".data.rel.ro"))) struct constants constants = {
    .shifts = { 1 << 0, 1 << 5, 1 << 2, 1 << 7, 1 << 4, 1 << 1, 1 << 6, 1 << 3 },
    .head_pairs = { 1, 0, 1, 0, 2, 1, 2, 1, 3, 2, 4, 3, 4, 3, 5, 4 },
    .tail_pairs = { 4, 3, 4, 3, 5, 4, 5, 4, 6, 5, 7, 6, 7, 6, -1, 7 },
    .last_value = ALL (DIGITS - 1),
    .low_digit = ALL ('2'),
    .gap = ALL (GAP),
    .last_digit = ALL ('9'),
    .to_letter = ALL ('a' - '2'),
    .to_top = ALL (INT8_MAX - (LETTERS - 1)),
    .join_10 = { 32, 1, 32, 1, 32, 1, 32, 1, 32, 1, 32, 1, 32, 1, 32, 1 },
    .join_20 = { 1024 << 4, 1 << 4, 1024, 1, 1024 << 4, 1 << 4, 1024, 1 },
    .high = { 2, 1, 0, -1, -1, 10, 9, 8, 0, -1, -1, 10, 9, 8, -1, -1 },
    .low = { -1, -1, 6, 5, 4, -1, -1, 14, 6, 5, 4, -1, -1, 14, 13, 12 },
};

/* Character k of a half is the 5 bits from bit 5k on, which are in the 16 bits of bytes 5k/8 and 5k/8 + 1. Each pair of
 * bytes goes to its own lane, is shifted left by 5k mod 8 (with a multiplication, since the lanes differ) so that the 5
 * bits are on top, and shifted down by 11. The 8 lanes of each half become 8 bytes.
 */
VECTOR_INLINE __m128i split_half (__m128i bytes, __m128i pairs, __m128i shifts)
{
    return _mm_srli_epi16 (_mm_mullo_epi16 (_mm_shuffle_epi8 (bytes, pairs), shifts), 11);
}

VECTOR_INLINE void encode_vector (const sno_t *id, char *text)
{
    const struct constants *k = &constants;
    __m128i shifts = LOAD (k->shifts);
    __m128i head = _mm_loadl_epi64 ((const __m128i *)id->bytes);
    __m128i tail = _mm_loadl_epi64 ((const __m128i *)(id->bytes + 2));
    __m128i values = _mm_packus_epi16 (split_half (head, LOAD (k->head_pairs), shifts),
                                       split_half (tail, LOAD (k->tail_pairs), shifts));
    __m128i letters = _mm_cmpgt_epi8 (values, LOAD (k->last_value));

    values = _mm_add_epi8 (values, LOAD (k->low_digit));
    values = _mm_add_epi8 (values, _mm_and_si128 (letters, LOAD (k->gap)));
    _mm_storeu_si128 ((__m128i *)text, values);
}

/* A character above '9' must be a letter, any other a digit. A character is wrong if and only if its distance from the
 * first character of its kind is below 0 or above the distance of the last letter. A saturated addition sets the top
 * bit in both cases.
 */
VECTOR_INLINE bool all_good (__m128i digits, __m128i letters, const struct constants *k)
{
    __m128i offset = _mm_sub_epi8 (digits, _mm_and_si128 (letters, LOAD (k->to_letter)));
    return _mm_movemask_epi8 (_mm_adds_epu8 (offset, LOAD (k->to_top))) == 0;
}

/* Two multiply-and-add steps join values of 5 bits to 10 and then 20 bits. Two times 20 bits become 5 bytes: 3 bytes of
 * each, which share the middle one. Bytes 0-7 and 2-9 of the id are stored, since storing two halves of a register is
 * faster than storing 8 bytes and 2.
 */
VECTOR_INLINE bool decode_vector (const char *text, sno_t *id)
{
    const struct constants *k = &constants;
    __m128i chars = _mm_loadu_si128 ((const __m128i *)text);
    __m128i digits = _mm_sub_epi8 (chars, LOAD (k->low_digit));
    __m128i letters = _mm_cmpgt_epi8 (chars, LOAD (k->last_digit));

    if (!all_good (digits, letters, k))
        return false;
    __m128i values = _mm_sub_epi8 (digits, _mm_and_si128 (letters, LOAD (k->gap)));
    values = _mm_maddubs_epi16 (values, LOAD (k->join_10));
    values = _mm_madd_epi16 (values, LOAD (k->join_20));
    values = _mm_or_si128 (_mm_shuffle_epi8 (values, LOAD (k->high)), _mm_shuffle_epi8 (values, LOAD (k->low)));
    _mm_storel_epi64 ((__m128i *)id->bytes, values);
    _mm_storeh_pi ((__m64 *)(id->bytes + 2), _mm_castsi128_ps (values));
    return true;
}

__attribute__ ((noinline, target ("ssse3"))) static void encode_ssse3 (const sno_t *id, char *text)
{
    encode_vector (id, text);
}

__attribute__ ((noinline, target ("ssse3"))) static bool decode_ssse3 (const char *text, sno_t *id)
{
    return decode_vector (text, id);
}

/* Used without AVX2. */
static void encode_second (const sno_t *id, char *text)
{
    if (__builtin_cpu_supports ("ssse3"))
        encode_ssse3 (id, text);
    else
        encode_plain (id, text);
}

static bool decode_second (const char *text, sno_t *id)
{
    return __builtin_cpu_supports ("ssse3") ? decode_ssse3 (text, id) : decode_plain (text, id);
}

/* Whether AVX2 is available. No AVX2 instruction can be moved before this test: each of them needs data from memory,
 * which the asm might have changed.
 */
static inline bool best_works (void)
{
    if (!__builtin_cpu_supports ("avx2"))
        return false;
    __asm__ volatile("" ::: "memory");
    return true;
}

#define encode_best encode_vector
#define decode_best decode_vector

/* Without this alignment a function may need an eighth more time. */
#define CHOOSES __attribute__ ((target ("avx2"), aligned (64)))

#else

#define encode_best encode_plain
#define decode_best decode_plain
#define encode_second encode_plain
#define decode_second decode_plain
#define best_works() true
#define CHOOSES

#endif /* x86-64 */

/* --- the choice ------------------------------------------------------------------------------ */

/* All cases except the fast form without errors. Not inlined, so that the functions that choose need no stack frame. */
#define ELSEWHERE __attribute__ ((noinline, cold)) static

ELSEWHERE int format_elsewhere (const sno_t *id, char *buf, size_t size)
{
    if (size < SNO_TEXT_MAX)
        return errset (ENOSPC);
    encode_second (id, buf);
    buf[SNO_TEXT_LEN] = '\0';
    return SNO_TEXT_LEN;
}

ELSEWHERE int parse_elsewhere (const char *text, size_t len, sno_t *id, size_t *errpos)
{
    size_t pos = 0;

    if (len != SNO_TEXT_LEN)
        return errset_at (EMSGSIZE, len < SNO_TEXT_LEN ? len : SNO_TEXT_LEN, errpos);
    if (decode_second (text, id))
        return 0;
    while (value_of (text[pos]) >= 0)
        pos++;
    return errset_at (EINVAL, pos, errpos);
}

CHOOSES int sno_format (const sno_t *id, char *buf, size_t size)
{
    if (!__builtin_expect (best_works () && size >= SNO_TEXT_MAX, true))
        return format_elsewhere (id, buf, size);
    encode_best (id, buf);
    buf[SNO_TEXT_LEN] = '\0';
    return SNO_TEXT_LEN;
}

CHOOSES int sno_parse (const char *text, size_t len, sno_t *id, size_t *errpos)
{
    if (__builtin_expect (best_works () && len == SNO_TEXT_LEN && decode_best (text, id), true))
        return 0;
    return parse_elsewhere (text, len, id, errpos);
}

/* --- many --------------------------------------------------------------------------------- */

static int format_cb (const void *id, const void *how, char *buf, size_t size)
{
    return sno_format (id, buf, size);
}

static int parse_cb (const char *text, size_t len, const void *how, void *id, size_t *errpos)
{
    return sno_parse (text, len, id, errpos);
}

int sno_format_lines (const sno_t *ids, size_t *count, char *buf, size_t size, size_t *len)
{
    return lines_format (ids, sizeof (*ids), count, format_cb, NULL, buf, size, len);
}

int sno_parse_lines (const char *text, size_t len, sno_t *ids, size_t *count, size_t *pos)
{
    return lines_parse (text, len, SNO_TEXT_LEN, ids, sizeof (*ids), count, parse_cb, NULL, pos);
}
