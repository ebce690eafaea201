/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* page.h - the page of memory by which processes of a host share a generator (doc/design/page.md)
 *
 * A broker makes the page and sets its terms. A process that has the page makes ids by replacing 'word'. Each change of
 * the word is one compare-and-swap, so the word is valid even if a process is killed at any instruction.
 *
 * Names that end in _ms are milliseconds of the instance's time. Other times are microseconds.
 */
#ifndef LIBPAGE_PAGE_H
#define LIBPAGE_PAGE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <idtree/page.h>

#define PAGE_MAGIC UINT64_C (0x7061676574726564) /* if it is missing, something else was mapped */
#define PAGE_VERSION 3U
#define PAGE_SIZE 4096U
#define PAGE_LINE 64

/* A page consists of two of these structs. All processes use the word of the first. The other members are in the
 * second, which only the broker may write.
 */
struct page {
    /* set before another process has the page */
    uint64_t magic;
    uint32_t version;
    uint32_t generator;
    int64_t epoch_ms;  /* the instance's epoch, in Unix milliseconds */
    char instance[40]; /* UUID of the instance; "": unknown */

    /* the terms, which the broker keeps up to date */
    _Alignas(PAGE_LINE) _Atomic uint64_t hi_ms; /* no id may have this time or a later one */
    _Atomic int64_t offset_us;                  /* the instance's time minus CLOCK_BOOTTIME */
    _Atomic uint64_t until_us;                  /* CLOCK_MONOTONIC: from this time on no process returns an id */
    _Atomic uint32_t kept; /* how many sequence numbers below PAGE_OWN_FIRST clients leave to the broker */

    _Alignas(PAGE_LINE) _Atomic uint64_t word;
    _Atomic uint64_t passed; /* statistics: ids of milliseconds before the word's (word_left ()) */
};

/* From this sequence number on, the numbers of each millisecond belong to the broker. No client uses them, even if the
 * page has been corrupted. So the broker can continue after a process has corrupted the page.
 */
#define PAGE_OWN_FIRST IDT_PAGE_PER_MS
static_assert (PAGE_OWN_FIRST == FLUID_PER_MS - FLUID_GRANULE, "one granule is the broker's");
#define PAGE_OWN_GRANULES (UINT64_C (1) << (FLUID_GRANULES - 1))

/* --- the word ---------------------------------------------------------------------------------- */

struct word {
    uint64_t ms;    /* the word's millisecond; no id will be made of an earlier one */
    uint32_t used;  /* the first unused sequence number of 'ms': 0 ... 1024, or WORD_OVER */
    uint32_t first; /* granules of each millisecond below this one are granted: 0 ... 64 (64: all are) */
    bool closed;    /* true: the page is closed permanently */
};

/* Bits of each field in the word; the lowest is 'closed'. */
#define WORD_MS_SHIFT 24
#define WORD_USED_SHIFT 13
#define WORD_FIRST_SHIFT 6
#define WORD_USED_MASK 0x7ffU
#define WORD_FIRST_MASK 0x7fU

#define WORD_CLOSED UINT64_C (1)
#define WORD_ALL_GRANTED FLUID_GRANULES

/* The value of 'used' when no id may be made any longer, because the word cannot hold the time 2^40. 'ms' is then the
 * last possible millisecond. word_used () returns 0 for this value.
 */
#define WORD_OVER WORD_USED_MASK

static_assert (FLUID_TIMESTAMP_MAX == UINT64_MAX >> WORD_MS_SHIFT, "the time of an id fills its field");
static_assert (WORD_OVER > FLUID_PER_MS && WORD_ALL_GRANTED <= WORD_FIRST_MASK, "each field holds its largest value");
static_assert (WORD_USED_SHIFT + 11 == WORD_MS_SHIFT && WORD_FIRST_SHIFT + 7 == WORD_USED_SHIFT,
               "the fields are adjacent");

/* Each field must be in its range: a larger value would change another field. */
static inline uint64_t word_pack (struct word w)
{
    assert (w.ms <= FLUID_TIMESTAMP_MAX && w.used <= WORD_USED_MASK && w.first <= WORD_FIRST_MASK);
    return w.ms << WORD_MS_SHIFT | (uint64_t)w.used << WORD_USED_SHIFT | (uint64_t)w.first << WORD_FIRST_SHIFT
           | w.closed;
}

static inline struct word word_unpack (uint64_t packed)
{
    return (struct word){ .ms = packed >> WORD_MS_SHIFT,
                          .used = packed >> WORD_USED_SHIFT & WORD_USED_MASK,
                          .first = packed >> WORD_FIRST_SHIFT & WORD_FIRST_MASK,
                          .closed = packed & WORD_CLOSED };
}

/* The word that allows no id of a millisecond before 'ms'. 'ms' may be any time. Only this function moves a word to a
 * later millisecond without using a sequence number of that millisecond.
 */
static inline struct word word_advance (struct word w, uint64_t ms)
{
    if (ms <= w.ms)
        return w;
    if (ms > FLUID_TIMESTAMP_MAX)
        return (struct word){ FLUID_TIMESTAMP_MAX, WORD_OVER, w.first, w.closed };
    return (struct word){ .ms = ms, .first = w.first, .closed = w.closed };
}

/* How many sequence numbers of the word's millisecond are used, including the granted granules. */
static inline uint32_t word_used (struct word w)
{
    return w.used <= FLUID_PER_MS ? w.used : 0;
}

/* How many ids of the word's millisecond are used, without the granted granules. */
static inline uint32_t word_count (struct word w)
{
    uint32_t granted = w.first * FLUID_GRANULE;

    return word_used (w) > granted ? word_used (w) - granted : 0;
}

/* The number that a process adds to 'passed' after it has replaced the word 'was' by 'is': the ids that were made of
 * the millisecond of 'was', or 0 if 'is' has the same millisecond.
 */
static inline uint32_t word_left (struct word was, struct word is)
{
    return is.ms > was.ms ? word_count (was) : 0;
}

#endif /* LIBPAGE_PAGE_H */
