/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* page_gen.h - a broker's generator of FLUIDs, whose state is one word: a private one, or the word of a page that it
 * shares
 *
 * Without a page it behaves like a fluid_gen (idtree/fluid.h). With a page it makes ids of the same word as the
 * clients; each call sees what they did before it. Only one thread may call.
 */
#ifndef LIBPAGE_PAGE_GEN_H
#define LIBPAGE_PAGE_GEN_H

#include "libpage/page.h"

/* Returns the latest time that any client's clock can have shown until now. It must read the clock in the call: with an
 * earlier reading, ids that a client made in between would look like ids of the future (the rule CLOCK_AFTER of
 * doc/model/page.pml).
 */
typedef uint64_t page_limit_f (void *arg);

struct page_gen {
    uint32_t generator;
    uint64_t lo_ms; /* the range of time that it holds: lo_ms ... hi_ms - 1 */
    uint64_t hi_ms;
    _Atomic uint64_t own; /* the word, while there is no page */
    struct page *page;    /* NULL: no page */
    struct page *terms;   /* its part that only the broker writes */
    uint64_t seen;        /* the word at the last look */
    uint64_t made;        /* the last word with ids that one of our swaps replaced */
    page_limit_f *limit;  /* NULL: a word may have any time */
    void *limit_arg;
    uint64_t limit_ms; /* its last result */
    bool spoilt;       /* an invalid word was found: the page can no longer be used */
    uint64_t top_ms;   /* the highest hi_ms that the page ever had */
    uint64_t own_ms;   /* the newest time at which the broker made ids */
    uint64_t mine;     /* the part of the page's count that our own swaps added or removed */
    uint64_t told;     /* the clients' count at the last page_gen_others () */
    uint64_t told_ms;  /* ... and the word's time then */
};

/* 'generator' is 0 ... FLUID_GENERATOR_MAX. The range of time is empty at first. */
void page_gen_init (struct page_gen *g, uint32_t generator);

/* As the functions of fluid_gen with these names. */
int page_gen_set_range (struct page_gen *g, uint64_t lo_ms, uint64_t hi_ms);
int page_gen_reserve_in (struct page_gen *g, uint64_t now_ms, uint64_t granules, uint32_t want, fluid_t *first);
void page_gen_advance (struct page_gen *g, uint64_t ms);
void page_gen_follow (struct page_gen *g, fluid_t id);

/* Read the word. Returns false if the clients cannot have made it from the previous word, or if another function found
 * such a word; no function continues from it. Then the caller must close the page, and '*w' is the last valid word.
 */
bool page_gen_look (struct page_gen *g, struct word *w);

/* Return the newest id as of the last look, made or followed; 0: not known. */
fluid_t page_gen_newest (const struct page_gen *g);

/* --- with a page ---------------------------------------------------------------------------------- */

struct page_terms {
    uint64_t hi_ms;
    int64_t offset_us;
    uint64_t until_us; /* CLOCK_MONOTONIC */
    uint32_t kept;
};

/* Share 'page', which must be all zero and not yet given to a client. 'terms' is the part that only the broker writes:
 * memory that clients cannot write, or the same as 'page'. Both are borrowed until page_gen_close (). No id is made of
 * the page before it has terms.
 */
void page_gen_share (struct page_gen *g, struct page *page, struct page *terms, const char *instance, int64_t epoch_ms);

/* From now on a word of a client is valid only up to the time that 'limit' returns. It is called for words above its
 * last result.
 */
void page_gen_set_limit (struct page_gen *g, page_limit_f *limit, void *arg);

/* Set the terms. 'hi_ms' must be the end of the range that the generator holds, or 0. */
void page_gen_set_terms (struct page_gen *g, const struct page_terms *terms);

/* page_gen_pause (): when it returns, only the broker makes ids. page_gen_lend () ends the pause and states which
 * granules of each millisecond are subleased: only granules below 'first'. Both do nothing without a page.
 */
void page_gen_pause (struct page_gen *g);
void page_gen_lend (struct page_gen *g, uint32_t first);

/* Return how many ids clients made since the last call. Ids of a client that is killed between its swap and its count
 * are missed. A client that writes nonsense cannot add more ids than the time that passed has.
 */
uint64_t page_gen_others (struct page_gen *g);

/* From 'ms' on only granules below 'first' are subleased. If the word has reached 'ms', clients may use the granules
 * above.
 */
void page_gen_end_loans (struct page_gen *g, uint32_t first, uint64_t ms);

/* Close the page: no client makes ids any longer. Returns 0 if the word was valid, so all ids that were made are known.
 * Otherwise the generator continues above the broker's own ids and above 'now_ms', and returns a time: below it the
 * caller may use only PAGE_OWN_GRANULES, and must not return a part of it to rank 0.
 */
uint64_t page_gen_close (struct page_gen *g, uint64_t now_ms);

#endif /* LIBPAGE_PAGE_GEN_H */
