/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sno.h - sno: an 80-bit unique id that sorts by time and carries a byte of the user's
 *
 * An id is 10 bytes, big endian.  From the most significant bit:
 *
 *     39  unit       time in units of 4 ms since 2010-01-01T00:00:00Z
 *      1  tick       "tick-tock": which of two timelines the unit belongs to
 *      8  meta       the user's byte, 0 is a value like any other
 *     16  partition  who made the id
 *     16  sequence   which of the ids that partition made in that unit and tick
 *
 * Bytes, numbers and text sort alike, so memcmp () orders ids by time.
 *
 * A name in parentheses is that of the original's function.  Everything here uses libc alone.
 * Values and codecs hold no state and may be called from any thread. Functions that fail return -1
 * (or NULL) with errno set and leave their outputs untouched, unless said otherwise.
 */
#ifndef IDTREE_SNO_H
#define IDTREE_SNO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SNO_SIZE 10     /* bytes of an id */
#define SNO_TEXT_LEN 16 /* characters of its text form, without a NUL */
#define SNO_TEXT_MAX 17 /* bytes that hold it with its NUL */
#define SNO_UNIT_NS INT64_C (4000000)
#define SNO_EPOCH_NS (INT64_C (1262304000) * 1000000000) /* since Unix: 2010-01-01T00:00:00Z */
#define SNO_UNIT_MAX ((UINT64_C (1) << 39) - 1)          /* 2079-09-07T15:47:35.548Z */
#define SNO_META_MAX 255U
#define SNO_PARTITION_MAX 65535U
#define SNO_SEQUENCE_MAX 65535U
#define SNO_PER_UNIT 65536U /* ids that one generator makes in one unit: one in 61.04 ns */

typedef struct {
    uint8_t bytes[SNO_SIZE];
} sno_t;

/* --- values ------------------------------------------------------------------------------ */

struct sno_fields {
    uint64_t unit;      /* 0 ... SNO_UNIT_MAX */
    uint32_t tick;      /* 0 or 1 */
    uint32_t meta;      /* 0 ... SNO_META_MAX */
    uint32_t partition; /* 0 ... SNO_PARTITION_MAX */
    uint32_t sequence;  /* 0 ... SNO_SEQUENCE_MAX */
};

/* Split an id into its fields.  Every 10 bytes are an id. */
struct sno_fields sno_split (const sno_t *id);

/* Join fields to an id in '*id'.  Returns 0, or -1 with errno set:
 *   EOVERFLOW  the unit does not fit in 39 bits
 *   EINVAL     another field is out of range
 */
int sno_join (const struct sno_fields *fields, sno_t *id);

/* The start of the id's unit in nanoseconds since Unix.  The tick is no part of the time. */
int64_t sno_unix_ns (const sno_t *id);

/* The unit that contains a time, rounded down, in '*unit'.  Returns 0, or -1 with errno EOVERFLOW
 * when the time lies before 2010 or behind SNO_UNIT_MAX.
 */
int sno_unit_at (int64_t unix_ns, uint64_t *unit);

/* True for ten zero bytes, which stand for "no id". */
bool sno_is_zero (const sno_t *id);

/* -1, 0 or 1, as 'a' sorts before, with or behind 'b' (ID.Compare). */
int sno_compare (const sno_t *a, const sno_t *b);

/* Sort 'count' ids in place, by their bits (Sort). */
void sno_sort (sno_t *ids, size_t count);

/* The keys of the ids made in [from_ns, to_ns), nanoseconds since Unix, both rounded down to units:
 * '*lower' <= id < '*upper'.  Returns 0, or -1 with errno set:
 *   EOVERFLOW  a time lies before 2010 or behind SNO_UNIT_MAX
 *   EINVAL     'from_ns' is above 'to_ns'
 */
int sno_range (int64_t from_ns, int64_t to_ns, sno_t *lower, sno_t *upper);

/* --- text: 16 characters of "23456789abcdefghijklmnopqrstuvwx" --------------------------- */

/* Write the text of an id with its NUL to 'buf' of 'size' bytes.  Returns SNO_TEXT_LEN, or -1 with
 * errno ENOSPC when 'size' is below SNO_TEXT_MAX.
 */
int sno_format (const sno_t *id, char *buf, size_t size);

/* Read an id from the 'len' characters at 'text' (a NUL is not needed).  Nothing is skipped or
 * folded: upper case, blanks and the letters 0 1 y z are errors.  Returns 0, or -1 with errno set
 * and the index of the first character at fault in '*errpos' (which may be NULL):
 *   EMSGSIZE  'len' is not 16; '*errpos' is the smaller of 'len' and 16
 *   EINVAL    a character is not of the alphabet
 */
int sno_parse (const char *text, size_t len, sno_t *id, size_t *errpos);

/* Write '*count' ids, each with a '\n' behind it, and a NUL to 'buf' of 'size' bytes.  The number of those that are
 * written, from the first on, goes to '*count', the length without the NUL to '*len'.  Returns 0, or -1 with errno set:
 *   ENOSPC  no more of them fit: what is written is whole lines, and the rest begins at ids[*count]
 */
int sno_format_lines (const sno_t *ids, size_t *count, char *buf, size_t size, size_t *len);

/* Read ids from the 'len' characters at 'text', one a line; behind the last one '\n' may be left out.  There is room
 * for '*count'; the number of those that are read goes there, and where reading ended to '*pos' (which may be NULL).
 * Returns 0 when all are read, or -1 with errno set:
 *   ENOSPC  there are more: '*pos' is where the next line begins
 *   others  as sno_parse () has it: the line with the index '*count' is no id, and '*pos' is what is at fault
 */
int sno_parse_lines (const char *text, size_t len, sno_t *ids, size_t *count, size_t *pos);

/* --- bytes, JSON, SQL -------------------------------------------------------------------- */

/* Read an id from 'len' bytes.  Returns 0, or -1 with errno EMSGSIZE when 'len' is not 10. */
int sno_from_bytes (const void *bytes, size_t len, sno_t *id);

#define SNO_JSON_TEXT_MAX 19 /* bytes that hold any JSON token of an id with its NUL */

/* (ID.MarshalJSON)  Write an id as a JSON token: null for the zero id, else its text in quotes.
 * Returns its length, or -1 with errno ENOSPC when 'size' is too small.
 */
int sno_json_format (const sno_t *id, char *buf, size_t size);

/* (ID.UnmarshalJSON)  Read an id from the JSON token of 'len' characters; null gives the zero id.
 * Returns 0, or -1 with errno set, and '*errpos' (may be NULL) as for sno_parse, counted in the
 * token with its quotes:
 *   EMSGSIZE  the token is neither null nor 18 characters long
 *   EINVAL    a quote is missing or a character is not of the alphabet
 */
int sno_json_parse (const char *token, size_t len, sno_t *id, size_t *errpos);

enum sno_sql {
    SNO_SQL_NULL,  /* no value: the zero id */
    SNO_SQL_BYTES, /* a byte string: 10 bytes, or none for the zero id */
    SNO_SQL_TEXT,  /* a character string: 16 characters, or none for the zero id */
    SNO_SQL_OTHER, /* a type that no id is stored as */
};

/* (ID.Scan)  Read a column's value.  (A column is written as the ten bytes of the id, the zero id
 * too: never as NULL.)  Returns 0, or -1 with errno set; here '*id' is touched on failure, as
 * noted, so that a row that holds no id never keeps the id of the row before:
 *   EMSGSIZE  the length fits neither an id nor "none"; '*id' is the zero id
 *   EINVAL    a character is not of the alphabet; '*id' is the zero id
 *   ENOTSUP   the type is SNO_SQL_OTHER; '*id' is untouched
 */
int sno_from_sql (enum sno_sql type, const void *data, size_t len, sno_t *id);

/* --- snapshots: what a generator is made from, and what is left of it -------------------- */

struct sno_snapshot {
    uint16_t partition;
    uint16_t sequence_min; /* both included, in either order; 0, 0 stands for 0, 65535 */
    uint16_t sequence_max;
    uint32_t sequence; /* last one issued in unit wall_hi; 0 stands for sequence_min */
    int64_t now;       /* unit in which it was taken, 0 in a configuration; see below */
    int64_t wall_hi;   /* unit of the newest id, on the current timeline: 0 ... SNO_UNIT_MAX */
    int64_t wall_safe; /* highest unit used on the other timeline: ... SNO_UNIT_MAX; below 0: 0 */
    uint32_t drifts;   /* how often the timelines were swapped; the lowest bit is the tick */
};

/* A snapshot that was taken in another unit than 'wall_hi' does not tell the sequence: a generator
 * made from it takes that unit as used up.
 */

#define SNO_POOL_MIN 6U /* least number of sequences between the bounds */

/* Put the sequence bounds of 'in' in order: fill in defaults, swap, check; the result goes to
 * '*out', which may be 'in'.  Returns 0, or -1 with errno EINVAL and in '*why' (may be NULL) a
 * sentence: the bounds are identical, the pool is below SNO_POOL_MIN, or the sequence is below the
 * lower bound. Walls are not looked at.
 */
int sno_snapshot_sanitize (const struct sno_snapshot *in, struct sno_snapshot *out, const char **why);

#define SNO_SNAPSHOT_TEXT_MAX 256 /* bytes that hold any snapshot with its NUL */

/* Write a snapshot as a JSON object, as the original stores a GeneratorSnapshot:
 *   {"partition":[65,10],"sequenceMin":5,"sequenceMax":500,"sequence":77,
 *    "now":9,"wallHi":9,"wallSafe":7,"drifts":3}                           (in one line)
 * Returns the length without the NUL, or -1 with errno ENOSPC when 'size' is too small.
 */
int sno_snapshot_format (const struct sno_snapshot *snapshot, char *buf, size_t size);

/* Read such an object of 'len' characters; members may come in any order and may be left out (0),
 * blanks as JSON allows them.  Returns 0, or -1 with errno set and the index of the character at
 * fault in '*errpos' (may be NULL):
 *   EINVAL  no JSON object, a member that is unknown or comes twice, not a whole number
 *   ERANGE  a number does not fit its member
 */
int sno_snapshot_parse (const char *json, size_t len, struct sno_snapshot *snapshot, size_t *errpos);

/* --- partitions by themselves ------------------------------------------------------------ */

/* Deals each of the 65,536 partitions once, from one that depends on the time.  Unique inside one
 * process that has one such object; two processes started in the same unit deal the same ones.
 */
struct sno_partitions {
    uint32_t dealt; /* private */
    uint32_t seed;
};

/* Start at a partition derived from 'unit', the current one. */
void sno_partitions_init (struct sno_partitions *partitions, uint64_t unit);

/* Deal one in '*partition'.  May be called from any thread.  Returns 0, or -1 with errno ENOSPC
 * when all are dealt.
 */
int sno_partitions_deal (struct sno_partitions *partitions, uint16_t *partition);

/* --- generator --------------------------------------------------------------------------- */

/* Never makes an id twice, from any number of threads, whatever the clock does: unit, tick and
 * sequence are one 64-bit word that is only ever replaced whole.  In a child process of fork (),
 * which would make the ids of its parent, all that makes ids fails with EPERM: it takes a generator
 * of its own, with another partition.
 *
 *   - In the unit of the newest id the next sequence follows; when all are used the call must wait
 *     for the next unit (an overflow).
 *   - In a later unit the sequence starts again at its lower bound.
 *   - In an earlier unit the clock went back.  Above wall_safe the timelines are swapped and ids
 *     go on at once; at or below it both timelines used the unit, and the call must wait until the
 *     clock has left that period.
 *
 * Ids of one thread increase for as long as the clock does not go back.  The zero id is never made.
 */
struct sno_gen;

/* Where a generator takes the time from, if not from CLOCK_REALTIME and nanosleep (). */
struct sno_time {
    int64_t (*now_ns) (void *arg);                /* nanoseconds since Unix */
    void (*sleep_ns) (void *arg, int64_t for_ns); /* counts as slept in full, also if it returns early */
    void *arg;
};

struct sno_gen_config {
    struct sno_snapshot start; /* what it continues; all zero but the partition for a new one */
    struct sno_time time;      /* all NULL: the system's */
};

/* Make a generator, which the caller destroys.  The configuration is copied; NULL stands for a new
 * generator of partition 0 and the system's time.  Returns NULL with errno set:
 *   EINVAL     sno_snapshot_sanitize refuses the bounds
 *   EOVERFLOW  a wall is outside the format
 *   ENOMEM
 * What is left of a parent's generator in a child process may be destroyed there.
 */
struct sno_gen *sno_gen_create (const struct sno_gen_config *config);
void sno_gen_destroy (struct sno_gen *gen);

/* Allow only units lo <= unit < hi.  For owners of a leased or durable range of time, which make
 * any restart safe: where ranges never overlap, no id is made twice whatever was forgotten.  Not
 * to be called while another thread takes ids.  Returns 0, or -1 with errno set and the range as it
 * was:
 *   EINVAL     'lo_unit' is above 'hi_unit'
 *   EOVERFLOW  'hi_unit' is above SNO_UNIT_MAX + 1
 */
int sno_gen_set_range (struct sno_gen *gen, uint64_t lo_unit, uint64_t hi_unit);

/* Reserve up to 'want' (>= 1) ids at a time that the caller has read.  On success the first is
 * '*first', the next is one more in sequence (sno_next), and their number, 1 ... 65536, is
 * returned.  Never waits. Returns -1 with errno set, and for EAGAIN and ESTALE in '*wait_ns' (may
 * be NULL) the time after which it is worth trying again:
 *   EAGAIN     the unit is used up
 *   ESTALE     the clock is in a period that both timelines have used
 *   ERANGE     the time is outside the range set by sno_gen_set_range
 *   EOVERFLOW  the time lies before 2010 or behind SNO_UNIT_MAX
 *   EINVAL     'want' is 0
 *   EPERM      this is a child process, and the generator is its parent's
 * Called from several threads, a time that was read before another thread's later one looks like a
 * clock that went back: still no id comes twice, but timelines are swapped for nothing.
 * sno_gen_try knows better.
 */
int sno_gen_reserve (struct sno_gen *gen, uint8_t meta, int64_t unix_ns, unsigned want, sno_t *first, int64_t *wait_ns);

/* Turn the id of a run into the next one of the run: one more in sequence. */
void sno_next (sno_t *id);

/* Make one id now, by the generator's clock.  Never waits.  Returns 0, or -1 as sno_gen_reserve
 * does.
 */
int sno_gen_try (struct sno_gen *gen, uint8_t meta, sno_t *id, int64_t *wait_ns);

/* Make one id now, waiting as long as it takes but not longer than 'timeout_ns' in all (negative:
 * no limit; time spent waiting is what counts, signals or not).  Returns 0, or -1 as sno_gen_try
 * does: EAGAIN and ESTALE mean that the wait would have exceeded the limit.
 */
int sno_gen_make (struct sno_gen *gen, uint8_t meta, int64_t timeout_ns, sno_t *id);

/* (NewWithTime)  Make an id for a given time: for ids of things that are older than their ids.
 * Uses tick 0 and a sequence of its own that rolls over silently and knows nothing of the time, so
 * two such ids of one unit are equal when a whole pool lies between them, and one of them may equal
 * an id made by the clock. Returns 0, or -1 with errno EOVERFLOW as sno_unit_at does, or EPERM as
 * sno_gen_reserve.
 */
int sno_gen_make_at (struct sno_gen *gen, uint8_t meta, int64_t unix_ns, sno_t *id);

struct sno_overflow {
    int64_t unix_ns;  /* when this was noticed */
    unsigned blocked; /* calls that wait; 0: the overflow has ended */
    unsigned ticks;   /* quarters of a unit since the overflow began, and one: 1, 5, 9 ... */
};

/* (SequenceOverflowNotification)  Call 'cb' when sno_gen_make has to wait because a unit is used
 * up: once in each unit that the overflow lasts, and once with 'blocked' 0 when nobody waits any
 * more.  It is called on a thread that waits, from one thread at a time, and must not block.  To be
 * set before the generator is shared.
 */
typedef void (*sno_overflow_f) (const struct sno_overflow *overflow, void *arg);
void sno_gen_on_overflow (struct sno_gen *gen, sno_overflow_f cb, void *arg);

/* (Cap)  How many ids a unit holds: sequence_max - sequence_min + 1. */
uint32_t sno_gen_cap (const struct sno_gen *gen);

/* (Sequence)  The sequence issued last, by the generator's clock: sequence_min if the newest id is
 * of another unit.  While calls wait because the unit is used up, it exceeds sequence_max by their
 * number.
 */
uint32_t sno_gen_sequence (struct sno_gen *gen);

/* (Len)  How many ids were issued in the current unit, by the generator's clock: 0 ... cap. */
uint32_t sno_gen_len (struct sno_gen *gen);

/* (Snapshot, Partition, SequenceMin, SequenceMax)  The state from which sno_gen_create continues, consistent even while
 * ids are made.  What is made afterwards it does not know of: take it from a generator that has stopped, or raise
 * it.
 */
void sno_gen_snapshot (struct sno_gen *gen, struct sno_snapshot *snapshot);

/* Change a snapshot so that a generator made from it issues nothing in units below 'unit', on
 * either timeline, and waits (ESTALE) while the clock is there.  To survive a crash: before ids
 * are made up to a unit, store a snapshot raised to it, and hold the generator below it with
 * sno_gen_set_range. Returns 0, or -1 with errno EOVERFLOW when 'unit' is 0 or above SNO_UNIT_MAX.
 */
int sno_snapshot_raise (struct sno_snapshot *snapshot, uint64_t unit);

#ifdef __cplusplus
}
#endif

#endif /* IDTREE_SNO_H */
