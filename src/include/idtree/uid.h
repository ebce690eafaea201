/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uid.h - uid: k-ordered ids, local (64 bits) and global (96 bits), and vector clocks made of them
 *
 * A value is a time (A, B, C) - megaseconds, seconds and microseconds since the Unix epoch - with a sequence of 14
 * bits; a global value also has the node that made it. Stored forms, big endian, from the top:
 *
 *   local     20 A   20 B                        10 C / 1024   14 sequence
 *   global    20 A   20 - I of B   32 node   I of B   10 C / 1024   14 sequence
 *
 * I, the drift bits 5 ... 10, sets a window of 2^I seconds in which the ids of one node are adjacent; windows are
 * sorted by time. I is not stored, so the reader must use the same I as the writer: with another I it gets another node
 * and time. Two different ids that are written with different values of I may have the same stored form. Therefore
 * write all ids of a set with one I, or use only nodes of uid_node_numbered (). A step of time is 1.024 ms. A second
 * has 977 steps; its last step is 0.576 ms long.
 *
 * A name in parentheses is the corresponding function of the original. These functions need only libc. Values and
 * codecs have no state and may be used in any thread. Functions that fail return -1 (or NULL) with errno set and leave
 * their outputs untouched.
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
#pragma GCC visibility push(default)

#define UID_LOCAL_SIZE 8
#define UID_GLOBAL_SIZE 12
#define UID_LOCAL_TEXT_LEN 11 /* characters, without a NUL */
#define UID_GLOBAL_TEXT_LEN 16
#define UID_TEXT_MAX 17 /* bytes of the longest text with its NUL */

#define UID_DRIFT_MIN 5
#define UID_DRIFT_MAX 10
#define UID_DRIFT_DEFAULT 8

#define UID_A_MAX 1048575
#define UID_B_MAX 999999
#define UID_C_MAX 999999
#define UID_SEQUENCE_MAX 16383
#define UID_PER_STEP 16384U /* ids that one generator makes in one step */
#define UID_STEP_US 1024    /* length of a step; the last step of each second has 576 */
#define UID_STEPS_PER_SECOND 977
#define UID_UNIX_US_MAX INT64_C (1048575999999999999) /* the last microsecond of A = 1048575 */

/* --- nodes ------------------------------------------------------------------------------- */

/* A node: its name and fingerprint, or only its fingerprint. 'name' is UTF-8 and borrowed; NULL: no name. */
struct uid_node {
    const char *name;
    uint32_t fingerprint;
};

/* The fingerprint of a name: Erlang's phash2 of an atom with range 2^32. The result is below 2^28. Beware: characters
 * six places apart can cancel out, so "svc-0@svc-0.svc" and "svc-1@svc-1.svc" have the same fingerprint. If names are
 * numbered, give each node an explicit fingerprint instead.
 */
uint32_t uid_fingerprint (const char *name, size_t len);

/* The fingerprint in the original's versions up to 1.3.4 (Erlang's phash): uid_fingerprint () plus one. */
uint32_t uid_fingerprint_legacy (const char *name, size_t len);

/* A node with 'name' (borrowed) and its fingerprint. */
struct uid_node uid_node_named (const char *name);

#define UID_NUMBER_MAX ((UINT32_C (1) << 26) - 1)

/* A node by its number, 0 ... UID_NUMBER_MAX: the fingerprint is a 1 bit, five 0 bits, and the number. No name has such
 * a fingerprint. Ids of such nodes may be written with different drift bits. A reader with another I reads a
 * fingerprint that is shifted by one to five bits, and a shifted fingerprint is never the fingerprint of such a node.
 * So two ids of such nodes have the same stored form only if they are equal.
 */
struct uid_node uid_node_numbered (uint32_t number);

/* --- values ------------------------------------------------------------------------------ */

enum uid_kind {
    UID_LOCAL,
    UID_GLOBAL,
};

/* The fields are wider than in stored forms, because differences may be negative. */
struct uid {
    enum uid_kind kind;
    struct uid_node node; /* of a global value */
    int64_t a, b, c;
    int64_t sequence;
};

/* Make the local value of a time and a counter: the low ten bits of C are cleared, and only the low 14 bits of the
 * counter are used. Returns 0, or -1 with errno EOVERFLOW if the time is negative or above UID_UNIX_US_MAX. This is the
 * rule of the original, which repeats ids if the counter wraps within a step. A uid_gen never repeats ids.
 */
int uid_make (int64_t unix_us, uint64_t counter, struct uid *id);

/* Order of values: local before global, then node, A, B, C, sequence. Returns -1, 0 or 1. Nodes with a name are sorted
 * by name, before all nodes without a name, which are sorted by fingerprint. So a node with a name differs from the
 * node without a name that has the same fingerprint. (memcmp () orders stored forms of one size and drift differently:
 * windows of time, then node.)
 */
int uid_compare (const struct uid *a, const struct uid *b);

/* Sort 'count' values in place in the order of uid_compare (). If all global values have the same name (one string at
 * one address), or none has a name, the values are sorted by their bits. If names are mixed, or if the list contains
 * differences (uid_distance ()), the values are sorted by comparisons, which takes several times as long.
 */
void uid_sort (struct uid *ids, size_t count);

/* (t) Milliseconds since the Unix epoch. The result may be 1 ms too low, because C is rounded down to steps. The fields
 * must be in the range of stored forms, or be the difference of two values in that range.
 */
int64_t uid_unix_ms (const struct uid *id);

/* (g) Make a value global: a local value gets node 'self', a global one is unchanged. */
void uid_globalize (const struct uid *id, const struct uid_node *self, struct uid *out);

/* (l) Make a value local: a global value loses its node if the node is 'self', by name or by fingerprint. Returns 0, or
 * -1 with errno EINVAL if the node is another one.
 */
int uid_localize (const struct uid *id, const struct uid_node *self, struct uid *out);

/* (gtol) Remove the node of a global value, even if it is another node than the caller's. The result need not be
 * unique. Returns 0, or -1 with errno EINVAL if the value is local.
 */
int uid_strip (const struct uid *id, struct uid *out);

/* (d) The distance x - y: the difference in microseconds, split into A, B, C by division that rounds toward zero, and
 * the difference of the sequences; a global result keeps the node. Returns 0, or -1 with errno set:
 *   EINVAL     one value is local and the other is global, or their nodes differ
 *   EOVERFLOW  a field is too large to subtract (2^20 and more)
 */
int uid_distance (const struct uid *x, const struct uid *y, struct uid *out);

/* --- stored forms ------------------------------------------------------------------------ */

/* The release of the original that wrote the data to read. */
enum uid_version {
    UID_V135, /* 1.3.5 and later */
    UID_V134, /* names have the legacy fingerprint */
    UID_V133, /* 1.3.0 - 1.3.3: as UID_V134, and text is base64url (RFC 4648), which does not sort */
    UID_V120, /* 1.2.0: as UID_V134, and the fingerprint comes before the local form; no text */
};

enum {
    UID_WRAP = 1,    /* writing: reduce fields modulo their width, like the original */
    UID_LENIENT = 2, /* reading: ignore the surplus bits of a local text, like the original */
};

/* How to write and read. If a codec is NULL, the drift is 8 and all other members are 0. */
struct uid_codec {
    int drift;                   /* UID_DRIFT_MIN ... UID_DRIFT_MAX; ignored for local values */
    enum uid_version version;    /* for reading; writing supports only UID_V135 */
    const struct uid_node *self; /* a node that reading recognizes by fingerprint and returns by name */
    unsigned flags;
};

/* Store an id in 8 (local) or 12 (global) of the 'size' bytes at 'bytes'. Returns their number, or -1 with errno set:
 *   ENOSPC     'size' is too small
 *   EOVERFLOW  the time does not fit (not with UID_WRAP)
 *   EINVAL     the sequence does not fit (not with UID_WRAP), or the drift of a global value is out of
 *              range
 *   ENOTSUP    the codec's version is not UID_V135
 */
int uid_to_bytes (const struct uid *id, const struct uid_codec *codec, uint8_t *bytes, size_t size);

/* Read an id from 8 or 12 bytes. Any such bytes are a valid id (B may be above UID_B_MAX). Returns 0, or -1 with errno
 * set:
 *   EMSGSIZE  'len' is neither 8 nor 12
 *   EINVAL    the drift for 12 bytes is out of range
 */
int uid_from_bytes (const void *bytes, size_t len, const struct uid_codec *codec, struct uid *id);

/* Write the text of an id with its NUL to 'buf' of 'size' bytes: 11 or 16 characters of
 * ".0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz", which sort like the bytes. Returns the length, or
 * -1 as uid_to_bytes ().
 */
int uid_format (const struct uid *id, const struct uid_codec *codec, char *buf, size_t size);

/* Read an id from a text of 11 or 16 characters. No character is skipped, and case matters. Returns 0, or -1 with errno
 * set and the index of the first wrong character in '*errpos' (may be NULL):
 *   EMSGSIZE  'len' is neither 11 nor 16; '*errpos' is the smaller of 'len' and 16
 *   EINVAL    a character is not in the alphabet, or the last one of a local text has surplus bits
 *             set (not with UID_LENIENT), or the drift is out of range ('*errpos' is 'len')
 *   ENOTSUP   the codec's version has no text
 */
int uid_parse (const char *text, size_t len, const struct uid_codec *codec, struct uid *id, size_t *errpos);

/* Write '*count' ids, each followed by '\n', and a NUL to 'buf' of 'size' bytes. Sets '*count' to the number of ids
 * written, beginning with the first, and '*len' to the length without the NUL. Returns 0, or -1 with errno set:
 *   ENOSPC  not all ids fit: the text is whole lines, and the rest begins at ids[*count]
 *   others  as uid_format () for ids[*count]
 */
int uid_format_lines (const struct uid *ids, size_t *count, const struct uid_codec *codec, char *buf, size_t size,
                      size_t *len);

/* Read ids from the 'len' characters at 'text', one per line; the '\n' after the last one may be missing. '*count' is
 * the size of 'ids'; sets it to the number of ids read, and '*pos' (may be NULL) to the position where reading ended.
 * Returns 0 if all ids were read, or -1 with errno set:
 *   ENOSPC  'ids' is full, and the text continues: '*pos' is the beginning of the next line
 *   others  as uid_parse (): the line with the index '*count' is not an id, and '*pos' is the position of the error
 */
int uid_parse_lines (const char *text, size_t len, const struct uid_codec *codec, struct uid *ids, size_t *count,
                     size_t *pos);

/* Write any bytes as text: (8 * len + 5) / 6 characters and a NUL. Returns the number of characters, or -1 with errno
 * ENOSPC if 'size' is too small.
 */
ssize_t uid_base64_format (const void *bytes, size_t len, char *buf, size_t size);

/* Read a text that uid_base64_format () wrote: 6 * len / 8 bytes. Surplus bits are dropped. Returns the number of
 * bytes, or -1 with errno set:
 *   EINVAL  a character is not in the alphabet: the first one is at '*errpos' (may be NULL)
 *   ENOSPC  'size' is too small
 */
ssize_t uid_base64_parse (const char *text, size_t len, void *bytes, size_t size, size_t *errpos);

/* The keys between which the stored ids of [from_us, to_us) lie, in microseconds since the Unix epoch, rounded down to
 * steps: lower <= id < upper. 'size' selects the stored form: UID_LOCAL_SIZE or UID_GLOBAL_SIZE. Global ids of one
 * window are not sorted by time. So the upper key is the end of a window, and other ids of the first and of the last
 * window may also lie between the keys. Returns 0, or -1 with errno set:
 *   EOVERFLOW  a time is negative or above UID_UNIX_US_MAX
 *   EINVAL     'from_us' is above 'to_us', 'size' is another number, or the drift is out of range
 */
int uid_range (size_t size, const struct uid_codec *codec, int64_t from_us, int64_t to_us, uint8_t *lower,
               uint8_t *upper);

/* --- vector clocks ----------------------------------------------------------------------- */

/* A vector clock is an array of global values, normally one for each node. Outputs must not overlap inputs. */

#define UID_VCLOCK_MAX 4096 /* entries in one clock */

/* (vclock/1) Make a clock that begins with 'fresh' (a new id of node 'fresh->node'), followed by the entries of 'clock'
 * without the first entry of that node. 'out' must have space for count + 1. Returns the number of entries.
 */
size_t uid_vclock_tick (const struct uid *fresh, const struct uid *clock, size_t count, struct uid *out);

/* (join) Join two clocks. The result is sorted by node; of two entries of one node it has the greater one. 'out' must
 * have space for na + nb. Returns the number of entries, or -1 with errno set:
 *   EINVAL  a clock has more than UID_VCLOCK_MAX entries
 *   ENOMEM
 */
int uid_vclock_join (const struct uid *a, size_t na, const struct uid *b, size_t nb, struct uid *out);

/* (descend/2) Whether 'a' has seen all of 'b': each node of 'b' is in 'a', and its first entry in 'a' is not less than
 * the entry in 'b'.
 */
bool uid_vclock_descends (const struct uid *a, size_t na, const struct uid *b, size_t nb);

/* (descend/3) As uid_vclock_descends (), but ignore the first entry of 'node' in each of the two clocks. */
bool uid_vclock_descends_without (const struct uid_node *node, const struct uid *a, size_t na, const struct uid *b,
                                  size_t nb);

/* (diff) The entries of 'b' that 'a' has not seen, in the order of 'b'. If 'a' has no entry of the node, the entry of
 * 'b' is unchanged. If the entry of 'b' is later than the entry of 'a', the result has their distance (uid_distance
 * ()). 'out' must have space for nb. Returns the number of entries, or -1 with errno EOVERFLOW as uid_distance (); in
 * that case a part of 'out' may have been written.
 */
int uid_vclock_diff (const struct uid *a, size_t na, const struct uid *b, size_t nb, struct uid *out);

/* --- generator --------------------------------------------------------------------------- */

/* A generator never makes an id twice, with any number of threads, and each id is above the id before it, because step
 * and sequence are one 64-bit word that only grows. A step has 16384 ids. If the newest id's step is used up, and the
 * clock is in that step or behind it, calls must wait for a later step. If 'ahead_us' permits, they instead use steps
 * ahead of the clock. After fork () a child process would make the same ids as its parent. Therefore all functions that
 * make ids fail in the child with EPERM: the child must make its own generator, with another node.
 */
struct uid_gen;

/* The clock of a generator, if it is not CLOCK_REALTIME with nanosleep (). */
struct uid_time {
    int64_t (*now_us) (void *arg);                /* microseconds since the Unix epoch */
    void (*sleep_us) (void *arg, int64_t for_us); /* treated as slept in full, even if it returns early */
    void *arg;
};

struct uid_gen_config {
    struct uid_node node; /* of global values; its name is borrowed as long as these values are used */
    int64_t after_us;     /* make ids only in later steps: from uid_gen_newest_us () of an earlier generator, or 0 */
    int64_t ahead_us;     /* how far ahead of the clock steps may be used, rounded down to whole steps; 0: wait */
    struct uid_time time; /* all NULL: the system's clock */
};

/* Make a generator; the caller destroys it. The configuration is copied; NULL means all zeros, so that global ids have
 * fingerprint 0. Returns NULL with errno set:
 *   EINVAL  'after_us' or 'ahead_us' is negative or above UID_UNIX_US_MAX
 *   ENOMEM
 */
struct uid_gen *uid_gen_create (const struct uid_gen_config *config);
void uid_gen_destroy (struct uid_gen *gen);

/* Reserve up to 'want' (>= 1) ids at time 'unix_us', which the caller has read. Never waits. On success '*first' is the
 * first id, each further id has the next sequence, and the function returns the number of ids, 1 ... 16384. On failure
 * it returns -1 with errno set, and for EAGAIN stores the time to wait before another try in '*wait_us' (may be NULL):
 *   EAGAIN     the step is used up, or was used up before the clock went back
 *   EOVERFLOW  the time is negative or above UID_UNIX_US_MAX, or the last step is used up
 *   EINVAL     'want' is 0
 *   EPERM      this is a child process, and the generator is its parent's
 */
int uid_gen_reserve (struct uid_gen *gen, enum uid_kind kind, int64_t unix_us, unsigned want, struct uid *first,
                     int64_t *wait_us);

/* Make one id at the time of the generator's clock. Never waits. Returns 0, or -1 as uid_gen_reserve (). */
int uid_gen_try (struct uid_gen *gen, enum uid_kind kind, struct uid *id, int64_t *wait_us);

/* Make one id at the time of the generator's clock, and wait if necessary, at most 'timeout_us' in all (negative: no
 * limit; only the time spent waiting counts, and signals do not end the wait). Returns 0, or -1 as uid_gen_try ():
 * EAGAIN means that the wait would exceed the limit.
 */
int uid_gen_make (struct uid_gen *gen, enum uid_kind kind, int64_t timeout_us, struct uid *id);

/* The time of the newest id, rounded down to a step; before the first id, 'after_us', rounded down. Store this time
 * plus a margin for the ids that are made until the time is stored again. A later generator that gets the stored time
 * as 'after_us' makes none of these ids again.
 */
int64_t uid_gen_newest_us (const struct uid_gen *gen);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* IDTREE_UID_H */
