/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* page_gen.h - a broker's generator of FLUIDs, whose state is one word: its own, or that of a page that it shares
 *
 * Alone it does what a fluid_gen does (idtree/fluid.h), which see.  With a page it makes ids of the same word as those
 * who have that; what they did is seen with the next call.  One thread calls.
 */
#ifndef LIBPAGE_PAGE_GEN_H
#define LIBPAGE_PAGE_GEN_H

#include "libpage/page.h"

/* The latest time that any client's clock can have shown until now.  It must read the clock when it is called: a clock
 * that was read before the word knows nothing of a client that made ids in between (CLOCK_AFTER).
 */
typedef uint64_t page_limit_f (void *arg);

struct page_gen {
    uint32_t generator;
    uint64_t lo_ms; /* the range of time that it holds */
    uint64_t hi_ms;
    _Atomic uint64_t own; /* the word, while no page has it */
    struct page *page;    /* NULL: none */
    struct page *terms;   /* of it */
    uint64_t seen;        /* the word, when it was looked at last */
    uint64_t made;        /* ... and when ids of its millisecond were used, before we moved it last */
    page_limit_f *limit;  /* NULL: words of any time are sound */
    void *limit_arg;
    uint64_t limit_ms; /* what that returned last */
    bool spoilt;       /* a word was met that others may not have made; the page is of no use any more */
    uint64_t top_ms;   /* the highest hi_ms that the page ever had */
    uint64_t own_ms;   /* the newest of which we made ids */
    uint64_t mine;     /* of what the page counts, what our own swaps added, or took away */
    uint64_t told;     /* what others had made of it when that was asked last */
    uint64_t told_ms;  /* ... and of which time the word was */
};

/* 'generator' is 0 ... FLUID_GENERATOR_MAX; it holds no time. */
void page_gen_init (struct page_gen *g, uint32_t generator);

/* As the functions of fluid_gen of these names have it. */
int page_gen_set_range (struct page_gen *g, uint64_t lo_ms, uint64_t hi_ms);
int page_gen_reserve_in (struct page_gen *g, uint64_t now_ms, uint64_t granules, uint32_t want, fluid_t *first);
void page_gen_advance (struct page_gen *g, uint64_t ms);
void page_gen_follow (struct page_gen *g, fluid_t id);

/* The word now.  Returns false where clients cannot have made it of the word before, or where another function met such
 * a word: none of them goes on from that.  Then the page is to be closed, and '*w' is the last sound word.
 */
bool page_gen_look (struct page_gen *g, struct word *w);

/* The newest id that was made of the word as it was looked at last, or that we followed; 0: none is known. */
fluid_t page_gen_newest (const struct page_gen *g);

/* --- with a page ---------------------------------------------------------------------------------- */

struct page_terms {
    uint64_t hi_ms;
    int64_t offset_us;
    uint64_t until_us; /* CLOCK_MONOTONIC */
    uint32_t kept;
};

/* Share 'page', which is all zero and nobody has yet: borrowed until page_gen_close (), as 'terms', where what only we
 * write is: another one that others cannot write, or the same.  Nothing is made of it before it has terms.
 */
void page_gen_share (struct page_gen *g, struct page *page, struct page *terms, const char *instance, int64_t epoch_ms);

/* From now on a word of others is sound only up to the time that 'limit' returns.  It is called for words above what it
 * returned last.
 */
void page_gen_set_limit (struct page_gen *g, page_limit_f *limit, void *arg);

/* Set the terms, the range held being what it is: 'hi_ms' is its end, or 0. */
void page_gen_set_terms (struct page_gen *g, const struct page_terms *terms);

/* Nobody but the broker makes anything from when this returns, until page_gen_lend () says what is lent of each
 * millisecond: all below granule 'first'.  Nothing of the granules above is.  Both do nothing without a page.
 */
void page_gen_pause (struct page_gen *g);
void page_gen_lend (struct page_gen *g, uint32_t first);

/* How many ids those who have the page have made of it since this was asked last.  It misses what one of them took who
 * was killed between his swap and his count; and nobody who writes nonsense adds more than was there to be made.
 */
uint64_t page_gen_others (struct page_gen *g);

/* What is lent below 'first' is no more, but at times before 'ms': let it be used, if the word is there. */
void page_gen_end_loans (struct page_gen *g, uint32_t first, uint64_t ms);

/* Close the page: nobody makes anything of it any more.  Returns 0 where what was made is known now.  Else the word is
 * none that they may have made: the generator goes on above all of ours and above 'now_ms', and the owner makes nothing
 * below the time that is returned but of PAGE_OWN_GRANULES, and gives nothing of that back.
 */
uint64_t page_gen_close (struct page_gen *g, uint64_t now_ms);

#endif /* LIBPAGE_PAGE_GEN_H */
