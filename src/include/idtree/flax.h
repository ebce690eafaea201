/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flax.h - flax: a 96-bit id of 40 bits of milliseconds since 2015-01-01T00:00:00Z and 56 random
 * bits
 *
 * An id is 12 bytes, big endian, or 16 characters; numbers, bytes and text sort alike, by time.
 * Nothing tells who made an id: two makers that draw the same 56 bits in the same millisecond make
 * the same id (about one chance in a hundred when 38 million are made in one millisecond).
 *
 * Everything here uses libc alone.  Values and codecs hold no state and may be called from any
 * thread. Functions that fail return -1 (or NULL) with errno set and leave their outputs untouched.
 */
#ifndef IDTREE_FLAX_H
#define IDTREE_FLAX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FLAX_SIZE 12                           /* bytes of an id */
#define FLAX_TEXT_LEN 16                       /* characters of its text form, without a NUL */
#define FLAX_TEXT_MAX 17                       /* bytes that hold it with its NUL */
#define FLAX_EPOCH_MS INT64_C (1420070400000)  /* since Unix: 2015-01-01T00:00:00Z */
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

/* Split an id into its fields.  Every 12 bytes are an id. */
struct flax_fields flax_split (const flax_t *id);

/* Join fields to an id in '*id'.  Returns 0, or -1 with errno set:
 *   EOVERFLOW  the time does not fit in 40 bits
 *   EINVAL     the random part does not fit in 56 bits
 */
int flax_join (const struct flax_fields *fields, flax_t *id);

/* The time of an id in milliseconds since Unix. */
int64_t flax_unix_ms (const flax_t *id);

/* Milliseconds since Unix to milliseconds since 2015 in '*ms'.  Returns 0, or -1 with errno
 * EOVERFLOW when the time lies before 2015 or behind FLAX_MS_MAX.
 */
int flax_ms_at (int64_t unix_ms, uint64_t *ms);

/* Seconds since Unix, as the original takes them, to milliseconds since 2015 in '*ms': the product
 * with 1000 in double precision, rounded toward zero.  Less than 0.1 us below a millisecond it
 * yields the next one. Returns 0, or -1 with errno set:
 *   EINVAL     the number is not finite
 *   EOVERFLOW  as for flax_ms_at
 */
int flax_ms_at_seconds (double unix_s, uint64_t *ms);

/* -1, 0 or 1, as 'a' sorts before, with or behind 'b'. */
int flax_compare (const flax_t *a, const flax_t *b);

/* Sort 'count' ids in place, by their bits. */
void flax_sort (flax_t *ids, size_t count);

/* The keys of the ids made in [from_ms, to_ms), milliseconds since Unix: '*lower' <= id < '*upper'.
 * Returns 0, or -1 with errno set:
 *   EOVERFLOW  a time lies before 2015 or behind FLAX_MS_MAX
 *   EINVAL     'from_ms' is above 'to_ms'
 */
int flax_range (int64_t from_ms, int64_t to_ms, flax_t *lower, flax_t *upper);

/* --- text: 16 of "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz" ------ */

/* Write the text of an id with its NUL to 'buf' of 'size' bytes.  It may begin with '-': mind options
 * of commands.  Returns FLAX_TEXT_LEN, or -1 with errno ENOSPC when 'size' is below FLAX_TEXT_MAX.
 */
int flax_format (const flax_t *id, char *buf, size_t size);

/* Read an id from the 'len' characters at 'text' (a NUL is not needed).  Nothing is skipped or
 * folded.  Returns 0, or -1 with errno set and the index of the first character at fault in
 * '*errpos' (which may be NULL):
 *   EMSGSIZE  'len' is not 16; '*errpos' is the smaller of 'len' and 16
 *   EINVAL    a character is not of the alphabet
 */
int flax_parse (const char *text, size_t len, flax_t *id, size_t *errpos);

/* Write '*count' ids, each with a '\n' behind it, and a NUL to 'buf' of 'size' bytes.  The number of those that are
 * written, from the first on, goes to '*count', the length without the NUL to '*len'.  Returns 0, or -1 with errno set:
 *   ENOSPC  no more of them fit: what is written is whole lines, and the rest begins at ids[*count]
 */
int flax_format_lines (const flax_t *ids, size_t *count, char *buf, size_t size, size_t *len);

/* Read ids from the 'len' characters at 'text', one a line; behind the last one '\n' may be left out.  There is room
 * for '*count'; the number of those that are read goes there, and where reading ended to '*pos' (which may be NULL).
 * Returns 0 when all are read, or -1 with errno set:
 *   ENOSPC  there are more: '*pos' is where the next line begins
 *   others  as flax_parse () has it: the line with the index '*count' is no id, and '*pos' is what is at fault
 */
int flax_parse_lines (const char *text, size_t len, flax_t *ids, size_t *count, size_t *pos);

/* Read an id from 'len' bytes.  Returns 0, or -1 with errno EMSGSIZE when 'len' is not 12. */
int flax_from_bytes (const void *bytes, size_t len, flax_t *id);

/* --- generator --------------------------------------------------------------------------- */

/* Makes ids from any number of threads.  Random bits come from a generator in memory that takes a
 * new key of 256 bits from getrandom () for every 7.5 KB; after fork () the child takes a key of
 * its own before anything else.
 */
struct flax_gen;

enum flax_mode {
    /* 56 new random bits each: ids of one millisecond are in no order */
    FLAX_RANDOM,

    /* Each id is above the one before, so a generator never repeats one: within a millisecond, and
     * while the clock stands before the newest id, the random part grows by 1 ... 2^32; when it is
     * at its end, the time goes one millisecond ahead.
     */
    FLAX_INCREASING,
};

/* Where a generator takes the time from, if not from CLOCK_REALTIME. */
struct flax_time {
    int64_t (*now_ms) (void *arg); /* milliseconds since Unix */
    void *arg;
};

/* Where it takes random bits from, if not from getrandom (). */
struct flax_bits {
    uint64_t (*random) (void *arg); /* 64 random bits */
    void *arg;
};

struct flax_gen_config {
    enum flax_mode mode;
    struct flax_time time; /* all NULL: the system's */
    struct flax_bits bits; /* the same */
};

/* Make a generator, which the caller destroys.  The configuration is copied; NULL stands for
 * FLAX_RANDOM and the system's time and bits.  Returns NULL with errno set: ENOMEM, or as
 * getrandom ().
 */
struct flax_gen *flax_gen_create (const struct flax_gen_config *config);
void flax_gen_destroy (struct flax_gen *gen);

/* Make 'want' (>= 1) ids at a time that the caller has read, to 'ids'.  Never waits.  Returns 'want',
 * or -1 with errno set:
 *   EINVAL     'want' is 0 or above INT_MAX
 *   EOVERFLOW  the time lies before 2015 or behind FLAX_MS_MAX, or all ids of the last millisecond
 *              are behind us
 *   other      as getrandom ()
 * On failure the first ids may have been written; they are used up.
 */
int flax_gen_reserve (struct flax_gen *gen, int64_t unix_ms, unsigned want, flax_t *ids);

/* Make one id now, by the generator's clock.  Never waits.  Returns 0, or -1 as flax_gen_reserve
 * does.
 */
int flax_gen_make (struct flax_gen *gen, flax_t *id);

#ifdef __cplusplus
}
#endif

#endif /* IDTREE_FLAX_H */
