/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sno.h - sno: an 80-bit unique id that sorts by time and contains a byte of the user
 *
 * An id is 10 bytes, big endian. From the most significant bit:
 *
 *     39  unit       time in units of 4 ms since 2010-01-01T00:00:00Z
 *      1  tick       "tick-tock": which of two timelines the unit belongs to
 *      8  meta       the user's byte; 0 has no special meaning
 *     16  partition  the generator that made the id
 *     16  sequence   which of the partition's ids in that unit and tick
 *
 * Bytes, numbers and text sort alike, so memcmp () orders ids by time.
 *
 * A name in parentheses is the corresponding function of the original. These functions need only libc. Values and
 * codecs have no state and may be used in any thread. Functions that fail return -1 (or NULL) with errno set and leave
 * their outputs untouched, unless stated otherwise.
 */
#ifndef IDTREE_SNO_H
#define IDTREE_SNO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define SNO_SIZE 10     /* bytes of an id */
#define SNO_TEXT_LEN 16 /* characters of its text form, without a NUL */
#define SNO_TEXT_MAX 17 /* bytes of the text with its NUL */
#define SNO_UNIT_NS INT64_C (4000000)
#define SNO_EPOCH_NS (INT64_C (1262304000) * 1000000000) /* since the Unix epoch: 2010-01-01T00:00:00Z */
#define SNO_UNIT_MAX ((UINT64_C (1) << 39) - 1)          /* 2079-09-07T15:47:35.548Z */
#define SNO_META_MAX 255U
#define SNO_PARTITION_MAX 65535U
#define SNO_SEQUENCE_MAX 65535U
#define SNO_PER_UNIT 65536U /* ids that one generator makes in one unit: one per 61.04 ns */

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

/* Split an id into its fields. Any 10 bytes are a valid id. */
struct sno_fields sno_split (const sno_t *id);

/* Join fields to an id in '*id'.  Returns 0, or -1 with errno set:
 *   EOVERFLOW  the unit does not fit in 39 bits
 *   EINVAL     another field is out of range
 */
int sno_join (const struct sno_fields *fields, sno_t *id);

/* The beginning of the id's unit in nanoseconds since the Unix epoch. The tick is not part of the time. */
int64_t sno_unix_ns (const sno_t *id);

/* The unit that contains a time, rounded down, in '*unit'. Returns 0, or -1 with errno EOVERFLOW if the time is before
 * 2010 or after SNO_UNIT_MAX.
 */
int sno_unit_at (int64_t unix_ns, uint64_t *unit);

/* Whether an id is ten zero bytes, which mean "no id". */
bool sno_is_zero (const sno_t *id);

/* Returns -1, 0 or 1 if 'a' sorts before, equal to or after 'b' (ID.Compare). */
int sno_compare (const sno_t *a, const sno_t *b);

/* Sort 'count' ids in place, by their bits (Sort). */
void sno_sort (sno_t *ids, size_t count);

/* The keys between which the ids of [from_ns, to_ns) lie: '*lower' <= id < '*upper'. Both times are nanoseconds since
 * the Unix epoch, and are rounded down to units. Returns 0, or -1 with errno set:
 *   EOVERFLOW  a time is before 2010 or after SNO_UNIT_MAX
 *   EINVAL     'from_ns' is above 'to_ns'
 */
int sno_range (int64_t from_ns, int64_t to_ns, sno_t *lower, sno_t *upper);

/* --- text: 16 characters of "23456789abcdefghijklmnopqrstuvwx" --------------------------- */

/* Write the text of an id with its NUL to 'buf' of 'size' bytes. Returns SNO_TEXT_LEN, or -1 with errno ENOSPC if
 * 'size' is below SNO_TEXT_MAX.
 */
int sno_format (const sno_t *id, char *buf, size_t size);

/* Read an id from the 'len' characters at 'text' (a NUL is not needed). No character is skipped or converted: upper
 * case, blanks and the characters 0 1 y z are errors. Returns 0, or -1 with errno set and the index of the first wrong
 * character in '*errpos' (may be NULL):
 *   EMSGSIZE  'len' is not 16; '*errpos' is the smaller of 'len' and 16
 *   EINVAL    a character is not in the alphabet
 */
int sno_parse (const char *text, size_t len, sno_t *id, size_t *errpos);

/* Write '*count' ids, each followed by '\n', and a NUL to 'buf' of 'size' bytes. Sets '*count' to the number of ids
 * written, beginning with the first, and '*len' to the length without the NUL. Returns 0, or -1 with errno set:
 *   ENOSPC  not all ids fit: the text is whole lines, and the rest begins at ids[*count]
 */
int sno_format_lines (const sno_t *ids, size_t *count, char *buf, size_t size, size_t *len);

/* Read ids from the 'len' characters at 'text', one per line; the '\n' after the last one may be missing. '*count' is
 * the size of 'ids'; sets it to the number of ids read, and '*pos' (may be NULL) to the position where reading ended.
 * Returns 0 if all ids were read, or -1 with errno set:
 *   ENOSPC  'ids' is full, and the text continues: '*pos' is the beginning of the next line
 *   others  as sno_parse (): the line with the index '*count' is not an id, and '*pos' is the position of the error
 */
int sno_parse_lines (const char *text, size_t len, sno_t *ids, size_t *count, size_t *pos);

/* --- bytes, JSON, SQL -------------------------------------------------------------------- */

/* Read an id from 'len' bytes. Returns 0, or -1 with errno EMSGSIZE if 'len' is not 10. */
int sno_from_bytes (const void *bytes, size_t len, sno_t *id);

#define SNO_JSON_TEXT_MAX 19 /* maximum bytes of an id's JSON token with its NUL */

/* (ID.MarshalJSON) Write an id as a JSON token: null for the zero id, else its text in quotes. Returns the length, or
 * -1 with errno ENOSPC if 'size' is too small.
 */
int sno_json_format (const sno_t *id, char *buf, size_t size);

/* (ID.UnmarshalJSON) Read an id from the JSON token of 'len' characters; null gives the zero id. Returns 0, or -1 with
 * errno set, and '*errpos' (may be NULL) as for sno_parse (), counted from the opening quote:
 *   EMSGSIZE  the token is neither null nor 18 characters long
 *   EINVAL    a quote is missing or a character is not in the alphabet
 */
int sno_json_parse (const char *token, size_t len, sno_t *id, size_t *errpos);

enum sno_sql {
    SNO_SQL_NULL,  /* no value: the zero id */
    SNO_SQL_BYTES, /* a byte string: 10 bytes, or none for the zero id */
    SNO_SQL_TEXT,  /* a character string: 16 characters, or none for the zero id */
    SNO_SQL_OTHER, /* any other type */
};

/* (ID.Scan) Read a column's value. (To write an id to a column, write its ten bytes; the zero id is written so, too,
 * and never as NULL.) Returns 0, or -1 with errno set. In contrast to other functions, a failure changes '*id' as
 * stated below, so that the caller never takes the id of the previous row for the id of a row without a valid id:
 *   EMSGSIZE  the length is neither an id's nor 0; '*id' is the zero id
 *   EINVAL    a character is not in the alphabet; '*id' is the zero id
 *   ENOTSUP   the type is SNO_SQL_OTHER; '*id' is untouched
 */
int sno_from_sql (enum sno_sql type, const void *data, size_t len, sno_t *id);

/* --- snapshots: the state of a generator, from which another one can be made ------------- */

struct sno_snapshot {
    uint16_t partition;
    uint16_t sequence_min; /* bounds, inclusive, in either order */
    uint16_t sequence_max; /* 0 means 65535, unless 'sequence_min' is 65535 */
    uint32_t sequence;     /* last sequence issued in unit wall_hi; 0 means sequence_min */
    int64_t now;           /* unit in which the snapshot was taken; 0 in a configuration; see below */
    int64_t wall_hi;       /* unit of the newest id, on the current timeline: 0 ... SNO_UNIT_MAX */
    int64_t wall_safe;     /* highest unit used on the other timeline, at most SNO_UNIT_MAX; below 0: 0 */
    uint32_t drifts;       /* how often the timelines were swapped; the lowest bit is the tick */
};

/* If a snapshot was taken in another unit than 'wall_hi', it does not contain the last sequence of unit 'wall_hi'. A
 * generator made from such a snapshot treats unit 'wall_hi' as used up.
 */

#define SNO_POOL_MIN 6U /* minimum number of sequences within the bounds */

/* Normalize the sequence bounds of 'in': fill in defaults, swap, check. The result is stored in '*out', which may be
 * 'in'. Returns 0, or -1 with errno EINVAL and a sentence in '*why' (may be NULL): the bounds are identical, the pool
 * is below SNO_POOL_MIN, or the sequence is below the lower bound. Walls are not checked.
 */
int sno_snapshot_sanitize (const struct sno_snapshot *in, struct sno_snapshot *out, const char **why);

#define SNO_SNAPSHOT_TEXT_MAX 256 /* maximum bytes of a snapshot's text with its NUL */

/* Write a snapshot as a JSON object, as the original stores a GeneratorSnapshot:
 *   {"partition":[65,10],"sequenceMin":5,"sequenceMax":500,"sequence":77,
 *    "now":9,"wallHi":9,"wallSafe":7,"drifts":3}                           (in one line)
 * Returns the length without the NUL, or -1 with errno ENOSPC if 'size' is too small.
 */
int sno_snapshot_format (const struct sno_snapshot *snapshot, char *buf, size_t size);

/* Read an object that sno_snapshot_format () wrote, of 'len' characters. Members may be in any order, and missing
 * members are 0. Blanks are allowed as in JSON. Returns 0, or -1 with errno set and the index of the wrong character in
 * '*errpos' (may be NULL):
 *   EINVAL  not a JSON object, an unknown or repeated member, or not an integer
 *   ERANGE  a number does not fit its member
 */
int sno_snapshot_parse (const char *json, size_t len, struct sno_snapshot *snapshot, size_t *errpos);

/* --- partitions by themselves ------------------------------------------------------------ */

/* An object that deals each of the 65,536 partitions once, beginning with a partition that depends on the time. If a
 * process has one such object, the partitions are unique within the process. Two processes that start in the same unit
 * deal the same partitions.
 */
struct sno_partitions {
    uint32_t dealt; /* private */
    uint32_t seed;
};

/* Begin with a partition derived from 'unit', which should be the present unit. */
void sno_partitions_init (struct sno_partitions *partitions, uint64_t unit);

/* Deal a partition in '*partition'. May be called in any thread. Returns 0, or -1 with errno ENOSPC if all partitions
 * have been dealt.
 */
int sno_partitions_deal (struct sno_partitions *partitions, uint16_t *partition);

/* --- generator --------------------------------------------------------------------------- */

/* A generator never makes an id twice, with any number of threads and any clock, because unit, tick and sequence are
 * one 64-bit word that is always replaced as a whole. After fork () a child process would make the same ids as its
 * parent. Therefore all functions that make ids fail in the child with EPERM: the child must make its own generator,
 * with another partition.
 *
 *   - In the unit of the newest id the next sequence is used; if all sequences are used, the call must wait
 *     for the next unit (an overflow).
 *   - In a later unit the sequence begins at its lower bound again.
 *   - An earlier unit means that the clock went back. If the unit is above wall_safe, the timelines are swapped and ids
 *     can be made immediately. If not, both timelines have used the unit, and the call must wait
 *     until the clock has left that period.
 *
 * The ids of one thread increase as long as the clock does not go back. The zero id is never made.
 */
struct sno_gen;

/* The clock of a generator, if it is not CLOCK_REALTIME with nanosleep (). */
struct sno_time {
    int64_t (*now_ns) (void *arg);                /* nanoseconds since the Unix epoch */
    void (*sleep_ns) (void *arg, int64_t for_ns); /* treated as slept in full, even if it returns early */
    void *arg;
};

struct sno_gen_config {
    struct sno_snapshot start; /* the state to continue from; for a new generator only its partition is set */
    struct sno_time time;      /* all NULL: the system's clock */
};

/* Make a generator; the caller destroys it. The configuration is copied; NULL means a new generator of partition 0 with
 * the system's clock. Returns NULL with errno set:
 *   EINVAL     sno_snapshot_sanitize () refuses the bounds
 *   EOVERFLOW  a wall is outside the format
 *   ENOMEM
 * A child process may call sno_gen_destroy () for its copy of the parent's generator.
 */
struct sno_gen *sno_gen_create (const struct sno_gen_config *config);
void sno_gen_destroy (struct sno_gen *gen);

/* Permit only units lo_unit <= unit < hi_unit. Use this if the caller leases ranges of time, or stores durably which
 * ranges it has used. If no two such ranges overlap, no id is made twice, even if the generator is restarted and all
 * other state is lost. Must not be called while another thread makes ids. Returns 0, or -1 with errno set and the range
 * unchanged:
 *   EINVAL     'lo_unit' is above 'hi_unit'
 *   EOVERFLOW  'hi_unit' is above SNO_UNIT_MAX + 1
 */
int sno_gen_set_range (struct sno_gen *gen, uint64_t lo_unit, uint64_t hi_unit);

/* Reserve up to 'want' (>= 1) ids at time 'unix_ns', which the caller has read. Never waits. On success '*first' is the
 * first id, each further id has the next sequence (sno_next ()), and the function returns the number of ids, 1 ...
 * 65536. On failure it returns -1 with errno set, and for EAGAIN and ESTALE stores the time to wait before another try
 * in '*wait_ns' (may be NULL):
 *   EAGAIN     the unit is used up
 *   ESTALE     the clock is in a period that both timelines have used
 *   ERANGE     the time is outside the range set by sno_gen_set_range ()
 *   EOVERFLOW  the time is before 2010 or after SNO_UNIT_MAX
 *   EINVAL     'want' is 0
 *   EPERM      this is a child process, and the generator is its parent's
 * If several threads call this function, one may pass a time that is older than the time that another thread has passed
 * just before. To the generator the clock then seems to have gone back: ids are still unique, but it swaps timelines
 * without need. sno_gen_try () avoids this.
 */
int sno_gen_reserve (struct sno_gen *gen, uint8_t meta, int64_t unix_ns, unsigned want, sno_t *first, int64_t *wait_ns);

/* Change an id of a run to the next id of the run, which has the next sequence. */
void sno_next (sno_t *id);

/* Make one id at the time of the generator's clock. Never waits. Returns 0, or -1 as sno_gen_reserve (). */
int sno_gen_try (struct sno_gen *gen, uint8_t meta, sno_t *id, int64_t *wait_ns);

/* Make one id at the time of the generator's clock, and wait if necessary, at most 'timeout_ns' in all (negative: no
 * limit; only the time spent waiting counts, and signals do not end the wait). Returns 0, or -1 as sno_gen_try ():
 * EAGAIN and ESTALE mean that the wait would exceed the limit.
 */
int sno_gen_make (struct sno_gen *gen, uint8_t meta, int64_t timeout_ns, sno_t *id);

/* (NewWithTime) Make an id for a specific time, for objects that are older than their ids. Uses tick 0 and a separate
 * sequence, which rolls over silently and does not depend on the time. So of two such ids of one unit the second equals
 * the first if all sequences of the pool were used between them. Such an id may also equal an id that was made at the
 * time of the clock. Returns 0, or -1 with errno EOVERFLOW as sno_unit_at (), or EPERM as sno_gen_reserve ().
 */
int sno_gen_make_at (struct sno_gen *gen, uint8_t meta, int64_t unix_ns, sno_t *id);

struct sno_overflow {
    int64_t unix_ns;  /* time of this call of the callback */
    unsigned blocked; /* calls that wait; 0: the overflow has ended */
    unsigned ticks;   /* quarters of a unit since the overflow began, plus one: 1, 5, 9 ... */
};

/* (SequenceOverflowNotification) Call 'cb' if sno_gen_make () must wait because a unit is used up: once in each unit of
 * the overflow, and once with 'blocked' 0 when no call waits any longer. A waiting thread calls 'cb', one thread at a
 * time; 'cb' must not block. Set the callback before other threads use the generator.
 */
typedef void (*sno_overflow_f) (const struct sno_overflow *overflow, void *arg);
void sno_gen_on_overflow (struct sno_gen *gen, sno_overflow_f cb, void *arg);

/* (Cap) The number of ids in a unit: sequence_max - sequence_min + 1. */
uint32_t sno_gen_cap (const struct sno_gen *gen);

/* (Sequence) The last sequence issued in the current unit of the generator's clock; sequence_min if the newest id is of
 * another unit. While calls wait because the unit is used up, the value exceeds sequence_max by the number of these
 * calls.
 */
uint32_t sno_gen_sequence (struct sno_gen *gen);

/* (Len) The number of ids issued in the current unit of the generator's clock: 0 ... cap. */
uint32_t sno_gen_len (struct sno_gen *gen);

/* (Snapshot, Partition, SequenceMin, SequenceMax) The state from which sno_gen_create () can continue. It is consistent
 * even if ids are made meanwhile. A snapshot does not contain ids that are made after it: take it when the generator
 * makes no further ids, or raise it (sno_snapshot_raise ()).
 */
void sno_gen_snapshot (struct sno_gen *gen, struct sno_snapshot *snapshot);

/* Change a snapshot so that a generator made from it makes no id in units below 'unit', on either timeline, and fails
 * with ESTALE, or waits, while the clock is below 'unit'. To survive a crash, raise a snapshot to a unit and store it
 * before the generator may make ids up to that unit; keep the generator below that unit with sno_gen_set_range ().
 * Returns 0, or -1 with errno EOVERFLOW if 'unit' is 0 or above SNO_UNIT_MAX.
 */
int sno_snapshot_raise (struct sno_snapshot *snapshot, uint64_t unit);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* IDTREE_SNO_H */
