/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* page_gen.c - a broker's generator, whose state is one word
 *
 * No id is made twice, because (ms, used) of the word grows in lexical order with each swap by any process, and never
 * shrinks. The names of rules in this file are from doc/model/page.pml.
 */
#include <stdio.h>

#include "libfluid/granules.h"
#include "libpage/page_gen.h"
#include "libutil/errprintf.h"

static _Atomic uint64_t *word_of (struct page_gen *g)
{
    return g->page ? &g->page->word : &g->own;
}

static bool swap (struct page_gen *g, uint64_t *had, struct word w) /* COMPARE_WORD: fails if the word has changed */
{
    const struct word was = word_unpack (*had);
    uint64_t packed = word_pack (w);

    if (!atomic_compare_exchange_strong (word_of (g), had, packed))
        return false;
    g->seen = packed;
    if (word_used (was) > 0)
        g->made = word_pack (was);
    if (g->page) {
        atomic_fetch_add_explicit (&g->page->passed, word_left (was, w), memory_order_relaxed);
        g->mine += (uint64_t)word_left (was, w) + word_count (w) - word_count (was);
    }
    return true;
}

/* Whether a client's clock can have shown 'ms'. 'ms' is the time of a word that was loaded before this call. */
static bool has_come (struct page_gen *g, uint64_t ms)
{
    if (g->limit && ms > g->limit_ms)
        g->limit_ms = g->limit (g->limit_arg); /* CLOCK_AFTER: read it after the word */
    return !g->limit || ms <= g->limit_ms;
}

/* Whether clients can have made this word from the last word that was seen. */
static bool is_sound (struct page_gen *g, uint64_t packed)
{
    struct word w = word_unpack (packed), seen = word_unpack (g->seen);

    if (w.closed || w.first != seen.first || (w.used > PAGE_OWN_FIRST && (w.ms != seen.ms || w.used != seen.used)))
        return false;
    if (w.ms == seen.ms)
        return w.used >= seen.used;
    return w.ms > seen.ms && w.ms < g->top_ms && has_come (g, w.ms);
}

/* Whether the generator may continue from the word 'had', which it has just loaded. If it may not, the page counts as
 * spoilt, even if a client repairs the word later. The next word that is accepted must be above 'had'. So a client that
 * keeps swapping cannot keep the loops of this file running: it either uses up its numbers, or writes a word that goes
 * back.
 */
static bool may_follow (struct page_gen *g, uint64_t had)
{
    if (g->page && !g->spoilt && !is_sound (g, had))
        g->spoilt = true;
    if (g->page && !g->spoilt)
        g->seen = had;
    return !g->spoilt;
}

void page_gen_init (struct page_gen *g, uint32_t generator)
{
    *g = (struct page_gen){ .generator = generator };
}

int page_gen_set_range (struct page_gen *g, uint64_t lo_ms, uint64_t hi_ms)
{
    if (lo_ms > hi_ms)
        return errset (EINVAL);
    if (hi_ms > FLUID_TIMESTAMP_MAX + 1)
        return errset (EOVERFLOW);
    g->lo_ms = lo_ms;
    g->hi_ms = hi_ms;
    return 0;
}

/* Advance the word: from now on no id before millisecond 'ms' is made, and no id of 'ms' with a sequence number below
 * 'used'.
 */
static void move_up (struct page_gen *g, uint64_t ms, uint32_t used)
{
    uint64_t had = atomic_load (word_of (g));
    struct word w;

    do {
        if (!may_follow (g, had))
            return;
        w = word_advance (word_unpack (had), ms);
        if (w.ms == ms && used > w.used)
            w.used = used;
    } while (word_pack (w) != had && !swap (g, &had, w));
}

void page_gen_advance (struct page_gen *g, uint64_t ms)
{
    move_up (g, ms, 0);
}

void page_gen_follow (struct page_gen *g, fluid_t id)
{
    struct fluid_fields f = fluid_split (id);
    uint32_t used = f.generator > g->generator ? FLUID_PER_MS : f.generator == g->generator ? f.sequence + 1 : 0;

    move_up (g, f.timestamp_ms, used);
}

/* --- ids -------------------------------------------------------------------------------------------- */

/* Whether an id may be made at 'now_ms'. Returns 0, or the errno that says why not. */
static int refusal (const struct page_gen *g, const struct word *w, uint64_t now_ms)
{
    if (now_ms > FLUID_TIMESTAMP_MAX)
        return EOVERFLOW;
    if (now_ms < g->lo_ms || now_ms >= g->hi_ms)
        return ERANGE;
    if (now_ms < w->ms || (now_ms == w->ms && w->used >= FLUID_PER_MS))
        return EAGAIN;
    return 0;
}

int page_gen_reserve_in (struct page_gen *g, uint64_t now_ms, uint64_t granules, uint32_t want, fluid_t *first)
{
    uint64_t had = atomic_load (word_of (g));
    struct fluid_fields f = { .timestamp_ms = now_ms, .generator = g->generator };
    struct word w;
    uint32_t n;

    do {
        w = word_unpack (had);
        int why = want == 0 ? EINVAL : !may_follow (g, had) ? EAGAIN : refusal (g, &w, now_ms);
        if (why == 0 && (n = granules_run (granules, now_ms == w.ms ? w.used : 0, &f.sequence)) == 0)
            why = EAGAIN;
        if (why != 0)
            return errset (why);
        n = want < n ? want : n;
        w.ms = now_ms;
        w.used = f.sequence + n;
    } while (!swap (g, &had, w));
    g->own_ms = now_ms;
    fluid_join (&f, first); /* cannot fail: all fields are in range */
    return (int)n;
}

/* --- with a page ------------------------------------------------------------------------------------- */

void page_gen_share (struct page_gen *g, struct page *page, struct page *terms, const char *instance, int64_t epoch_ms)
{
    assert (!g->page);
    *terms = (struct page){
        .magic = PAGE_MAGIC, .version = PAGE_VERSION, .generator = g->generator, .epoch_ms = epoch_ms
    };
    snprintf (terms->instance, sizeof (terms->instance), "%s", instance);
    g->seen = atomic_load (&g->own);
    atomic_store (&page->word, g->seen);
    g->mine = word_count (word_unpack (g->seen));
    g->told = 0;
    g->told_ms = word_unpack (g->seen).ms;
    g->top_ms = 0;
    page_gen_set_limit (g, NULL, NULL);
    g->spoilt = false;
    g->page = page;
    g->terms = terms;
}

void page_gen_set_limit (struct page_gen *g, page_limit_f *limit, void *arg)
{
    g->limit = limit;
    g->limit_arg = arg;
    g->limit_ms = 0;
}

void page_gen_set_terms (struct page_gen *g, const struct page_terms *terms)
{
    struct page *page = g->terms;

    assert (page);
    if (terms->hi_ms > 0)
        page_gen_advance (g, g->lo_ms); /* WORD_FIRST: no client makes ids below the new box */
    if (terms->hi_ms > g->top_ms)
        g->top_ms = terms->hi_ms;
    if (terms->hi_ms > 0) /* with 0 the old offset stays, because a client may have read the previous hi_ms */
        atomic_store (&page->offset_us, terms->offset_us);
    atomic_store (&page->until_us, terms->until_us);
    atomic_store (&page->kept, terms->kept);
    atomic_store (&page->hi_ms, terms->hi_ms);
}

void page_gen_grant (struct page_gen *g, uint32_t first)
{
    uint64_t had = atomic_load (word_of (g));
    struct word w;

    do {
        if (!g->page || !may_follow (g, had))
            return;
        w = word_unpack (had);
        w.first = first;
    } while (!swap (g, &had, w));
}

void page_gen_pause (struct page_gen *g)
{
    page_gen_grant (g, WORD_ALL_GRANTED); /* NUMBERS_IN_WORD: the same swap stops all clients */
}

void page_gen_end_grants (struct page_gen *g, uint32_t first, uint64_t ms)
{
    uint64_t had = atomic_load (word_of (g));
    struct word w = word_unpack (had);

    if (!g->page || w.ms < ms || w.first <= first || !may_follow (g, had))
        return;
    w.first = first;
    swap (g, &had, w); /* if the swap fails, the next call tries again */
}

bool page_gen_look (struct page_gen *g, struct word *w)
{
    uint64_t packed = atomic_load (word_of (g));
    bool sound = !g->page || (!g->spoilt && is_sound (g, packed));

    if (sound)
        g->seen = packed;
    *w = word_unpack (g->seen);
    return sound;
}

/* A client moves the word only to make ids. The broker may also move it to a millisecond of which it makes no ids
 * (PAST_FIRST). In that case the newest id is in the last word with ids before that move.
 */
fluid_t page_gen_newest (const struct page_gen *g)
{
    struct word w = word_unpack (g->seen);
    fluid_t id = 0;

    if (word_used (w) == 0)
        w = word_unpack (g->made);
    if (word_used (w) > 0)
        fluid_join (&(struct fluid_fields){ w.ms, g->generator, w.used - 1 }, &id); /* cannot fail: all in range */
    return id;
}

/* 'passed' is read before the word. If a client moves ids from the word to 'passed' between the two reads, these ids
 * are missed by this call, but no id is counted twice.
 */
uint64_t page_gen_others (struct page_gen *g)
{
    if (!g->page)
        return 0;
    uint64_t passed = atomic_load (&g->page->passed);
    struct word w = word_unpack (atomic_load (word_of (g)));
    uint64_t all = passed + word_count (w) - g->mine, n = all - g->told, most;

    if ((int64_t)n <= 0 || w.ms < g->told_ms)
        return 0;
    most = (w.ms - g->told_ms + 1) * FLUID_PER_MS;
    g->told = all;
    g->told_ms = w.ms;
    return n < most ? n : most;
}

uint64_t page_gen_close (struct page_gen *g, uint64_t now_ms)
{
    if (!g->page)
        return 0;
    uint64_t packed = atomic_fetch_or (&g->page->word, WORD_CLOSED); /* CLOSE_IN_ONE: no id is made after this step */
    bool sound = !g->spoilt && is_sound (g, packed);
    struct word last = word_unpack (sound ? packed : g->seen);

    if (!sound) {
        uint64_t ms = last.ms > g->own_ms ? last.ms : g->own_ms;

        last = word_advance (last, (ms > now_ms ? ms : now_ms) + 1);
    }
    last.first = 0;
    atomic_store (&g->terms->hi_ms, 0);
    atomic_store (&g->own, word_pack (last));
    g->page = g->terms = NULL;
    g->spoilt = false;
    return sound ? 0 : g->top_ms;
}
