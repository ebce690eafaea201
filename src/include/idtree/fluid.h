/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fluid.h - the FLUID of Flux RFC 19: a unique 64-bit id that sorts by time
 *
 * From the most significant bit: 40 bits of milliseconds since the epoch of the instance, 14 bits of generator, 10 bits
 * of sequence. A generator makes 1024 ids in each millisecond.
 *
 * These functions use only libc, allocate nothing, hold no state of their own, and read neither locale, environment nor
 * clock. Any thread may call them; one generator serves one thread at a time. Functions that fail return -1 (or NULL)
 * with errno set and leave their outputs untouched.
 */
#ifndef IDTREE_FLUID_H
#define IDTREE_FLUID_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef uint64_t fluid_t;

#define FLUID_TIMESTAMP_MAX ((UINT64_C (1) << 40) - 1) /* milliseconds: about 34.8 years */
#define FLUID_GENERATOR_MAX 16383U
#define FLUID_SEQUENCE_MAX 1023U
#define FLUID_PER_MS 1024U /* ids that one generator makes in one millisecond */
#define FLUID_GRANULE 16U  /* the unit in which sequence numbers can be reserved (fluid_gen_reserve_in ()) */
#define FLUID_GRANULES (FLUID_PER_MS / FLUID_GRANULE)

/* --- layout ---------------------------------------------------------------------------- */

struct fluid_fields {
    uint64_t timestamp_ms; /* 0 ... FLUID_TIMESTAMP_MAX, since the epoch of the instance */
    uint32_t generator;    /* 0 ... FLUID_GENERATOR_MAX */
    uint32_t sequence;     /* 0 ... FLUID_SEQUENCE_MAX */
};

/* Split an id into its fields.  Every 64-bit value is an id. */
struct fluid_fields fluid_split (fluid_t id);

/* Join fields to an id in '*id'.  Returns 0, or -1 with errno set:
 *   EOVERFLOW  the timestamp does not fit in 40 bits
 *   EINVAL     the generator or the sequence is out of range
 */
int fluid_join (const struct fluid_fields *fields, fluid_t *id);

/* The bounds of the ids made in [from_ms, to_ms), milliseconds since the epoch of the instance: '*lower' <= id <
 * '*upper'. Returns 0, or -1 with errno set:
 *   EOVERFLOW  a time does not fit in 40 bits
 *   EINVAL     'from_ms' is above 'to_ms'
 */
int fluid_range (uint64_t from_ms, uint64_t to_ms, fluid_t *lower, fluid_t *upper);

/* --- text (RFC 19, "String Encoding") --------------------------------------------------- */

enum fluid_form {
    FLUID_DEC,      /* 6731191091817518 */
    FLUID_HEX,      /* 0x17e9fb8df16c2e */
    FLUID_DOTHEX,   /* 0017.e9fb.8df1.6c2e */
    FLUID_F58,      /* fuZZybuNNy, all ASCII */
    FLUID_F58_UTF8, /* the same with U+0192 as the first letter */
    FLUID_WORDS,    /* reform-remote-galileo--heart-package-academy (mnemonicode, low 32 bits first) */
    FLUID_EMOJI,    /* base 576, UTF-8 */
};

#define FLUID_FORM_COUNT 7
#define FLUID_TEXT_MAX 64 /* bytes that hold any form of any id with its NUL */

/* Write 'id' in 'form' with its NUL to 'buf' of 'size' bytes. Returns the length without the NUL, or -1 with errno set:
 *   ENOSPC  'size' is too small. FLUID_TEXT_MAX is enough for all forms, and fastest; the bytes of 'buf' after the NUL
 *           are then undefined.
 *   EINVAL  unknown form
 */
int fluid_format (fluid_t id, enum fluid_form form, char *buf, size_t size);

/* Read an id in any form from the 'len' characters at 'text' (no NUL needed). Leading and trailing white space (space,
 * \t, \n, \v, \f, \r) is skipped. The form is detected in the order of RFC 19; words may have capitals. Returns 0, or
 * -1 with errno set and the index of the error in '*errpos' (which may be NULL):
 *   EINVAL  not an id. '*errpos' is the first wrong character, the first letter of an unknown word, or the end of a
 *           text that is too short.
 *   ERANGE  a number of 2^64 or more (or a triplet of words of 2^32 or more), which begins at '*errpos'
 */
int fluid_parse (const char *text, size_t len, fluid_t *id, size_t *errpos);

/* Write '*count' ids in 'form', each followed by '\n', and a NUL to 'buf' of 'size' bytes. Stores the number of ids
 * written in '*count', and the length without the NUL in '*len'. Returns 0, or -1 with errno set:
 *   ENOSPC  not all ids fit: 'buf' has whole lines, and the rest begins at ids[*count]
 *   EINVAL  unknown form
 */
int fluid_format_lines (const fluid_t *ids, size_t *count, enum fluid_form form, char *buf, size_t size, size_t *len);

/* Read ids in any form, one a line, from the 'len' characters at 'text'; the last '\n' may be missing. 'ids' has room
 * for '*count' ids. Stores the number of ids read in '*count', and the index where reading ended in '*pos' (which may
 * be NULL). Returns 0 when all ids are read, or -1 with errno set:
 *   ENOSPC          'ids' is full, and the text continues: '*pos' is where the next line begins
 *   EINVAL, ERANGE  as for fluid_parse (): the line with index '*count' is not an id, and '*pos' is the error's index
 */
int fluid_parse_lines (const char *text, size_t len, fluid_t *ids, size_t *count, size_t *pos);

/* The name of a form as commands take it: dec, hex, dothex, f58, ƒ58, words, emoji. NULL: unknown form. */
const char *fluid_form_name (enum fluid_form form);

/* Find the form with the name 'name'. Returns 0 with the form in '*form', or -1 with errno EINVAL (unknown name). */
int fluid_form_find (const char *name, enum fluid_form *form);

/* --- generator -------------------------------------------------------------------------- */

/* A generator never reads a clock: its caller passes the time. Members are private to fluid_gen_ functions.
 *
 * 1. A generator serves one thread at a time. Its owner ensures this by a lock, or by making ids in one thread only.
 * 2. A generator is a value: a copy makes the same ids as the original. After fork () the child process has such a
 *    copy, and must not use it.
 */
struct fluid_gen {
    uint64_t lo_ms; /* timestamps lo_ms <= t < hi_ms are allowed */
    uint64_t hi_ms;
    uint64_t last_ms;   /* newest timestamp used, or the lowest that may still be used */
    uint32_t used;      /* sequence numbers of last_ms that are used: 0 ... 1024 */
    uint32_t generator; /* 0 ... FLUID_GENERATOR_MAX */
};

struct fluid_gen_config {
    uint32_t generator; /* 0 ... FLUID_GENERATOR_MAX */
    uint64_t lo_ms;     /* the first range of time, as for fluid_gen_set_range () */
    uint64_t hi_ms;
};

/* Make a generator; NULL means generator 0 without a range of time. Returns 0, or -1 with errno set:
 *   EINVAL     the generator is out of range, or lo_ms is above hi_ms
 *   EOVERFLOW  hi_ms is above FLUID_TIMESTAMP_MAX + 1
 */
int fluid_gen_init (struct fluid_gen *gen, const struct fluid_gen_config *config);

/* Replace the range of time by [lo_ms, hi_ms). Timestamps that were used stay used, so a range that ends below the
 * newest of them allows no ids. An empty range (lo_ms == hi_ms) closes the generator. Returns 0, or -1 with errno set
 * and the range unchanged:
 *   EINVAL     lo_ms is above hi_ms
 *   EOVERFLOW  hi_ms is above FLUID_TIMESTAMP_MAX + 1
 */
int fluid_gen_set_range (struct fluid_gen *gen, uint64_t lo_ms, uint64_t hi_ms);

/* Reserve up to 'want' (>= 1) ids at millisecond 'now_ms'. On success the ids are *first, *first + 1, ..., and their
 * number, 1 ... 1024, is returned. Returns -1 with errno set:
 *   EINVAL     'want' is 0
 *   EAGAIN     'now_ms' is used up, or is below a timestamp that was used: try a later time
 *   ERANGE     'now_ms' is outside the range of time
 *   EOVERFLOW  'now_ms' does not fit in 40 bits: the time field is used up
 */
int fluid_gen_reserve (struct fluid_gen *gen, uint64_t now_ms, uint32_t want, fluid_t *first);

/* As fluid_gen_reserve (), but only with the sequence numbers that 'granules' allows: bit k allows 16 k ... 16 k + 15.
 * The ids are one run, which may be shorter than 'want': call again for more ids of this millisecond. If a number is
 * not allowed and lies below a reserved number, it is skipped for the rest of this millisecond, even if a later call
 * allows it. Fails as fluid_gen_reserve (), and with:
 *   EAGAIN     'granules' allows none of the numbers left in 'now_ms'
 */
int fluid_gen_reserve_in (struct fluid_gen *gen, uint64_t now_ms, uint64_t granules, uint32_t want, fluid_t *first);

/* From now on use no timestamp below 'ms', so that new ids are above earlier ids that the caller knows. The range of
 * time stays unchanged.
 */
void fluid_gen_advance (struct fluid_gen *gen, uint64_t ms);

/* From now on make only ids above 'id', which may be of any generator, but do not skip more ids than this requires. The
 * range of time stays unchanged.
 */
void fluid_gen_follow (struct fluid_gen *gen, fluid_t id);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* IDTREE_FLUID_H */
