/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uid.h - uid: k-ordered ids, local (64 bits) and global (96 bits), and vector clocks made of them
 *
 * A value is a time (A, B, C) - mega-seconds, seconds and micro-seconds since Unix - with a
 * sequence of 14 bits; a global value also names the node that made it.  Stored, big endian, from
 * the top:
 *
 *   local     20 A   20 B                        10 C / 1024   14 sequence
 *   global    20 A   20 - I of B   32 node   I of B   10 C / 1024   14 sequence
 *
 * I, the drift bits 5 ... 10, sets a window of 2^I seconds in which the ids of one node lie
 * together; across windows time rules.  I is not stored: writer and reader must agree, another I
 * reads as another node and time.  So two ids that differ may be stored alike where one I wrote the
 * one and another I the other: all ids of a set must be written with one I (or name nodes of
 * uid_node_numbered () alone). A step of time is 1.024 ms, 977 of them in a second, the last
 * one 0.576 ms long.
 *
 * A name in parentheses is that of the original's function.  Everything here uses libc alone.
 * Values and codecs hold no state and may be called from any thread. Functions that fail return -1
 * (or NULL) with errno set and leave their outputs untouched.
 */
#ifndef IDTREE_UID_H
#define IDTREE_UID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UID_LOCAL_SIZE 8
#define UID_GLOBAL_SIZE 12
#define UID_LOCAL_TEXT_LEN 11 /* characters, without a NUL */
#define UID_GLOBAL_TEXT_LEN 16
#define UID_TEXT_MAX 17 /* bytes that hold any text with its NUL */

#define UID_DRIFT_MIN 5
#define UID_DRIFT_MAX 10
#define UID_DRIFT_DEFAULT 8

#define UID_A_MAX 1048575
#define UID_B_MAX 999999
#define UID_C_MAX 999999
#define UID_SEQUENCE_MAX 16383
#define UID_PER_STEP 16384U /* ids that one generator makes in one step */
#define UID_STEP_US 1024    /* a step, but for the last one of each second: 576 */
#define UID_STEPS_PER_SECOND 977
#define UID_UNIX_US_MAX INT64_C (1048575999999999999) /* the last micro-second of A = 1048575 */

/* --- nodes ------------------------------------------------------------------------------- */

/* A node by name or by fingerprint alone; 'name' is UTF-8 and borrowed, NULL for the latter. */
struct uid_node {
    const char *name;
    uint32_t fingerprint;
};

/* The fingerprint of a name: Erlang's phash2 of an atom with range 2^32, which is below 2^28.
 * Beware: characters six places apart can cancel out, so "svc-0@svc-0.svc" and "svc-1@svc-1.svc"
 * have the same one.  Where names are numbered, give each node a fingerprint of its own instead.
 */
uint32_t uid_fingerprint (const char *name, size_t len);

/* The fingerprint that versions up to 1.3.4 of the original computed (Erlang's phash): one more. */
uint32_t uid_fingerprint_legacy (const char *name, size_t len);

/* A node with 'name' (borrowed) and its fingerprint. */
struct uid_node uid_node_named (const char *name);

#define UID_NUMBER_MAX ((UINT32_C (1) << 26) - 1)

/* A node by its number, 0 ... UID_NUMBER_MAX: the fingerprint is a bit of one, five of zero, the
 * number.  No name has one of those.  And where their ids are concerned drift bits may differ:
 * shifted by one to five bits, as another I reads it, none of these fingerprints is one of them.
 * So two ids of such nodes are stored alike only if they are the same.
 */
struct uid_node uid_node_numbered (uint32_t number);

/* --- values ------------------------------------------------------------------------------ */

enum uid_kind {
    UID_LOCAL,
    UID_GLOBAL,
};

/* The fields are wider than what is stored because differences may be negative. */
struct uid {
    enum uid_kind kind;
    struct uid_node node; /* of a global value */
    int64_t a, b, c;
    int64_t sequence;
};

/* The local value of a time and a counter: C loses its low ten bits, the counter all but its low
 * 14. Returns 0, or -1 with errno EOVERFLOW when the time is negative or above UID_UNIX_US_MAX.
 * This is the rule of the original, which repeats ids whenever the counter comes round within a
 * step; uid_gen does not.
 */
int uid_make (int64_t unix_us, uint64_t counter, struct uid *id);

/* Order of values: local before global, then node, A, B, C, sequence.  Returns -1, 0 or 1.  Nodes
 * sort by name, and names before all fingerprints: a name and its fingerprint differ.
 * (Stored forms of one size and drift are ordered by memcmp, which is another order: windows of
 * time, then node.)
 */
int uid_compare (const struct uid *a, const struct uid *b);

/* Sort 'count' values in place in the order of uid_compare ().  Where the global ones all have the same name
 * (one string at one address) or all have none, they are sorted by their bits; where that is mixed, or there are
 * differences in the list, by comparing, which takes several times as long.
 */
void uid_sort (struct uid *ids, size_t count);

/* Milliseconds since Unix, up to one early since C is cut to steps.  (t)
 * The fields must be in the range that is stored or be a difference of such.
 */
int64_t uid_unix_ms (const struct uid *id);

/* Make global (g): a local value gets node 'self', a global one stays as it is. */
void uid_globalize (const struct uid *id, const struct uid_node *self, struct uid *out);

/* Make local (l): a global value loses its node if that is 'self', by name or by fingerprint.
 * Returns 0, or -1 with errno EINVAL when it is another's.
 */
int uid_localize (const struct uid *id, const struct uid_node *self, struct uid *out);

/* Drop the node of a global value whosever it is (gtol): the result need not be unique.  Returns
 * 0, or -1 with errno EINVAL when the value is local.
 */
int uid_strip (const struct uid *id, struct uid *out);

/* The distance x - y (d): the difference in micro-seconds split into A, B, C by division that
 * rounds toward zero, and the difference of the sequences; a global result keeps the node.
 * Returns 0, or -1 with errno set:
 *   EINVAL     one is local and the other is not, or their nodes differ
 *   EOVERFLOW  a field is too large to subtract (2^20 and more)
 */
int uid_distance (const struct uid *x, const struct uid *y, struct uid *out);

/* --- stored forms ------------------------------------------------------------------------ */

/* Which release of the original wrote what is read. */
enum uid_version {
    UID_V135, /* 1.3.5 and now */
    UID_V134, /* names have the legacy fingerprint */
    UID_V133, /* 1.3.0 - 1.3.3: moreover text is base64url (RFC 4648), which does not sort */
    UID_V120, /* 1.2.0: moreover the fingerprint comes first, then the local form; no text */
};

enum {
    UID_WRAP = 1,    /* writing: reduce fields modulo their width, like the original */
    UID_LENIENT = 2, /* reading: ignore the surplus bits of a local text, like the original */
};

/* How to write and read.  Where a function takes a codec, NULL stands for the drift 8 and nothing
 * else.
 */
struct uid_codec {
    int drift;                   /* UID_DRIFT_MIN ... UID_DRIFT_MAX; ignored for local values */
    enum uid_version version;    /* for reading; writing takes UID_V135 alone */
    const struct uid_node *self; /* a node that reading recognizes by fingerprint and gives back by name */
    unsigned flags;
};

/* Store an id in 8 (local) or 12 (global) of the 'size' bytes at 'bytes'.  Returns their number, or -1
 * with errno set:
 *   ENOSPC     'size' is too small
 *   EOVERFLOW  the time does not fit (not with UID_WRAP)
 *   EINVAL     the sequence does not fit (not with UID_WRAP), or the drift of a global value is out of
 *              range
 *   ENOTSUP    the codec's version is not UID_V135
 */
int uid_to_bytes (const struct uid *id, const struct uid_codec *codec, uint8_t *bytes, size_t size);

/* Read an id from 8 or 12 bytes; every such bytes are an id (B may come out above UID_B_MAX).
 * Returns 0, or -1 with errno set:
 *   EMSGSIZE  'len' is neither 8 nor 12
 *   EINVAL    the drift for 12 bytes is out of range
 */
int uid_from_bytes (const void *bytes, size_t len, const struct uid_codec *codec, struct uid *id);

/* Write the text of an id with its NUL to 'buf' of 'size' bytes: 11 or 16 characters of
 * ".0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz", which sort as the bytes do.
 * Returns the length, or -1 as uid_to_bytes does.
 */
int uid_format (const struct uid *id, const struct uid_codec *codec, char *buf, size_t size);

/* Read an id from a text of 11 or 16 characters.  Nothing is skipped or folded.  Returns 0, or -1
 * with errno set and the index of the first character at fault in '*errpos' (may be NULL):
 *   EMSGSIZE  'len' is neither; '*errpos' is the smaller of 'len' and 16
 *   EINVAL    a character is not of the alphabet, or the last one of a local text has surplus bits
 *             set (not with UID_LENIENT), or the drift is out of range ('*errpos' is 'len')
 *   ENOTSUP   the codec's version has no text
 */
int uid_parse (const char *text, size_t len, const struct uid_codec *codec, struct uid *id, size_t *errpos);

/* Write '*count' ids, each with a '\n' behind it, and a NUL to 'buf' of 'size' bytes.  The number of those that are
 * written, from the first on, goes to '*count', the length without the NUL to '*len'.  Returns 0, or -1 with errno set:
 *   ENOSPC  no more of them fit: what is written is whole lines, and the rest begins at ids[*count]
 *   others  as uid_format () has it for ids[*count]
 */
int uid_format_lines (const struct uid *ids, size_t *count, const struct uid_codec *codec, char *buf, size_t size,
                      size_t *len);

/* Read ids from the 'len' characters at 'text', one a line; behind the last one '\n' may be left out.  There is room
 * for '*count'; the number of those that are read goes there, and where reading ended to '*pos' (which may be NULL).
 * Returns 0 when all are read, or -1 with errno set:
 *   ENOSPC  there are more: '*pos' is where the next line begins
 *   others  as uid_parse () has it: the line with the index '*count' is no id, and '*pos' is what is at fault
 */
int uid_parse_lines (const char *text, size_t len, const struct uid_codec *codec, struct uid *ids, size_t *count,
                     size_t *pos);

/* The text form of any bytes: (8 * len + 5) / 6 characters and a NUL.  Returns the number of
 * characters, or -1 with errno ENOSPC when 'size' is too small.
 */
ssize_t uid_base64_format (const void *bytes, size_t len, char *buf, size_t size);

/* Back from it: 6 * len / 8 bytes; surplus bits are dropped.  Returns their number, or -1 with errno
 * set:
 *   EINVAL  a character is not of the alphabet: the first one is at '*errpos' (may be NULL)
 *   ENOSPC  'size' is too small
 */
ssize_t uid_base64_parse (const char *text, size_t len, void *bytes, size_t size, size_t *errpos);

/* The keys of the stored ids of [from_us, to_us), micro-seconds since Unix rounded down to steps:
 * lower <= id < upper, for forms of 'size' bytes (UID_LOCAL_SIZE or UID_GLOBAL_SIZE).  Global ids
 * of one window are not sorted by time, so the upper key is the end of a window: all ids of the
 * interval lie between the keys, and others of the first and the last window may.  Returns 0, or
 * -1 with errno set:
 *   EOVERFLOW  a time is negative or above UID_UNIX_US_MAX
 *   EINVAL     'from_us' is above 'to_us', the size is neither, or the drift is out of range
 */
int uid_range (size_t size, const struct uid_codec *codec, int64_t from_us, int64_t to_us, uint8_t *lower,
               uint8_t *upper);

/* --- vector clocks ----------------------------------------------------------------------- */

/* A vector clock is an array of global values, one per node by intention.  Outputs must not overlap
 * inputs.
 */

#define UID_VCLOCK_MAX 4096 /* entries in one clock */

/* (vclock/1)  A clock with 'fresh' (a new id of node 'fresh->node') in front, and without the first
 * entry of that node's name. 'out' has room for count + 1.  Returns the number of entries.
 */
size_t uid_vclock_tick (const struct uid *fresh, const struct uid *clock, size_t count, struct uid *out);

/* (join)  Join two clocks, sorted by node; of two entries of a node the greater.  'out' has room
 * for na + nb. Returns the number of entries, or -1 with errno set:
 *   EINVAL  a clock has more than UID_VCLOCK_MAX entries
 *   ENOMEM
 */
int uid_vclock_join (const struct uid *a, size_t na, const struct uid *b, size_t nb, struct uid *out);

/* (descend/2)  True when 'a' has seen all of 'b': the first entry of each node of 'b' is in 'a',
 * and not less.
 */
bool uid_vclock_descends (const struct uid *a, size_t na, const struct uid *b, size_t nb);

/* (descend/3)  The same when the first entry of 'node' is left out of both. */
bool uid_vclock_descends_without (const struct uid_node *node, const struct uid *a, size_t na, const struct uid *b,
                                  size_t nb);

/* (diff)  What 'b' has and 'a' has not seen, in the order of 'b': an entry whose node 'a' lacks as
 * it is, a later one as its distance.  'out' has room for nb.  Returns the number of entries, or -1
 * with errno EOVERFLOW as uid_distance does, 'out' then being in part written.
 */
int uid_vclock_diff (const struct uid *a, size_t na, const struct uid *b, size_t nb, struct uid *out);

/* --- generator --------------------------------------------------------------------------- */

/* Never makes an id twice, from any number of threads, and each is above the one before: step and
 * sequence are one 64-bit word that only grows.  A step gives 16384 ids.  What does not fit, and
 * everything while the clock is behind the newest id's step once that is used up, must wait, or
 * may take steps ahead of the clock up to a limit.  In a child process of fork (), which would make
 * the ids of its parent, all that makes ids fails with EPERM: it takes a generator of its own, with
 * another node.
 */
struct uid_gen;

/* Where a generator takes the time from, if not from CLOCK_REALTIME and nanosleep (). */
struct uid_time {
    int64_t (*now_us) (void *arg);                /* micro-seconds since Unix */
    void (*sleep_us) (void *arg, int64_t for_us); /* counts as slept in full, also if it returns early */
    void *arg;
};

struct uid_gen_config {
    struct uid_node node; /* of the global values; a name is borrowed as long as the ids are used */
    int64_t after_us;     /* make ids in later steps only: uid_gen_newest_us () before, or 0 */
    int64_t ahead_us;     /* how far ahead of the clock steps may be taken, in whole steps; 0: wait */
    struct uid_time time; /* all NULL: the system's */
};

/* Make a generator, which the caller destroys.  The configuration is copied; NULL stands for one of
 * zeros, whose global ids are those of fingerprint 0.  Returns NULL with errno set:
 *   EINVAL  'after_us' or 'ahead_us' is negative or above UID_UNIX_US_MAX
 *   ENOMEM
 */
struct uid_gen *uid_gen_create (const struct uid_gen_config *config);
void uid_gen_destroy (struct uid_gen *gen);

/* Reserve up to 'want' (>= 1) ids at a time that the caller has read.  On success the first one is
 * '*first', the next is one more in sequence, and their number, 1 ... 16384, is returned.  Never
 * waits.  Returns -1 with errno set, and for EAGAIN in '*wait_us' (may be NULL) the time after
 * which it is worth trying again:
 *   EAGAIN     the step is used up, or was before the clock went back
 *   EOVERFLOW  the time is negative or the last step is used up
 *   EINVAL     'want' is 0
 *   EPERM      this is a child process, and the generator is its parent's
 */
int uid_gen_reserve (struct uid_gen *gen, enum uid_kind kind, int64_t unix_us, unsigned want, struct uid *first,
                     int64_t *wait_us);

/* Make one id now, by the generator's clock.  Never waits.  Returns 0, or -1 as uid_gen_reserve
 * does.
 */
int uid_gen_try (struct uid_gen *gen, enum uid_kind kind, struct uid *id, int64_t *wait_us);

/* Make one id now, waiting as long as it takes but not longer than 'timeout_us' in all (negative:
 * no limit; time spent waiting is what counts, signals or not). Returns 0, or -1 as uid_gen_try
 * does: EAGAIN means that the wait would have exceeded the limit.
 */
int uid_gen_make (struct uid_gen *gen, enum uid_kind kind, int64_t timeout_us, struct uid *id);

/* The time of the newest id, or of 'after_us': store this (raised by what is made until it is
 * stored again) and a later generator never meets ids of this one.
 */
int64_t uid_gen_newest_us (const struct uid_gen *gen);

#ifdef __cplusplus
}
#endif

#endif /* IDTREE_UID_H */
