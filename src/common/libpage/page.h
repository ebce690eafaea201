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

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <idtree/fluid.h>

#define PAGE_MAGIC UINT64_C (0x7061676574726564) /* for who maps something else */
#define PAGE_VERSION 1U
#define PAGE_SIZE 4096U
#define PAGE_LINE 64

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

/* --- the word ---------------------------------------------------------------------------------- */

struct word {
    uint64_t ms;    /* the newest that ids were made of, or below which none is made any more */
    uint32_t used;  /* the first sequence number of it that is not used: 0 ... 1024 */
    uint32_t first; /* of each millisecond, the first granule that is not lent: 0 ... 64 (none) */
    bool closed;    /* for good */
};

#define WORD_CLOSED UINT64_C (1)
#define WORD_ALL_LENT FLUID_GRANULES

static inline uint64_t word_pack (struct word w)
{
    return w.ms << 24 | (uint64_t)w.used << 13 | (uint64_t)w.first << 6 | w.closed;
}

static inline struct word word_unpack (uint64_t packed)
{
    return (struct word){
        .ms = packed >> 24, .used = packed >> 13 & 0x7ff, .first = packed >> 6 & 0x7f, .closed = packed & WORD_CLOSED
    };
}

/* How many ids of its millisecond a word says are used, but those that were lent. */
static inline uint32_t word_count (struct word w)
{
    uint32_t lent = w.first * FLUID_GRANULE;

    return w.used > lent ? w.used - lent : 0;
}

/* What whoever has swapped 'was' for 'is' adds to 'passed': nothing, but for the first one of a millisecond. */
static inline uint32_t word_left (struct word was, struct word is)
{
    return is.ms > was.ms ? word_count (was) : 0;
}

#endif /* LIBPAGE_PAGE_H */
