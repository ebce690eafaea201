/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* page.h - the page of memory by which processes of a host share a generator (doc/design/page.md)
 *
 * A broker makes it and sets its terms; whoever has it makes ids by swapping 'word'.  What that says is changed by one
 * compare-and-swap at a time, so it is valid whoever is killed when.
 *
 * Times are of the instance in milliseconds where the name ends in _ms, else microseconds.
 */
#ifndef LIBPAGE_PAGE_H
#define LIBPAGE_PAGE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <idtree/page.h>

#define PAGE_MAGIC UINT64_C (0x7061676574726564) /* for who maps something else */
#define PAGE_VERSION 3U
#define PAGE_SIZE 4096U
#define PAGE_LINE 64

/* There are two of these: of one all have the word, of the other one the rest, which only the broker may write. */
struct page {
    /* written before anybody else has it */
    uint64_t magic;
    uint32_t version;
    uint32_t generator;
    int64_t epoch_ms;  /* of the instance, in Unix milliseconds */
    char instance[40]; /* its UUID; "": none is known */

    /* its terms, of which the broker says what they are now */
    _Alignas(PAGE_LINE) _Atomic uint64_t hi_ms; /* ids are made of times below */
    _Atomic int64_t offset_us;                  /* the instance's time less CLOCK_BOOTTIME */
    _Atomic uint64_t until_us;                  /* CLOCK_MONOTONIC: none leaves a process from then on */
    _Atomic uint32_t kept;                      /* sequence numbers of each millisecond that the broker would like */

    _Alignas(PAGE_LINE) _Atomic uint64_t word;
    _Atomic uint64_t passed; /* ids of milliseconds before the word's (word_left ()): for figures alone */
};

/* Sequence numbers of each millisecond from here on are the broker's alone: who has the page takes none of them,
 * whatever stands there.  So the broker can go on where somebody has spoilt it.
 */
#define PAGE_OWN_FIRST IDT_PAGE_PER_MS
static_assert (PAGE_OWN_FIRST == FLUID_PER_MS - FLUID_GRANULE, "one granule is the broker's");
#define PAGE_OWN_GRANULES (UINT64_C (1) << (FLUID_GRANULES - 1))

/* --- the word ---------------------------------------------------------------------------------- */

struct word {
    uint64_t ms;    /* the newest that ids were made of, or below which none is made any more */
    uint32_t used;  /* the first sequence number of it that is not used: 0 ... 1024, or WORD_OVER */
    uint32_t first; /* of each millisecond, the first granule that is not lent: 0 ... 64 (none) */
    bool closed;    /* for good */
};

/* Bits of each field in the word; the lowest is 'closed'. */
#define WORD_MS_SHIFT 24
#define WORD_USED_SHIFT 13
#define WORD_FIRST_SHIFT 6
#define WORD_USED_MASK 0x7ffU
#define WORD_FIRST_MASK 0x7fU

#define WORD_CLOSED UINT64_C (1)
#define WORD_ALL_LENT FLUID_GRANULES

/* 'used' of the last millisecond that there is, where no id may be made of it or later: the time 2^40 has no place in
 * the word.  It counts as no id.
 */
#define WORD_OVER WORD_USED_MASK

static_assert (FLUID_TIMESTAMP_MAX == UINT64_MAX >> WORD_MS_SHIFT, "the time of an id fills its field");
static_assert (WORD_OVER > FLUID_PER_MS && WORD_ALL_LENT <= WORD_FIRST_MASK, "each field holds its largest value");
static_assert (WORD_USED_SHIFT + 11 == WORD_MS_SHIFT && WORD_FIRST_SHIFT + 7 == WORD_USED_SHIFT,
               "the fields lie beside each other");

/* A field that is out of its range is a fault of the caller: it would change another one. */
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

/* The word when no id may be made below 'ms', any time: the one place where a word goes to another millisecond and
 * nothing of that is used.
 */
static inline struct word word_advance (struct word w, uint64_t ms)
{
    if (ms <= w.ms)
        return w;
    if (ms > FLUID_TIMESTAMP_MAX)
        return (struct word){ FLUID_TIMESTAMP_MAX, WORD_OVER, w.first, w.closed };
    return (struct word){ .ms = ms, .first = w.first, .closed = w.closed };
}

/* How many sequence numbers of its millisecond are used. */
static inline uint32_t word_used (struct word w)
{
    return w.used <= FLUID_PER_MS ? w.used : 0;
}

/* How many ids of its millisecond a word says are used, but those that were lent. */
static inline uint32_t word_count (struct word w)
{
    uint32_t lent = w.first * FLUID_GRANULE;

    return word_used (w) > lent ? word_used (w) - lent : 0;
}

/* What whoever has swapped 'was' for 'is' adds to 'passed': nothing, but for the first one of a millisecond. */
static inline uint32_t word_left (struct word was, struct word is)
{
    return is.ms > was.ms ? word_count (was) : 0;
}

#endif /* LIBPAGE_PAGE_H */
