/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flax.h - flax: a 96-bit id of 40 bits of milliseconds since 2015-01-01T00:00:00Z and 56 random bits
 *
 * An id is 12 bytes, big endian, or 16 characters; numbers, bytes and text sort alike, by time. An id does not name its
 * generator. So two generators that draw the same 56 bits in the same millisecond make the same id. (If 38 million ids
 * are made in one millisecond, the probability of this is about one percent.)
 *
 * These functions need only libc. Values and codecs have no state and may be used in any thread. Functions that fail
 * return -1 (or NULL) with errno set and leave their outputs untouched.
 */
#ifndef IDTREE_FLAX_H
#define IDTREE_FLAX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define FLAX_SIZE 12                           /* bytes of an id */
#define FLAX_TEXT_LEN 16                       /* characters of its text form, without a NUL */
#define FLAX_TEXT_MAX 17                       /* bytes of the text with its NUL */
#define FLAX_EPOCH_MS INT64_C (1420070400000)  /* since the Unix epoch: 2015-01-01T00:00:00Z */
#define FLAX_MS_MAX ((UINT64_C (1) << 40) - 1) /* 2049-11-03T19:53:47.775Z */
#define FLAX_RANDOM_MAX ((UINT64_C (1) << 56) - 1)

typedef struct {
    uint8_t bytes[FLAX_SIZE];
} flax_t;

/* --- values ------------------------------------------------------------------------------ */

struct flax_fields {
    uint64_t ms;     /* 0 ... FLAX_MS_MAX, since FLAX_EPOCH_MS */
    uint64_t random; /* 0 ... FLAX_RANDOM_MAX */
};

/* Split an id into its fields. Any 12 bytes are a valid id. */
struct flax_fields flax_split (const flax_t *id);

/* Join fields to an id in '*id'.  Returns 0, or -1 with errno set:
 *   EOVERFLOW  the time does not fit in 40 bits
 *   EINVAL     the random part does not fit in 56 bits
 */
int flax_join (const struct flax_fields *fields, flax_t *id);

/* The time of an id in milliseconds since the Unix epoch. */
int64_t flax_unix_ms (const flax_t *id);

/* Convert milliseconds since the Unix epoch to milliseconds since 2015 in '*ms'. Returns 0, or -1 with errno EOVERFLOW
 * if the time is before 2015 or after FLAX_MS_MAX.
 */
int flax_ms_at (int64_t unix_ms, uint64_t *ms);

/* Convert seconds since the Unix epoch, in the type that the original uses, to milliseconds since 2015 in '*ms'. The
 * function multiplies the seconds by 1000 in double precision, and rounds toward zero. For a time less than 0.1 us
 * before a millisecond the result is that millisecond. Returns 0, or -1 with errno set:
 *   EINVAL     the number is not finite
 *   EOVERFLOW  as for flax_ms_at ()
 */
int flax_ms_at_seconds (double unix_s, uint64_t *ms);

/* Returns -1, 0 or 1 if 'a' sorts before, equal to or after 'b'. */
int flax_compare (const flax_t *a, const flax_t *b);

/* Sort 'count' ids in place, by their bits. */
void flax_sort (flax_t *ids, size_t count);

/* The keys between which the ids of [from_ms, to_ms) lie, in milliseconds since the Unix epoch: '*lower' <= id <
 * '*upper'. Returns 0, or -1 with errno set:
 *   EOVERFLOW  a time is before 2015 or after FLAX_MS_MAX
 *   EINVAL     'from_ms' is above 'to_ms'
 */
int flax_range (int64_t from_ms, int64_t to_ms, flax_t *lower, flax_t *upper);

/* --- text: 16 of "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz" ------ */

/* Write the text of an id with its NUL to 'buf' of 'size' bytes. The text may begin with '-', which a command may take
 * for an option. Returns FLAX_TEXT_LEN, or -1 with errno ENOSPC if 'size' is below FLAX_TEXT_MAX.
 */
int flax_format (const flax_t *id, char *buf, size_t size);

/* Read an id from the 'len' characters at 'text' (a NUL is not needed). No character is skipped, and case matters.
 * Returns 0, or -1 with errno set and the index of the first wrong character in '*errpos' (may be NULL):
 *   EMSGSIZE  'len' is not 16; '*errpos' is the smaller of 'len' and 16
 *   EINVAL    a character is not in the alphabet
 */
int flax_parse (const char *text, size_t len, flax_t *id, size_t *errpos);

/* Write '*count' ids, each followed by '\n', and a NUL to 'buf' of 'size' bytes. Sets '*count' to the number of ids
 * written, beginning with the first, and '*len' to the length without the NUL. Returns 0, or -1 with errno set:
 *   ENOSPC  not all ids fit: the text is whole lines, and the rest begins at ids[*count]
 */
int flax_format_lines (const flax_t *ids, size_t *count, char *buf, size_t size, size_t *len);

/* Read ids from the 'len' characters at 'text', one per line; the '\n' after the last one may be missing. '*count' is
 * the size of 'ids'; sets it to the number of ids read, and '*pos' (may be NULL) to the position where reading ended.
 * Returns 0 if all ids were read, or -1 with errno set:
 *   ENOSPC  'ids' is full, and the text continues: '*pos' is the beginning of the next line
 *   others  as flax_parse (): the line with the index '*count' is not an id, and '*pos' is the position of the error
 */
int flax_parse_lines (const char *text, size_t len, flax_t *ids, size_t *count, size_t *pos);

/* Read an id from 'len' bytes. Returns 0, or -1 with errno EMSGSIZE if 'len' is not 12. */
int flax_from_bytes (const void *bytes, size_t len, flax_t *id);

/* --- generator --------------------------------------------------------------------------- */

/* A generator, which any number of threads may use. Its random bits come from a generator in memory, which takes a new
 * key of 256 bits from getrandom () for each 7.5 KB of random bits. After fork () the child process takes its own key
 * before it makes an id.
 */
struct flax_gen;

enum flax_mode {
    /* 56 new random bits for each id, so the ids of one millisecond are in random order */
    FLAX_RANDOM,

    /* Each id is above the id before it, so a generator never repeats an id. Within a millisecond, and while the clock
     * is before the time of the newest id, the random part grows by 1 ... 2^32 for each id. When the random part cannot
     * grow any further, the next id has the next millisecond as its time.
     */
    FLAX_INCREASING,
};

/* The clock of a generator, if it is not CLOCK_REALTIME. */
struct flax_time {
    int64_t (*now_ms) (void *arg); /* milliseconds since the Unix epoch */
    void *arg;
};

/* The source of a generator's random bits, if it is not getrandom (). */
struct flax_bits {
    uint64_t (*random) (void *arg); /* 64 random bits */
    void *arg;
};

struct flax_gen_config {
    enum flax_mode mode;
    struct flax_time time; /* all NULL: the system's clock */
    struct flax_bits bits; /* all NULL: getrandom () */
};

/* Make a generator; the caller destroys it. The configuration is copied; NULL means FLAX_RANDOM with the system's clock
 * and getrandom (). Returns NULL with errno ENOMEM.
 */
struct flax_gen *flax_gen_create (const struct flax_gen_config *config);
void flax_gen_destroy (struct flax_gen *gen);

/* Make 'want' (>= 1) ids in 'ids' at time 'unix_ms', which the caller has read. Never waits. Returns 'want', or -1 with
 * errno set:
 *   EINVAL     'want' is 0 or above INT_MAX
 *   EOVERFLOW  the time is before 2015 or after FLAX_MS_MAX, or the last millisecond is used up
 *   other      as getrandom ()
 * On failure the first ids may have been written to 'ids'; the generator will not make these again.
 */
int flax_gen_reserve (struct flax_gen *gen, int64_t unix_ms, unsigned want, flax_t *ids);

/* Make one id at the time of the generator's clock. Never waits. Returns 0, or -1 as flax_gen_reserve (). */
int flax_gen_make (struct flax_gen *gen, flax_t *id);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* IDTREE_FLAX_H */
