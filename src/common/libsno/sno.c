/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sno.c - ids: layout, time, order, ranges, stored forms and text
 *
 * Invariant: bytes 0-4 are the time block (unit and tick), bytes 5-9 the payload (meta, partition, sequence), both big
 * endian. So memcmp () gives the order of the ids.
 */
#include <errno.h>
#include <string.h>

#include "idtree/sno.h"
#include "libutil/radix.h"
#include "libutil/minmax.h"
#include "libutil/errprintf.h"
#include "libutil/id_text.h"

static const sno_t zero_id;

struct sno_fields sno_split (const sno_t *id)
{
    uint64_t time = get_be (id->bytes, 5);
    return (struct sno_fields){
        .unit = time >> 1,
        .tick = time & 1,
        .meta = id->bytes[5],
        .partition = (uint32_t)get_be (id->bytes + 6, 2),
        .sequence = (uint32_t)get_be (id->bytes + 8, 2),
    };
}

int sno_join (const struct sno_fields *f, sno_t *id)
{
    if (f->unit > SNO_UNIT_MAX)
        return errset (EOVERFLOW);
    if (f->tick > 1 || f->meta > SNO_META_MAX || f->partition > SNO_PARTITION_MAX || f->sequence > SNO_SEQUENCE_MAX)
        return errset (EINVAL);
    put_be (id->bytes, 5, f->unit << 1 | f->tick);
    id->bytes[5] = (uint8_t)f->meta;
    put_be (id->bytes + 6, 2, f->partition);
    put_be (id->bytes + 8, 2, f->sequence);
    return 0;
}

int64_t sno_unix_ns (const sno_t *id)
{
    return (int64_t)sno_split (id).unit * SNO_UNIT_NS + SNO_EPOCH_NS;
}

int sno_unit_at (int64_t unix_ns, uint64_t *unit)
{
    if (unix_ns < SNO_EPOCH_NS || (uint64_t)(unix_ns - SNO_EPOCH_NS) / SNO_UNIT_NS > SNO_UNIT_MAX)
        return errset (EOVERFLOW);
    *unit = (uint64_t)(unix_ns - SNO_EPOCH_NS) / SNO_UNIT_NS;
    return 0;
}

bool sno_is_zero (const sno_t *id)
{
    return !memcmp (id, &zero_id, sizeof (*id));
}

int sno_compare (const sno_t *a, const sno_t *b)
{
    int order = memcmp (a, b, sizeof (*a));
    return (order > 0) - (order < 0);
}

static inline uint64_t key_cb (const void *id, int word)
{
    const sno_t *sno = id;
    return word == 0 ? get_be (sno->bytes, 8) : get_be (sno->bytes + 8, 2);
}

static void sort_cb (void *ids, size_t count)
{
    radix_sort (ids, count, sizeof (sno_t), key_cb, sort_cb);
}

void sno_sort (sno_t *ids, size_t count)
{
    sort_cb (ids, count);
}

int sno_range (int64_t from_ns, int64_t to_ns, sno_t *lower, sno_t *upper)
{
    uint64_t from, to;

    if (sno_unit_at (from_ns, &from) < 0 || sno_unit_at (to_ns, &to) < 0)
        return -1;
    if (from_ns > to_ns)
        return errset (EINVAL);
    *lower = *upper = zero_id;
    put_be (lower->bytes, 5, from << 1);
    put_be (upper->bytes, 5, to << 1);
    return 0;
}

int sno_from_bytes (const void *bytes, size_t len, sno_t *id)
{
    if (len != SNO_SIZE)
        return errset (EMSGSIZE);
    memcpy (id, bytes, SNO_SIZE);
    return 0;
}

int sno_json_format (const sno_t *id, char *buf, size_t size)
{
    int len = sno_is_zero (id) ? 4 : SNO_TEXT_LEN + 2;

    if (size < (size_t)len + 1)
        return errset (ENOSPC);
    if (len == 4)
        memcpy (buf, "null", 4);
    else {
        sno_format (id, buf + 1, size - 1);
        buf[0] = buf[SNO_TEXT_LEN + 1] = '"';
    }
    buf[len] = '\0';
    return len;
}

int sno_json_parse (const char *token, size_t len, sno_t *id, size_t *errpos)
{
    size_t pos;

    if (len == 4 && !memcmp (token, "null", 4)) {
        *id = zero_id;
        return 0;
    }
    if (len != SNO_TEXT_LEN + 2)
        return errset_at (EMSGSIZE, len < SNO_TEXT_LEN + 2 ? len : SNO_TEXT_LEN + 2, errpos);
    if (token[0] != '"')
        return errset_at (EINVAL, 0, errpos);
    sno_t read;
    if (sno_parse (token + 1, SNO_TEXT_LEN, &read, &pos) < 0)
        return errset_at (errno, pos + 1, errpos);
    if (token[SNO_TEXT_LEN + 1] != '"')
        return errset_at (EINVAL, SNO_TEXT_LEN + 1, errpos);
    *id = read;
    return 0;
}

int sno_from_sql (enum sno_sql type, const void *data, size_t len, sno_t *id)
{
    if (type == SNO_SQL_OTHER)
        return errset (ENOTSUP);
    *id = zero_id;
    if (type == SNO_SQL_NULL || len == 0)
        return 0;
    if (type == SNO_SQL_BYTES)
        return sno_from_bytes (data, len, id);
    return sno_parse (data, len, id, NULL);
}

void sno_partitions_init (struct sno_partitions *partitions, uint64_t unit)
{
    partitions->seed = (uint32_t)((unit ^ unit >> 32) & SNO_PARTITION_MAX);
    __atomic_store_n (&partitions->dealt, 0, __ATOMIC_RELAXED);
}

int sno_partitions_deal (struct sno_partitions *partitions, uint16_t *partition)
{
    uint32_t n = __atomic_load_n (&partitions->dealt, __ATOMIC_RELAXED);
    do {
        if (n > SNO_PARTITION_MAX)
            return errset (ENOSPC);
    } while (!__atomic_compare_exchange_n (&partitions->dealt, &n, n + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    *partition = (uint16_t)(partitions->seed + n);
    return 0;
}

/* --- text --------------------------------------------------------------------------------
 *
 * Base 32: each half of 5 bytes is 8 characters of 5 bits. The alphabet consists of two runs of ASCII, 2-9 and a-x. So
 * two additions make a character of a value, and two comparisons check a character. This keeps the vector forms short.
 *
 * There are two vector forms, made from the same source: one is compiled for SSSE3, the other for AVX2, which needs no
 * register copies. All forms must agree on all input. Each call chooses a form by what the compiler's runtime found at
 * start-up, which needs a load and a test. The AVX2 form is inlined in the functions that choose: another call would
 * add a tenth to the time, and a pointer that is set at start-up (ifunc) even more.
 */

#define DIGITS 8   /* values 0-7 are '2' ... '9' */
#define LETTERS 24 /* values 8-31 are 'a' ... 'x' */
#define GAP ('a' - '2' - DIGITS)

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

/* --- text by vector instructions ----------------------------------------------------------- */

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define VECTOR_FORMS 1

/* A part of a vector form. It is inlined in its caller and compiled for the caller's target. */
#define VECTOR_INLINE static inline __attribute__ ((always_inline, target ("ssse3")))
#define ALL(v)                                         \
    {                                                  \
        v, v, v, v, v, v, v, v, v, v, v, v, v, v, v, v \
    }
#define LOAD(array) _mm_load_si128 ((const __m128i *)(array))

struct constants {
    int16_t shifts[8];     /* 1 << (5k mod 8) */
    int8_t head_pairs[16]; /* bytes 5k/8 + 1 and 5k/8, for the first half */
    int8_t tail_pairs[16]; /* the same for the second half, counted from byte 2 of the id */
    int8_t last_value[16], low_digit[16], gap[16];
    int8_t last_digit[16], to_letter[16], to_top[16];
    int8_t join_10[16]; /* joins two values to 10 bits: * 32, + */
    int16_t join_20[8]; /* joins two of those to 20 bits: * 1024, +; the higher 20 bits are 4 bits up */
    int8_t high[16], low[16];
} __attribute__ ((aligned (16)));

/* Constants that an instruction loads from memory as an operand need no extra time. A compiler that knows their values
 * would construct them in each call. Therefore the attributes make the compiler assume that other code uses the
 * constants and may change them. The loader makes them read-only.
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

/* Character k of a half is the 5 bits from bit 5k on, which lie in the 16 bits of bytes 5k/8 and 5k/8 + 1. Each such
 * pair of bytes goes to a lane of its own. It is shifted left by 5k mod 8, so that the 5 bits are on top, and then
 * shifted right by 11. The left shift is a multiplication, since each lane is shifted by another number. The 8 lanes of
 * each half become 8 bytes.
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

/* A character above '9' must be a letter, any other must be a digit. A character is wrong if and only if its distance
 * from the first character of its kind is below 0 or above the distance of the last letter. In both cases a saturated
 * addition sets the top bit.
 */
VECTOR_INLINE bool all_good (__m128i digits, __m128i letters, const struct constants *k)
{
    __m128i offset = _mm_sub_epi8 (digits, _mm_and_si128 (letters, LOAD (k->to_letter)));
    return _mm_movemask_epi8 (_mm_adds_epu8 (offset, LOAD (k->to_top))) == 0;
}

/* Two multiply-and-add steps join values of 5 bits to 10 bits, and these to 20 bits. Two times 20 bits become 5 bytes.
 * Each of the two contributes 3 bytes, of which they share the middle one. Two overlapping stores write bytes 0-7 and
 * 2-9 of the id, because storing the two halves of a register is faster than storing 8 bytes and 2.
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

/* The next two functions are used if AVX2 is not available. */
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

/* Whether AVX2 is available. The compiler cannot move an AVX2 instruction before this test, because each needs data
 * from memory, which the asm might have changed.
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

/* A function that is not aligned in this way may need an eighth more time. */
#define CHOOSES __attribute__ ((target ("avx2"), aligned (64)))

#else

#define encode_best encode_plain
#define decode_best decode_plain
#define encode_second encode_plain
#define decode_second decode_plain
#define best_works() true
#define CHOOSES

#endif /* x86-64 */

/* --- text: the choice ---------------------------------------------------------------------- */

/* The next two functions handle all cases except the fast form without errors. They are not inlined, so that the
 * functions that choose need no stack frame.
 */
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

/* --- many texts ---------------------------------------------------------------------------- */

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
