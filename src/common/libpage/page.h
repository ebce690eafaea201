/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* page.h - the page of memory by which processes of a host share a generator (doc/design/page.md)
 *
 * A broker makes the page and sets its terms. A process that has the page makes ids by swapping 'word'. Each change of
 * the word is one compare-and-swap, so the word is valid even if a process is killed at any instruction.
 *
 * Names that end in _ms are milliseconds of the instance's time; other times are microseconds.
 */
#ifndef LIBPAGE_PAGE_H
#define LIBPAGE_PAGE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <idtree/page.h>

#define PAGE_MAGIC UINT64_C (0x7061676574726564) /* detects that something else was mapped */
#define PAGE_VERSION 3U
#define PAGE_SIZE 4096U
#define PAGE_LINE 64

/* Each page consists of two of these. All processes use the word of the first; the other members are in the second,
 * which only the broker may write.
 */
struct page {
    /* written before another process has the page */
    uint64_t magic;
    uint32_t version;
    uint32_t generator;
    int64_t epoch_ms;  /* of the instance, in Unix milliseconds */
    char instance[40]; /* its UUID; "": unknown */

    /* the terms, which the broker keeps up to date */
    _Alignas(PAGE_LINE) _Atomic uint64_t hi_ms; /* ids must have times below it */
    _Atomic int64_t offset_us;                  /* the instance's time minus CLOCK_BOOTTIME */
    _Atomic uint64_t until_us;                  /* CLOCK_MONOTONIC: from then on no process returns an id */
    _Atomic uint32_t kept;                      /* sequence numbers of each millisecond to leave to the broker */

    _Alignas(PAGE_LINE) _Atomic uint64_t word;
    _Atomic uint64_t passed; /* statistics: ids of milliseconds before the word's (word_left ()) */
};

/* The sequence numbers of each millisecond from here on belong to the broker. No client uses them, whatever the page
 * contains, so the broker can continue even after a process has corrupted the page.
 */
#define PAGE_OWN_FIRST IDT_PAGE_PER_MS
static_assert (PAGE_OWN_FIRST == FLUID_PER_MS - FLUID_GRANULE, "one granule is the broker's");
#define PAGE_OWN_GRANULES (UINT64_C (1) << (FLUID_GRANULES - 1))

/* --- the word ---------------------------------------------------------------------------------- */

struct word {
    uint64_t ms;    /* the newest with ids; below it no id will be made */
    uint32_t used;  /* its first unused sequence number: 0 ... 1024, or WORD_OVER */
    uint32_t first; /* the first granule of each millisecond that is not subleased: 0 ... 64 (all are) */
    bool closed;    /* permanently */
};

/* Bits of each field in the word; the lowest is 'closed'. */
#define WORD_MS_SHIFT 24
#define WORD_USED_SHIFT 13
#define WORD_FIRST_SHIFT 6
#define WORD_USED_MASK 0x7ffU
#define WORD_FIRST_MASK 0x7fU

#define WORD_CLOSED UINT64_C (1)
#define WORD_ALL_LENT FLUID_GRANULES

/* 'used' of the last possible millisecond when no id may be made in it or later, because the word cannot hold the time
 * 2^40. It counts as no id.
 */
#define WORD_OVER WORD_USED_MASK

static_assert (FLUID_TIMESTAMP_MAX == UINT64_MAX >> WORD_MS_SHIFT, "the time of an id fills its field");
static_assert (WORD_OVER > FLUID_PER_MS && WORD_ALL_LENT <= WORD_FIRST_MASK, "each field holds its largest value");
static_assert (WORD_USED_SHIFT + 11 == WORD_MS_SHIFT && WORD_FIRST_SHIFT + 7 == WORD_USED_SHIFT,
               "the fields are adjacent");

/* A caller must not pass a field that is out of its range: it would change another field. */
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

/* The word that allows no id below 'ms'; 'ms' may be any time. Only this function moves a word to another millisecond
 * without using a number of it.
 */
static inline struct word word_advance (struct word w, uint64_t ms)
{
    if (ms <= w.ms)
        return w;
    if (ms > FLUID_TIMESTAMP_MAX)
        return (struct word){ FLUID_TIMESTAMP_MAX, WORD_OVER, w.first, w.closed };
    return (struct word){ .ms = ms, .first = w.first, .closed = w.closed };
}

/* How many sequence numbers of the word's millisecond are used. */
static inline uint32_t word_used (struct word w)
{
    return w.used <= FLUID_PER_MS ? w.used : 0;
}

/* How many ids of the word's millisecond are used, without the subleased granules. */
static inline uint32_t word_count (struct word w)
{
    uint32_t lent = w.first * FLUID_GRANULE;

    return word_used (w) > lent ? word_used (w) - lent : 0;
}

/* What a process that has swapped 'was' for 'is' adds to 'passed': the ids of the millisecond that was left, or 0
 * within the same millisecond.
 */
static inline uint32_t word_left (struct word was, struct word is)
{
    return is.ms > was.ms ? word_count (was) : 0;
}

#endif /* LIBPAGE_PAGE_H */
