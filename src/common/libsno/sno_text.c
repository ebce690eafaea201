/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sno_text.c - base 32 text of an id: each half of 5 bytes is 8 characters of 5 bits
 *
 * The alphabet is two runs of ASCII, 2-9 and a-x, so a value becomes a character by two additions, and a
 * character is checked by two comparisons: that is what makes the vector forms short.  They are the same
 * instructions compiled twice, as SSSE3 and, without the register copies, as AVX2; all forms must agree on
 * every input.  The choice is made in each call from what the compiler's runtime found at start-up.
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

static void encode_scalar (const sno_t *id, char *text)
{
    encode_half (id->bytes, text);
    encode_half (id->bytes + 5, text + 8);
}

static bool decode_scalar (const char *text, sno_t *id)
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

/* Character k of a half is the 5 bits from bit 5k: they lie in the 16 bits of bytes 5k/8 and 5k/8 + 1.  Each
 * pair goes to a lane of its own, is shifted left by 5k mod 8 (a multiplication, for the lanes differ) so
 * that the 5 bits are on top, and down by 11.  The 8 lanes of each half become 8 bytes.
 */
INLINE_SSSE3 __m128i split_half (__m128i bytes, __m128i pairs)
{
    const __m128i shifts = _mm_setr_epi16 (1 << 0, 1 << 5, 1 << 2, 1 << 7, 1 << 4, 1 << 1, 1 << 6, 1 << 3);
    return _mm_srli_epi16 (_mm_mullo_epi16 (_mm_shuffle_epi8 (bytes, pairs), shifts), 11);
}

INLINE_SSSE3 void encode_vector (const sno_t *id, char *text)
{
    const __m128i first = _mm_setr_epi8 (1, 0, 1, 0, 2, 1, 2, 1, 3, 2, 4, 3, 4, 3, 5, 4);
    const __m128i second = _mm_setr_epi8 (6, 5, 6, 5, 7, 6, 7, 6, 8, 7, 9, 8, 9, 8, -1, 9);
    uint64_t head;
    uint16_t tail;

    memcpy (&head, id->bytes, 8);
    memcpy (&tail, id->bytes + 8, 2);
    __m128i bytes = _mm_insert_epi16 (_mm_cvtsi64_si128 ((long long)head), tail, 4);
    __m128i values = _mm_packus_epi16 (split_half (bytes, first), split_half (bytes, second));
    __m128i letters = _mm_cmpgt_epi8 (values, _mm_set1_epi8 (DIGITS - 1));
    values = _mm_add_epi8 (values, _mm_set1_epi8 ('2'));
    values = _mm_add_epi8 (values, _mm_and_si128 (letters, _mm_set1_epi8 (GAP)));
    _mm_storeu_si128 ((__m128i *)text, values);
}

/* All-ones bytes where low <= byte < low + count (unsigned, so what is below wraps and fails too). */
INLINE_SSSE3 __m128i in_run (__m128i bytes, char low, char count)
{
    __m128i offset = _mm_sub_epi8 (bytes, _mm_set1_epi8 (low));
    return _mm_cmpeq_epi8 (_mm_min_epu8 (offset, _mm_set1_epi8 ((char)(count - 1))), offset);
}

/* Values of 5 bits are joined to 10, 20 and 40 bits: first two multiply-and-add steps, then a shift. */
INLINE_SSSE3 bool decode_vector (const char *text, sno_t *id)
{
    const __m128i big_endian = _mm_setr_epi8 (4, 3, 2, 1, 0, 12, 11, 10, 9, 8, -1, -1, -1, -1, -1, -1);
    __m128i chars = _mm_loadu_si128 ((const __m128i *)text);
    __m128i letters = in_run (chars, 'a', LETTERS);
    __m128i good = _mm_or_si128 (letters, in_run (chars, '2', DIGITS));

    if (_mm_movemask_epi8 (good) != 0xffff)
        return false;
    __m128i values = _mm_sub_epi8 (chars, _mm_set1_epi8 ('2'));
    values = _mm_sub_epi8 (values, _mm_and_si128 (letters, _mm_set1_epi8 (GAP)));
    values = _mm_maddubs_epi16 (values, _mm_set1_epi16 (1 << 8 | 1 << 5));
    values = _mm_madd_epi16 (values, _mm_set1_epi32 (1 << 16 | 1 << 10));
    values = _mm_or_si128 (_mm_slli_epi64 (values, 20), _mm_srli_epi64 (values, 32));
    values = _mm_shuffle_epi8 (values, big_endian);
    uint64_t head = (uint64_t)_mm_cvtsi128_si64 (values);
    uint16_t tail = (uint16_t)_mm_extract_epi16 (values, 4);
    memcpy (id->bytes, &head, 8);
    memcpy (id->bytes + 8, &tail, 2);
    return true;
}

__attribute__ ((target ("ssse3"))) static void encode_ssse3 (const sno_t *id, char *text)
{
    encode_vector (id, text);
}

__attribute__ ((target ("ssse3"))) static bool decode_ssse3 (const char *text, sno_t *id)
{
    return decode_vector (text, id);
}

__attribute__ ((target ("avx2"))) static void encode_avx2 (const sno_t *id, char *text)
{
    encode_vector (id, text);
}

__attribute__ ((target ("avx2"))) static bool decode_avx2 (const char *text, sno_t *id)
{
    return decode_vector (text, id);
}

bool sno_path_works (enum sno_path path)
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

#define encode_ssse3 encode_scalar
#define decode_ssse3 decode_scalar
#define encode_avx2 encode_scalar
#define decode_avx2 decode_scalar

bool sno_path_works (enum sno_path path)
{
    return path == SNO_PATH_SCALAR;
}

#endif /* SNO_X86 */

/* --- the choice -------------------------------------------------------------------------- */

static inline enum sno_path best_path (void)
{
    if (sno_path_works (SNO_PATH_AVX2))
        return SNO_PATH_AVX2;
    return sno_path_works (SNO_PATH_SSSE3) ? SNO_PATH_SSSE3 : SNO_PATH_SCALAR;
}

void sno_path_encode (enum sno_path path, const sno_t *id, char text[SNO_TEXT_SIZE])
{
    switch (path) {
    case SNO_PATH_AVX2:
        encode_avx2 (id, text);
        break;
    case SNO_PATH_SSSE3:
        encode_ssse3 (id, text);
        break;
    case SNO_PATH_SCALAR:
        encode_scalar (id, text);
        break;
    }
}

bool sno_path_decode (enum sno_path path, const char text[SNO_TEXT_SIZE], sno_t *id)
{
    switch (path) {
    case SNO_PATH_AVX2:
        return decode_avx2 (text, id);
    case SNO_PATH_SSSE3:
        return decode_ssse3 (text, id);
    default:
        return decode_scalar (text, id);
    }
}

void sno_encode (const sno_t *id, char text[SNO_TEXT_SIZE + 1])
{
    text[SNO_TEXT_SIZE] = '\0';
    sno_path_encode (best_path (), id, text);
}

static int refuse (const char *text, size_t len, size_t *errpos)
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

int sno_decode (const char *text, size_t len, sno_t *id, size_t *errpos)
{
    if (len != SNO_TEXT_SIZE || !sno_path_decode (best_path (), text, id))
        return refuse (text, len, errpos);
    return 0;
}
