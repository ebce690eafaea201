/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* base64.c - encode bytes as text: each 3 bytes become 4 characters of 6 bits
 *
 * The decoder accepts only what the encoder writes, so each sequence of bytes has exactly one text.
 *
 * With AVX2 the vector code handles 8 groups at a time; the plain code handles the remaining groups, or all of them on
 * other machines. A vector has two lanes, and the shuffle instructions move bytes only within a lane. Each lane
 * therefore takes 12 bytes, or 16 characters.
 */

#include <errno.h>
#include <stdint.h>

#include "libutil/errprintf.h"
#include "libutil/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Encode the whole groups of 'size' bytes. Returns the number of bytes that were encoded. */
static size_t encode_plain (const unsigned char *p, size_t size, char *out)
{
    size_t done = 0;

    for (; size - done >= 3; done += 3, out += 4) {
        uint32_t x = (uint32_t)p[done] << 16 | p[done + 1] << 8 | p[done + 2];
        out[0] = digits[x >> 18];
        out[1] = digits[x >> 12 & 63];
        out[2] = digits[x >> 6 & 63];
        out[3] = digits[x & 63];
    }
    return done;
}

/* Encode the one or two bytes of the last group. */
static void encode_tail (const unsigned char *p, size_t size, char *out)
{
    uint32_t x = (uint32_t)p[0] << 16 | (size > 1 ? p[1] << 8 : 0);

    out[0] = digits[x >> 18];
    out[1] = digits[x >> 12 & 63];
    out[2] = size > 1 ? digits[x >> 6 & 63] : '=';
    out[3] = '=';
}

/* The digit value + 1 of each character; 0 for characters that are not digits. */
static const unsigned char digit_values[256] = {
    ['A'] = 1, 2,  3,  4,  5,          6,  7,  8,  9,  10, 11,         12, 13, 14, 15,         16,
    17,        18, 19, 20, 21,         22, 23, 24, 25, 26, ['a'] = 27, 28, 29, 30, 31,         32,
    33,        34, 35, 36, 37,         38, 39, 40, 41, 42, 43,         44, 45, 46, 47,         48,
    49,        50, 51, 52, ['0'] = 53, 54, 55, 56, 57, 58, 59,         60, 61, 62, ['+'] = 63, ['/'] = 64,
};

/* Four digits as 24 bits, or -1. */
static int32_t quad (const unsigned char *p)
{
    int32_t a = digit_values[p[0]] - 1;
    int32_t b = digit_values[p[1]] - 1;
    int32_t c = digit_values[p[2]] - 1;
    int32_t d = digit_values[p[3]] - 1;

    if ((a | b | c | d) < 0)
        return -1;
    return a << 18 | b << 12 | c << 6 | d;
}

/* Decode whole groups of 'len' characters. Returns the number of characters that were decoded: less than 'len' if an
 * invalid group begins there.
 */
static size_t decode_plain (const unsigned char *p, size_t len, unsigned char *out)
{
    size_t done = 0;

    for (; done < len; done += 4, out += 3) {
        int32_t x = quad (p + done);
        if (x < 0)
            break;
        out[0] = x >> 16;
        out[1] = x >> 8 & 0xff;
        out[2] = x & 0xff;
    }
    return done;
}

/* --- vector --- */

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define VECTOR_FORMS 1
#define VECTOR __attribute__ ((target ("avx2"))) static
#define VECTOR_INLINE __attribute__ ((always_inline, target ("avx2"))) static inline
#define LANES(...) _mm256_broadcastsi128_si256 (_mm_setr_epi8 (__VA_ARGS__))
#define ALL8(c) _mm256_set1_epi8 (c)

/* The 32 values in 2 x 12 bytes, a byte each.  Bytes a b c become two numbers of 16 bits, a b and b c.  Multiplying
 * moves the bits within each: values 0 and 2 down to the lower byte (the upper half of the product), values 1 and 3 up
 * to the upper byte.
 */
VECTOR_INLINE __m256i split_groups (__m256i bytes)
{
    const __m256i pairs = LANES (1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10);
    __m256i x = _mm256_shuffle_epi8 (bytes, pairs);
    __m256i even = _mm256_and_si256 (x, _mm256_set1_epi32 (0x0fc0fc00));
    __m256i odd = _mm256_and_si256 (x, _mm256_set1_epi32 (0x003f03f0));

    return _mm256_or_si256 (_mm256_mulhi_epu16 (even, _mm256_set1_epi32 (1 << 10 << 16 | 1 << 6)),
                            _mm256_mullo_epi16 (odd, _mm256_set1_epi32 (1 << 8 << 16 | 1 << 4)));
}

/* What is added to a value depends on its run of the alphabet: A-Z are row 13, a-z row 0, each digit, + and / has a row
 * of its own.
 */
VECTOR_INLINE __m256i to_characters (__m256i values)
{
    const int digit = '0' - 52;
    const __m256i gaps = LANES ('a' - 26, digit, digit, digit, digit, digit, digit, digit, digit, digit, digit,
                                '+' - 62, '/' - 63, 'A', 0, 0);
    __m256i row = _mm256_subs_epu8 (values, ALL8 (51));
    __m256i upper = _mm256_cmpgt_epi8 (ALL8 (26), values);

    row = _mm256_or_si256 (row, _mm256_and_si256 (upper, ALL8 (13)));
    return _mm256_add_epi8 (values, _mm256_shuffle_epi8 (gaps, row));
}

/* Each iteration encodes 24 bytes. The load of the second lane reads 4 bytes beyond them. */
VECTOR size_t encode_vector (const unsigned char *p, size_t size, char *out)
{
    size_t done = 0;

    for (; size - done >= 28; done += 24, out += 32) {
        __m128i first = _mm_loadu_si128 ((const __m128i *)(p + done));
        __m128i second = _mm_loadu_si128 ((const __m128i *)(p + done + 12));
        __m256i values = split_groups (_mm256_set_m128i (second, first));
        _mm256_storeu_si256 ((__m256i *)out, to_characters (values));
    }
    return done;
}

/* The values of 32 characters. The bit of each character outside the alphabet is set in '*bad'. The upper four bits of
 * a character select its run of the alphabet, except '/', which shares the run of '+'. A bit for each run tells which
 * lower four bits the run does not contain.
 */
VECTOR_INLINE __m256i to_values (__m256i chars, __m256i *bad)
{
    enum { SIGN = 1, NUMBER = 2, HEAD = 4, TAIL = 8, NEVER = 16 };
    const __m256i run = LANES (NEVER, NEVER, SIGN, NUMBER, HEAD, TAIL, HEAD, TAIL, NEVER, NEVER, NEVER, NEVER, NEVER,
                               NEVER, NEVER, NEVER);
    const int few = NEVER | SIGN, most = few | NUMBER | TAIL, sign = NEVER | NUMBER | TAIL;
    const __m256i lacks = LANES (few | HEAD, few, few, few, few, few, few, few, few, few, few | NUMBER, sign, most,
                                 most, most, sign);
    const __m256i gaps = LANES (0, 63 - '/', 62 - '+', 52 - '0', -'A', -'A', 26 - 'a', 26 - 'a', 0, 0, 0, 0, 0, 0, 0,
                                0);
    const __m256i four = ALL8 (0x0f);
    __m256i high = _mm256_and_si256 (_mm256_srli_epi16 (chars, 4), four);
    __m256i low = _mm256_and_si256 (chars, four);
    __m256i slash = _mm256_cmpeq_epi8 (chars, ALL8 ('/'));

    *bad = _mm256_and_si256 (_mm256_shuffle_epi8 (run, high), _mm256_shuffle_epi8 (lacks, low));
    return _mm256_add_epi8 (chars, _mm256_shuffle_epi8 (gaps, _mm256_add_epi8 (high, slash)));
}

/* 32 values as 24 bytes, the first ones of the result: two become 12 bits, those 24, of which each lane keeps three
 * bytes, and then the second lane moves up to the first.
 */
VECTOR_INLINE __m256i join_groups (__m256i values)
{
    const __m256i bytes = LANES (2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1);
    __m256i x = _mm256_maddubs_epi16 (values, _mm256_set1_epi16 (1 << 8 | 1 << 6));

    x = _mm256_shuffle_epi8 (_mm256_madd_epi16 (x, _mm256_set1_epi32 (1 << 16 | 1 << 12)), bytes);
    return _mm256_permutevar8x32_epi32 (x, _mm256_setr_epi32 (0, 1, 2, 4, 5, 6, 7, 7));
}

VECTOR size_t decode_vector (const unsigned char *p, size_t len, unsigned char *out)
{
    size_t done = 0;

    for (; len - done >= 32; done += 32, out += 24) {
        __m256i bad;
        __m256i values = to_values (_mm256_loadu_si256 ((const __m256i *)(p + done)), &bad);
        if (!_mm256_testz_si256 (bad, bad))
            break;
        __m256i x = join_groups (values);
        _mm_storeu_si128 ((__m128i *)out, _mm256_castsi256_si128 (x));
        _mm_storel_epi64 ((__m128i *)(out + 16), _mm256_extracti128_si256 (x, 1));
    }
    return done;
}

static size_t encode_begin (const unsigned char *p, size_t size, char *out)
{
    return __builtin_cpu_supports ("avx2") ? encode_vector (p, size, out) : 0;
}

static size_t decode_begin (const unsigned char *p, size_t len, unsigned char *out)
{
    return __builtin_cpu_supports ("avx2") ? decode_vector (p, len, out) : 0;
}

#else

#define encode_begin(p, size, out) 0
#define decode_begin(p, len, out) 0

#endif

/* --- both --- */

size_t base64_encode (const void *data, size_t size, char *text)
{
    const unsigned char *p = data;
    size_t done = encode_begin (p, size, text);

    done += encode_plain (p + done, size - done, text + done / 3 * 4);
    if (done < size)
        encode_tail (p + done, size - done, text + done / 3 * 4);
    text[BASE64_ENCODED_SIZE (size)] = '\0';
    return BASE64_ENCODED_SIZE (size);
}

/* The number of padding characters at the end of a text whose length is a multiple of 4. */
static size_t padding (const char *text, size_t len)
{
    if (len == 0 || text[len - 1] != '=')
        return 0;
    return text[len - 2] == '=' ? 2 : 1;
}

/* Read the last group, of which 'pad' characters are padding; unused bits must be 0. */
static int decode_tail (const unsigned char *p, size_t pad, unsigned char *out)
{
    const unsigned char group[4] = { p[0], p[1], pad > 1 ? 'A' : p[2], 'A' };
    int32_t x = quad (group);

    if (x < 0 || (x & (pad > 1 ? 0xffff : 0xff)))
        return -1;
    out[0] = x >> 16;
    if (pad == 1)
        out[1] = x >> 8 & 0xff;
    return 0;
}

ssize_t base64_decode (const char *text, size_t len, void *buf, size_t size)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned char *out = buf;
    size_t pad = padding (text, len % 4 == 0 ? len : 0);
    size_t bytes = len / 4 * 3 - pad;

    if (len % 4 != 0)
        return errset (EINVAL);
    if (bytes > size)
        return errset (ENOSPC);
    size_t full = pad > 0 ? len - 4 : len;
    size_t done = decode_begin (p, full, out);
    done += decode_plain (p + done, full - done, out + done / 4 * 3);
    if (done < full || (pad > 0 && decode_tail (p + full, pad, out + full / 4 * 3) < 0))
        return errset (EINVAL);
    return bytes;
}
