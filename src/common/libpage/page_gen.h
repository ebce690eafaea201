/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* page_gen.h - a broker's generator of FLUIDs, whose state is one word: a private word, or the word of a page that the
 * broker shares
 *
 * Without a page the generator behaves like a fluid_gen (idtree/fluid.h). With a page the generator and the clients
 * make ids of the same word. Each call takes into account all ids that clients made before the call. Only one thread
 * may call.
 */
#ifndef LIBPAGE_PAGE_GEN_H
#define LIBPAGE_PAGE_GEN_H

#include "libpage/page.h"

/* Returns the latest time that any client's clock can have shown until now. The function must read the clock during the
 * call. With an earlier reading, ids that a client made after that reading would look like ids of the future (the rule
 * CLOCK_AFTER of doc/model/page.pml).
 */
typedef uint64_t page_limit_f (void *arg);

struct page_gen {
    uint32_t generator;
    uint64_t lo_ms; /* the generator holds the times lo_ms ... hi_ms - 1 */
    uint64_t hi_ms;
    _Atomic uint64_t own; /* the word if there is no page */
    struct page *page;    /* NULL: no page */
    struct page *terms;   /* the part of the page that only the broker writes */
    uint64_t seen;        /* the last valid word that this generator has read or written */
    uint64_t made;        /* the last word with ids that this generator replaced */
    page_limit_f *limit;  /* NULL: a client's word may have any time below 'top_ms' */
    void *limit_arg;
    uint64_t limit_ms; /* the last result of 'limit' */
    bool spoilt;       /* an invalid word was found, so the page can no longer be used */
    uint64_t top_ms;   /* the highest hi_ms that the page ever had */
    uint64_t own_ms;   /* the newest time of which the broker itself made ids */
    uint64_t mine;    /* the part of the ids counted in the page that this generator made or skipped, not the clients */
    uint64_t told;    /* the clients' count when page_gen_others () was last called */
    uint64_t told_ms; /* the word's time at that call */
};

/* Begin with an empty range of time. 'generator' is 0 ... FLUID_GENERATOR_MAX. */
void page_gen_init (struct page_gen *g, uint32_t generator);

/* Each of these is like the function of fluid_gen with the same name. */
int page_gen_set_range (struct page_gen *g, uint64_t lo_ms, uint64_t hi_ms);
int page_gen_reserve_in (struct page_gen *g, uint64_t now_ms, uint64_t granules, uint32_t want, fluid_t *first);
void page_gen_advance (struct page_gen *g, uint64_t ms);
void page_gen_follow (struct page_gen *g, fluid_t id);

/* Read the word into '*w'. Returns false if the clients cannot have made the word from the previous one, or if another
 * function has found such a word; no function continues from such a word. '*w' is then the last valid word, and the
 * caller must close the page.
 */
bool page_gen_look (struct page_gen *g, struct word *w);

/* Return the newest id, made or followed, that was known at the last look; 0: no id is known. */
fluid_t page_gen_newest (const struct page_gen *g);

/* --- with a page ---------------------------------------------------------------------------------- */

struct page_terms {
    uint64_t hi_ms;
    int64_t offset_us;
    uint64_t until_us; /* a time of CLOCK_MONOTONIC */
    uint32_t kept;
};

/* Share 'page', which must be all zero and not yet given to a client. 'terms' is the part that only the broker writes:
 * memory that clients cannot write, or the same as 'page'. The generator borrows both until page_gen_close (). No
 * client makes an id of the page before page_gen_set_terms ().
 */
void page_gen_share (struct page_gen *g, struct page *page, struct page *terms, const char *instance, int64_t epoch_ms);

/* From now on a client's word is valid only if its time is not above the result of 'limit'. The generator calls 'limit'
 * only for words above its last result.
 */
void page_gen_set_limit (struct page_gen *g, page_limit_f *limit, void *arg);

/* Set the terms. 'hi_ms' must be the end of the range of time that the generator holds, or 0. */
void page_gen_set_terms (struct page_gen *g, const struct page_terms *terms);

/* page_gen_pause (): when this function returns, only the broker makes ids. page_gen_grant (): end the pause; from now
 * on the granules of each millisecond below 'first' are granted to other ranks, and no others. Both do nothing without
 * a page.
 */
void page_gen_pause (struct page_gen *g);
void page_gen_grant (struct page_gen *g, uint32_t first);

/* Return how many ids clients made since the last call. If a client is killed after it made ids and before it counted
 * them, these ids are missing. A client that writes nonsense to the page can add at most 1,024 ids for each millisecond
 * since the last call.
 */
uint64_t page_gen_others (struct page_gen *g);

/* From time 'ms' on only granules below 'first' are granted. If the word has reached 'ms', let clients use the other
 * granules.
 */
void page_gen_end_grants (struct page_gen *g, uint32_t first, uint64_t ms);

/* Close the page: no client makes ids any longer. Returns 0 if the word was valid, so that all ids that were made are
 * known. Otherwise the generator continues above the broker's own ids and above 'now_ms', and the function returns a
 * time. For times below it the caller may use only PAGE_OWN_GRANULES, and must not return a part of its lease to rank
 * 0.
 */
uint64_t page_gen_close (struct page_gen *g, uint64_t now_ms);

#endif /* LIBPAGE_PAGE_GEN_H */
