/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sno_text.c - base 32 text of an id: each half of 5 bytes is 8 characters of 5 bits
 *
 * The alphabet is two runs of ASCII, 2-9 and a-x, so a value becomes a character by two additions,
 * and a character is checked by two comparisons: that is what makes the vector forms short.  They
 * are the same instructions compiled twice, as SSSE3 and, without the register copies, as AVX2;
 * all forms must agree on every input.  The choice is made in each call from what the compiler's
 * runtime found at start-up.
 */
#include <errno.h>
#include <string.h>

#include "sno_text.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define SNO_X86 1
#include <immintrin.h>
#endif

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
    uint64_t bits = 0;
    for (int i = 0; i < 5; i++)
        bits = bits << 8 | bytes[i];
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
    for (int i = 0; i < 5; i++)
        bytes[i] = (uint8_t)(bits >> (32 - 8 * i));
    return true;
}

static inline void encode_plain (const sno_t *id, char *text)
{
    encode_half (id->bytes, text);
    encode_half (id->bytes + 5, text + 8);
}

static inline bool decode_plain (const char *text, sno_t *id)
{
    sno_t read;
    if (!decode_half (text, read.bytes) || !decode_half (text + 8, read.bytes + 5))
        return false;
    *id = read;
    return true;
}

/* --- vector ------------------------------------------------------------------------------ */

#ifdef SNO_X86

#define INLINE_SSSE3 static inline __attribute__ ((always_inline, target ("ssse3")))
#define TIMES_16(v)                                                                                \
    {                                                                                              \
        v, v, v, v, v, v, v, v, v, v, v, v, v, v, v, v                                             \
    }

/* Constants, in memory: a compiler that sees their values builds them anew in each call, which
 * takes longer.
 */
struct constants {
    int16_t shifts[8];      /* 1 << 5k mod 8 */
    int8_t first_pairs[16]; /* bytes 5k/8 + 1 and 5k/8 of the first half */
    int8_t second_pairs[16];
    int8_t last_digit[16], low_digit[16], gap[16];
    int8_t low_letter[16], last_letter[16];
    int8_t join_10[16]; /* two values to 10 bits: * 32, + */
    int16_t join_20[8]; /* two of those to 20: * 1024, + */
    int8_t big_endian[16];
} __attribute__ ((aligned (16)));

static const struct constants constants = {
    .shifts = {1 << 0, 1 << 5, 1 << 2, 1 << 7, 1 << 4, 1 << 1, 1 << 6, 1 << 3},
    .first_pairs = {1, 0, 1, 0, 2, 1, 2, 1, 3, 2, 4, 3, 4, 3, 5, 4},
    .second_pairs = {6, 5, 6, 5, 7, 6, 7, 6, 8, 7, 9, 8, 9, 8, -1, 9},
    .last_digit = TIMES_16 (DIGITS - 1),
    .low_digit = TIMES_16 ('2'),
    .gap = TIMES_16 (GAP),
    .low_letter = TIMES_16 ('a'),
    .last_letter = TIMES_16 (LETTERS - 1),
    .join_10 = {32, 1, 32, 1, 32, 1, 32, 1, 32, 1, 32, 1, 32, 1, 32, 1},
    .join_20 = {1024, 1, 1024, 1, 1024, 1, 1024, 1},
    .big_endian = {4, 3, 2, 1, 0, 12, 11, 10, 9, 8, -1, -1, -1, -1, -1, -1},
};

/* The constants behind an address that the compiler cannot see through. */
static inline const struct constants *in_memory (void)
{
    const struct constants *k = &constants;
    __asm__("" : "+r"(k));
    return k;
}

#define LOAD(array) _mm_load_si128 ((const __m128i *)(array))

/* Character k of a half is the 5 bits from bit 5k: they lie in the 16 bits of bytes 5k/8 and 5k/8
 * + 1.  Each pair goes to a lane of its own, is shifted left by 5k mod 8 (a multiplication, for
 * the lanes differ) so that the 5 bits are on top, and down by 11.  The 8 lanes of each half
 * become 8 bytes.
 */
INLINE_SSSE3 __m128i split_half (__m128i bytes, __m128i pairs, __m128i shifts)
{
    return _mm_srli_epi16 (_mm_mullo_epi16 (_mm_shuffle_epi8 (bytes, pairs), shifts), 11);
}

INLINE_SSSE3 void encode_vector (const sno_t *id, char *text)
{
    const struct constants *k = in_memory ();
    __m128i shifts = LOAD (k->shifts);
    uint64_t head;
    uint16_t tail;

    memcpy (&head, id->bytes, 8);
    memcpy (&tail, id->bytes + 8, 2);
    __m128i bytes = _mm_insert_epi16 (_mm_cvtsi64_si128 ((long long)head), tail, 4);
    __m128i values = _mm_packus_epi16 (split_half (bytes, LOAD (k->first_pairs), shifts),
                                       split_half (bytes, LOAD (k->second_pairs), shifts));
    __m128i letters = _mm_cmpgt_epi8 (values, LOAD (k->last_digit));
    values = _mm_add_epi8 (values, LOAD (k->low_digit));
    values = _mm_add_epi8 (values, _mm_and_si128 (letters, LOAD (k->gap)));
    _mm_storeu_si128 ((__m128i *)text, values);
}

/* All-ones bytes where low <= byte <= low + last (unsigned, so what is below wraps and fails too).
 */
INLINE_SSSE3 __m128i in_run (__m128i bytes, __m128i low, __m128i last)
{
    __m128i offset = _mm_sub_epi8 (bytes, low);
    return _mm_cmpeq_epi8 (_mm_min_epu8 (offset, last), offset);
}

/* Values of 5 bits are joined to 10, 20 and 40 bits: first two multiply-and-add steps, then a
 * shift.
 */
INLINE_SSSE3 bool decode_vector (const char *text, sno_t *id)
{
    const struct constants *k = in_memory ();
    __m128i chars = _mm_loadu_si128 ((const __m128i *)text), low_digit = LOAD (k->low_digit);
    __m128i letters = in_run (chars, LOAD (k->low_letter), LOAD (k->last_letter));
    __m128i good = _mm_or_si128 (letters, in_run (chars, low_digit, LOAD (k->last_digit)));

    if (_mm_movemask_epi8 (good) != 0xffff)
        return false;
    __m128i values = _mm_sub_epi8 (chars, low_digit);
    values = _mm_sub_epi8 (values, _mm_and_si128 (letters, LOAD (k->gap)));
    values = _mm_maddubs_epi16 (values, LOAD (k->join_10));
    values = _mm_madd_epi16 (values, LOAD (k->join_20));
    values = _mm_or_si128 (_mm_slli_epi64 (values, 20), _mm_srli_epi64 (values, 32));
    values = _mm_shuffle_epi8 (values, LOAD (k->big_endian));
    uint64_t head = (uint64_t)_mm_cvtsi128_si64 (values);
    uint16_t tail = (uint16_t)_mm_extract_epi16 (values, 4);
    memcpy (id->bytes, &head, 8);
    memcpy (id->bytes + 8, &tail, 2);
    return true;
}

static inline bool works (enum sno_path path)
{
    switch (path) {
    case SNO_PATH_AVX2:
        return __builtin_cpu_supports ("avx2");
    case SNO_PATH_SSSE3:
        return __builtin_cpu_supports ("ssse3");
    default:
        return true;
    }
}

#else

static inline bool works (enum sno_path path)
{
    return path == SNO_PATH_SCALAR;
}

#endif /* SNO_X86 */

/* --- what is called, for one id and for many, made of each form -------------------------- */

/* Say what is wrong with a text that no form could decode. */
__attribute__ ((noinline, cold)) static int refuse (const char *text, size_t len, size_t *errpos)
{
    size_t pos = 0;

    if (len != SNO_TEXT_SIZE)
        pos = len < SNO_TEXT_SIZE ? len : SNO_TEXT_SIZE;
    else
        while (value_of (text[pos]) >= 0)
            pos++;
    if (errpos)
        *errpos = pos;
    errno = len == SNO_TEXT_SIZE ? EINVAL : EMSGSIZE;
    return -1;
}

/* The functions of one path: 'attribute' lets the compiler use its instructions. */
#define PATH(path, attribute, encode_form, decode_form)                                            \
    attribute static void encode_##path (const sno_t *id, char *text)                              \
    {                                                                                              \
        encode_form (id, text);                                                                    \
        text[SNO_TEXT_SIZE] = '\0';                                                                \
    }                                                                                              \
    attribute static int decode_##path (const char *text, size_t len, sno_t *id, size_t *errpos)   \
    {                                                                                              \
        if (len != SNO_TEXT_SIZE || !decode_form (text, id))                                       \
            return refuse (text, len, errpos);                                                     \
        return 0;                                                                                  \
    }                                                                                              \
    attribute static void encode_many_##path (const sno_t *ids, size_t count, char *text)          \
    {                                                                                              \
        for (size_t i = 0; i < count; i++)                                                         \
            encode_form (&ids[i], text + i * SNO_TEXT_SIZE);                                       \
    }                                                                                              \
    attribute static size_t decode_many_##path (const char *text, size_t count, sno_t *ids)        \
    {                                                                                              \
        size_t i = 0;                                                                              \
        while (i < count && decode_form (text + i * SNO_TEXT_SIZE, &ids[i]))                       \
            i++;                                                                                   \
        return i;                                                                                  \
    }

PATH (scalar, , encode_plain, decode_plain)
#ifdef SNO_X86
PATH (ssse3, __attribute__ ((target ("ssse3"))), encode_vector, decode_vector)
PATH (avx2, __attribute__ ((target ("avx2"))), encode_vector, decode_vector)
#define CHOOSE(path, function, ...)                                                                \
    ((path) == SNO_PATH_AVX2    ? function##_avx2 (__VA_ARGS__)                                    \
     : (path) == SNO_PATH_SSSE3 ? function##_ssse3 (__VA_ARGS__)                                   \
                                : function##_scalar (__VA_ARGS__))
#else
#define CHOOSE(path, function, ...) function##_scalar (__VA_ARGS__)
#endif

/* --- the choice -------------------------------------------------------------------------- */

static inline enum sno_path best_path (void)
{
    if (__builtin_expect (works (SNO_PATH_AVX2), true))
        return SNO_PATH_AVX2;
    return works (SNO_PATH_SSSE3) ? SNO_PATH_SSSE3 : SNO_PATH_SCALAR;
}

bool sno_path_works (enum sno_path path)
{
    return works (path);
}

void sno_path_encode (enum sno_path path, const sno_t *id, char text[SNO_TEXT_SIZE + 1])
{
    CHOOSE (path, encode, id, text);
}

int sno_path_decode (enum sno_path path, const char *text, size_t len, sno_t *id, size_t *errpos)
{
    return CHOOSE (path, decode, text, len, id, errpos);
}

void sno_encode (const sno_t *id, char text[SNO_TEXT_SIZE + 1])
{
    enum sno_path path = best_path ();
    CHOOSE (path, encode, id, text);
}

int sno_decode (const char *text, size_t len, sno_t *id, size_t *errpos)
{
    enum sno_path path = best_path ();
    return CHOOSE (path, decode, text, len, id, errpos);
}

void sno_encode_many (const sno_t *ids, size_t count, char *text)
{
    enum sno_path path = best_path ();
    CHOOSE (path, encode_many, ids, count, text);
}

size_t sno_decode_many (const char *text, size_t count, sno_t *ids)
{
    enum sno_path path = best_path ();
    return CHOOSE (path, decode_many, text, count, ids);
}
