/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sim_check.c - checks a simulated history
 *
 * For each id one bit is kept. The bits of a generator and a millisecond form a page, and pages are found by hashing.
 * Ranges are kept as a list for each generator, in the order in which they were granted.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sim_check.h"

struct checked_page {
    uint64_t key; /* id >> 10, plus 1; 0: the entry is free */
    uint64_t bit[FLUID_PER_MS / 64];
};

struct held {
    uint32_t life;
    uint64_t lo_ms, hi_ms;
};

struct ranges {
    struct held *held;
    size_t count, size;
};

struct borrowed {
    uint32_t life, from;
    struct area area;
};

struct sim_check {
    struct checked_page *page; /* a hash table whose size is a power of two */
    size_t npages, used;
    struct ranges *ranges; /* index: generator */
    struct borrowed *borrowed;
    size_t nborrowed, borrowed_size;
    uint64_t ids;
    char violation[256];
};

void sim_check_fail (struct sim_check *c, const char *fmt, ...)
{
    va_list ap;

    if (c->violation[0] != '\0')
        return;
    va_start (ap, fmt);
    vsnprintf (c->violation, sizeof (c->violation), fmt, ap);
    va_end (ap);
}

const char *sim_check_violation (const struct sim_check *c)
{
    return c->violation[0] != '\0' ? c->violation : NULL;
}

uint64_t sim_check_ids (const struct sim_check *c)
{
    return c->ids;
}

struct sim_check *sim_check_create (void)
{
    struct sim_check *c = must (calloc (1, sizeof (*c)));

    c->npages = 1024;
    c->page = must (calloc (c->npages, sizeof (c->page[0])));
    c->ranges = must (calloc (FLUID_GENERATOR_MAX + 1, sizeof (c->ranges[0])));
    return c;
}

void sim_check_destroy (struct sim_check *c)
{
    if (!c)
        return;
    for (uint32_t g = 0; g <= FLUID_GENERATOR_MAX; g++)
        free (c->ranges[g].held);
    free (c->ranges);
    free (c->borrowed);
    free (c->page);
    free (c);
}

/* --- ranges ------------------------------------------------------------------------------------------ */

static void append (struct ranges *r, struct held held)
{
    if (r->count == r->size) {
        r->size = r->size ? 2 * r->size : 8;
        r->held = must (realloc (r->held, r->size * sizeof (r->held[0])));
    }
    r->held[r->count++] = held;
}

void sim_check_hold (struct sim_check *c, uint32_t generator, uint32_t life, uint64_t lo_ms, uint64_t hi_ms)
{
    struct ranges *r = &c->ranges[generator];
    struct held *own = NULL;

    for (size_t i = 0; i < r->count; i++) {
        struct held *h = &r->held[i];

        if (h->life == life && lo_ms >= h->lo_ms && lo_ms <= h->hi_ms)
            own = h;
        else if (h->life != life && h->lo_ms < h->hi_ms && lo_ms < h->hi_ms && h->lo_ms < hi_ms)
            sim_check_fail (c, "generator %u: life %u holds [%llu, %llu) and life %u [%llu, %llu)", (unsigned)generator,
                            (unsigned)h->life, (unsigned long long)h->lo_ms, (unsigned long long)h->hi_ms,
                            (unsigned)life, (unsigned long long)lo_ms, (unsigned long long)hi_ms);
    }
    if (!own)
        append (r, (struct held){ life, lo_ms, hi_ms });
    else if (own->hi_ms < hi_ms)
        own->hi_ms = hi_ms;
}

void sim_check_close (struct sim_check *c, uint32_t generator, uint32_t life, uint64_t end_ms)
{
    struct ranges *r = &c->ranges[generator];

    for (size_t i = 0; i < r->count; i++) {
        struct held *h = &r->held[i];

        if (h->life == life && h->hi_ms > end_ms)
            *h = (struct held){ life, h->lo_ms < end_ms ? h->lo_ms : end_ms, end_ms };
    }
}

/* --- subleases ----------------------------------------------------------------------------------------- */

static bool overlap (const struct area *x, const struct area *y)
{
    return x->generator == y->generator && (x->granules & y->granules) != 0
           && (x->range.lo_ms > y->range.lo_ms ? x->range.lo_ms : y->range.lo_ms)
                  < (x->range.hi_ms < y->range.hi_ms ? x->range.hi_ms : y->range.hi_ms);
}

/* Return the sublease of which the lender granted 'b' as a part; NULL if the lender owns the generator. */
static const struct borrowed *source (const struct sim_check *c, const struct borrowed *b)
{
    for (size_t i = c->nborrowed; i > 0; i--)
        if (c->borrowed[i - 1].life == b->from && overlap (&c->borrowed[i - 1].area, &b->area))
            return &c->borrowed[i - 1];
    return NULL;
}

/* Whether 'b' is a part of what 'life' holds, over any number of hops. */
static bool comes_from (const struct sim_check *c, const struct borrowed *b, uint32_t life)
{
    for (int hops = 0; b && hops < 64; hops++, b = source (c, b))
        if (b->from == life)
            return true;
    return false;
}

static struct borrowed *same_loan (struct sim_check *c, const struct borrowed *b)
{
    for (size_t i = c->nborrowed; i > 0; i--) {
        struct borrowed *o = &c->borrowed[i - 1];

        if (o->life == b->life && o->area.generator == b->area.generator && o->area.granules == b->area.granules
            && o->area.range.lo_ms == b->area.range.lo_ms)
            return o;
    }
    return NULL;
}

void sim_check_borrow (struct sim_check *c, uint32_t life, uint32_t from, const struct area *area)
{
    struct borrowed b = { life, from, *area };

    for (size_t i = 0; i < c->nborrowed; i++) {
        const struct borrowed *o = &c->borrowed[i];

        if (o->life != life && overlap (&o->area, area) && !comes_from (c, &b, o->life) && !comes_from (c, o, life))
            sim_check_fail (c, "life %u was granted a part of generator %u that life %u has, at %llu", (unsigned)life,
                            (unsigned)area->generator, (unsigned)o->life, (unsigned long long)area->range.lo_ms);
    }
    struct borrowed *same = same_loan (c, &b);
    if (same)
        same->area = *area;
    else {
        if (c->nborrowed == c->borrowed_size) {
            c->borrowed_size = c->borrowed_size ? 2 * c->borrowed_size : 64;
            c->borrowed = must (realloc (c->borrowed, c->borrowed_size * sizeof (c->borrowed[0])));
        }
        c->borrowed[c->nborrowed++] = b;
    }
}

void sim_check_return (struct sim_check *c, uint32_t life, uint64_t end_ms)
{
    for (size_t i = 0; i < c->nborrowed; i++) {
        struct range *r = &c->borrowed[i].area.range;

        if (c->borrowed[i].life == life && r->hi_ms > end_ms)
            r->hi_ms = end_ms > r->lo_ms ? end_ms : r->lo_ms;
    }
}

static bool is_borrowed (const struct sim_check *c, uint32_t generator, uint64_t ms)
{
    for (size_t i = c->nborrowed; i > 0; i--) {
        const struct area *a = &c->borrowed[i - 1].area;

        if (a->generator == generator && ms >= a->range.lo_ms && ms < a->range.hi_ms)
            return true;
    }
    return false;
}

static bool is_held (const struct sim_check *c, uint32_t generator, uint64_t ms)
{
    const struct ranges *r = &c->ranges[generator];

    for (size_t i = r->count; i > 0; i--)
        if (ms >= r->held[i - 1].lo_ms && ms < r->held[i - 1].hi_ms)
            return true;
    return is_borrowed (c, generator, ms);
}

/* --- ids ----------------------------------------------------------------------------------------------- */

static struct checked_page *find (struct checked_page *page, size_t npages, uint64_t key)
{
    size_t i = (key * UINT64_C (0x9e3779b97f4a7c15) >> 20) & (npages - 1);

    while (page[i].key != 0 && page[i].key != key)
        i = (i + 1) & (npages - 1);
    return &page[i];
}

static void grow (struct sim_check *c)
{
    size_t npages = 2 * c->npages;
    struct checked_page *page = must (calloc (npages, sizeof (page[0])));

    for (size_t i = 0; i < c->npages; i++)
        if (c->page[i].key != 0)
            *find (page, npages, c->page[i].key) = c->page[i];
    free (c->page);
    c->page = page;
    c->npages = npages;
}

static struct checked_page *get_page (struct sim_check *c, uint64_t key)
{
    struct checked_page *p = find (c->page, c->npages, key);

    if (p->key == 0) {
        p->key = key;
        if (++c->used > c->npages / 2) {
            grow (c);
            p = find (c->page, c->npages, key);
        }
    }
    return p;
}

void sim_check_issue (struct sim_check *c, const struct id_run *run)
{
    struct fluid_fields f = fluid_split (run->first);
    struct checked_page *p = get_page (c, (run->first >> 10) + 1);

    for (uint32_t s = f.sequence; s < f.sequence + run->n; s++) {
        if (s > FLUID_SEQUENCE_MAX || (p->bit[s / 64] >> (s % 64) & 1))
            sim_check_fail (c, "generator %u made id %llu.%u twice", (unsigned)f.generator,
                            (unsigned long long)f.timestamp_ms, (unsigned)s);
        else
            p->bit[s / 64] |= UINT64_C (1) << (s % 64);
    }
    if (!is_held (c, f.generator, f.timestamp_ms))
        sim_check_fail (c, "generator %u made an id at %llu, in a range that no life holds", (unsigned)f.generator,
                        (unsigned long long)f.timestamp_ms);
    c->ids += run->n;
}
