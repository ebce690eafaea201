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

struct checked_range {
    uint32_t life;
    uint64_t lo_ms, hi_ms;
};

struct ranges {
    struct checked_range *held;
    size_t count, size;
};

struct checked_part {
    uint32_t life, from;
    struct box box;
};

struct sim_check {
    struct checked_page *page; /* a hash table whose size is a power of two */
    size_t npages, used;
    struct ranges *ranges; /* index: generator */
    struct checked_part *part;
    size_t nparts, parts_size;
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
    free (c->part);
    free (c->page);
    free (c);
}

/* --- ranges ------------------------------------------------------------------------------------------ */

static void append (struct ranges *r, struct checked_range held)
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
    struct checked_range *own = NULL;

    for (size_t i = 0; i < r->count; i++) {
        struct checked_range *h = &r->held[i];

        if (h->life == life && lo_ms >= h->lo_ms && lo_ms <= h->hi_ms)
            own = h;
        else if (h->life != life && h->lo_ms < h->hi_ms && lo_ms < h->hi_ms && h->lo_ms < hi_ms)
            sim_check_fail (c, "generator %u: life %u holds [%llu, %llu) and life %u [%llu, %llu)", (unsigned)generator,
                            (unsigned)h->life, (unsigned long long)h->lo_ms, (unsigned long long)h->hi_ms,
                            (unsigned)life, (unsigned long long)lo_ms, (unsigned long long)hi_ms);
    }
    if (!own)
        append (r, (struct checked_range){ life, lo_ms, hi_ms });
    else if (own->hi_ms < hi_ms)
        own->hi_ms = hi_ms;
}

void sim_check_close (struct sim_check *c, uint32_t generator, uint32_t life, uint64_t end_ms)
{
    struct ranges *r = &c->ranges[generator];

    for (size_t i = 0; i < r->count; i++) {
        struct checked_range *h = &r->held[i];

        if (h->life == life && h->hi_ms > end_ms)
            *h = (struct checked_range){ life, h->lo_ms < end_ms ? h->lo_ms : end_ms, end_ms };
    }
}

#define MAX_GRANTERS 128 /* from a part up to the owner of the generator, over all paths */

/* --- parts ----------------------------------------------------------------------------------------- */

static bool overlap (const struct box *x, const struct box *y)
{
    return x->generator == y->generator && (x->granules & y->granules) != 0
           && (x->range.lo_ms > y->range.lo_ms ? x->range.lo_ms : y->range.lo_ms)
                  < (x->range.hi_ms < y->range.hi_ms ? x->range.hi_ms : y->range.hi_ms);
}

static struct box common (const struct box *x, const struct box *y)
{
    struct box b = { x->generator, x->granules & y->granules, x->range };

    b.range.lo_ms = b.range.lo_ms > y->range.lo_ms ? b.range.lo_ms : y->range.lo_ms;
    b.range.hi_ms = b.range.hi_ms < y->range.hi_ms ? b.range.hi_ms : y->range.hi_ms;
    return b;
}

static bool is_in (const uint32_t *lives, size_t n, uint32_t life)
{
    for (size_t i = 0; i < n; i++)
        if (lives[i] == life)
            return true;
    return false;
}

/* Whether 'from' granted 'box' as a part of what 'life' holds, over any number of hops. A granter may have several
 * parts that overlap, of several granters, if it has moved. So the search follows all of them, each life once.
 */
static bool comes_from (const struct sim_check *c, const struct box *box, uint32_t from, uint32_t life)
{
    uint32_t lives[MAX_GRANTERS] = { from };

    for (size_t n = 1, done = 0; done < n; done++)
        for (size_t i = c->nparts; i > 0 && n < MAX_GRANTERS; i--) {
            const struct checked_part *p = &c->part[i - 1];

            if (p->life == lives[done] && overlap (&p->box, box) && !is_in (lives, n, p->from))
                lives[n++] = p->from;
        }
    return is_in (lives, MAX_GRANTERS, life);
}

/* Whether one of two parts that overlap is, where they do, a part of the other. */
static bool is_part_of (const struct sim_check *c, const struct checked_part *x, const struct checked_part *y)
{
    const struct box box = common (&x->box, &y->box);

    return comes_from (c, &box, x->from, y->life) || comes_from (c, &box, y->from, x->life);
}

static struct checked_part *same_part (struct sim_check *c, const struct checked_part *b)
{
    for (size_t i = c->nparts; i > 0; i--) {
        struct checked_part *o = &c->part[i - 1];

        if (o->life == b->life && o->box.generator == b->box.generator && o->box.granules == b->box.granules
            && o->box.range.lo_ms == b->box.range.lo_ms)
            return o;
    }
    return NULL;
}

static void add_part (struct sim_check *c, const struct checked_part *b)
{
    if (c->nparts == c->parts_size) {
        c->parts_size = c->parts_size ? 2 * c->parts_size : 64;
        c->part = must (realloc (c->part, c->parts_size * sizeof (c->part[0])));
    }
    c->part[c->nparts++] = *b;
}

void sim_check_part (struct sim_check *c, uint32_t life, uint32_t from, const struct box *box)
{
    struct checked_part b = { life, from, *box };
    struct checked_part *same = same_part (c, &b);

    if (same) /* its granter may be another one than the life's present parent */
        b.from = same->from;
    for (size_t i = 0; i < c->nparts; i++) {
        const struct checked_part *o = &c->part[i];

        if (o->life != life && overlap (&o->box, box) && !is_part_of (c, &b, o))
            sim_check_fail (c, "life %u was granted a part of generator %u that life %u has, at %llu", (unsigned)life,
                            (unsigned)box->generator, (unsigned)o->life, (unsigned long long)box->range.lo_ms);
    }
    if (same)
        same->box = *box;
    else
        add_part (c, &b);
}

void sim_check_return (struct sim_check *c, uint32_t life, uint64_t end_ms, uint64_t kept)
{
    for (size_t i = 0, n = c->nparts; i < n; i++) {
        struct checked_part *p = &c->part[i], rest = *p;

        rest.box.granules &= kept;
        if (p->life != life || p->box.range.hi_ms <= end_ms || rest.box.granules == p->box.granules)
            continue;
        p->box.granules &= ~kept;
        p->box.range.hi_ms = end_ms > p->box.range.lo_ms ? end_ms : p->box.range.lo_ms;
        if (rest.box.granules != 0)
            add_part (c, &rest);
    }
}

static bool is_in_part (const struct sim_check *c, uint32_t generator, uint64_t ms)
{
    for (size_t i = c->nparts; i > 0; i--) {
        const struct box *a = &c->part[i - 1].box;

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
    return is_in_part (c, generator, ms);
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
