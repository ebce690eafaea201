/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* generate.c - makes ids of a page, in a client's process
 *
 * The order of the steps keeps ids unique (doc/model/page.pml): the end of the range is read before the word, and the
 * time of use is checked after the swap. Ids are made from the millisecond of the call on, even if it has passed, so a
 * process that wakes up late wastes nothing.
 */
#include "config.h"

#include <errno.h>
#include <time.h>

#include "libpage/inside.h"
#include "libutil/errprintf.h"

static uint64_t read_us (clockid_t which)
{
    struct timespec ts;

    clock_gettime (which, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* Times of a call, both of CLOCK_BOOTTIME: when ids were requested, and the last reading. */
struct moment {
    uint64_t asked_us; /* CLOCK_BOOTTIME */
    uint64_t now_us;
};

static uint64_t ms_of (uint64_t boot_us, int64_t offset_us)
{
    return (uint64_t)((int64_t)boot_us + offset_us) / 1000;
}

/* Find the next ids that the word 'w' allows, from 'ms' on and above 'after'. Sets '*f' to the first id and returns how
 * many ids its millisecond still has.
 */
static uint32_t choose (const idt_page_t *p, const struct word *w, uint64_t ms, fluid_t after, struct fluid_fields *f)
{
    uint32_t first = w->first * FLUID_GRANULE, kept = atomic_load_explicit (&p->terms->kept, memory_order_relaxed);
    uint32_t end = kept < PAGE_OWN_FIRST ? PAGE_OWN_FIRST - kept : 0;
    fluid_t id;

    *f = (struct fluid_fields){ ms, p->generator, first };
    if (ms <= w->ms) {
        f->timestamp_ms = w->ms;
        f->sequence = w->used > first ? w->used : first;
    }
    if (f->sequence >= end) {
        f->timestamp_ms++;
        f->sequence = first;
    }
    if (fluid_join (f, &id) == 0 && id <= after) {
        f->timestamp_ms = fluid_split (after).timestamp_ms + 1;
        f->sequence = first;
    }
    return f->sequence < end ? end - f->sequence : 0;
}

/* Sleep until millisecond 'ms', if that is at most IDT_PAGE_WAIT_MS away. Returns 0, or -1 with errno EAGAIN. */
static int wait_for (uint64_t ms, int64_t offset_us, struct moment *m)
{
    uint64_t at_us = (uint64_t)((int64_t)(ms * 1000) - offset_us);
    struct timespec ts = { .tv_sec = (time_t)(at_us / 1000000), .tv_nsec = (long)(at_us % 1000000 * 1000) };

    if (at_us > m->now_us + IDT_PAGE_WAIT_MS * 1000)
        return errset (EAGAIN);
    clock_nanosleep (CLOCK_BOOTTIME, TIMER_ABSTIME, &ts,
                     NULL); /* a signal may end it early: the caller checks the time */
    m->now_us = read_us (CLOCK_BOOTTIME);
    return 0;
}

/* Reserve up to 'want' ids of one millisecond. Returns how many, or -1 with errno as for idt_page_generate (). */
static int reserve (idt_page_t *p, struct moment *m, fluid_t after, uint32_t want, fluid_t *first)
{
    struct page *page = p->page, *terms = p->terms;

    for (;;) {
        uint64_t hi_ms = atomic_load (&terms->hi_ms); /* must precede the load of the word */
        uint64_t had = atomic_load (&page->word);
        int64_t offset_us = atomic_load_explicit (&terms->offset_us, memory_order_relaxed);
        const struct word was = word_unpack (had);
        struct word w = was;
        struct fluid_fields f;

        if (w.closed)
            return errset (ESTALE);
        uint32_t n = choose (p, &w, ms_of (m->asked_us, offset_us), after, &f);
        if (n == 0 || f.timestamp_ms >= hi_ms || f.timestamp_ms > FLUID_TIMESTAMP_MAX)
            return errset (EAGAIN);
        if (f.timestamp_ms > ms_of (m->now_us, offset_us)) {
            if (wait_for (f.timestamp_ms, offset_us, m) < 0)
                return -1;
            continue;
        }
        n = want < n ? want : n;
        w.ms = f.timestamp_ms;
        w.used = f.sequence + n;
        if (!atomic_compare_exchange_weak (&page->word, &had, word_pack (w))) /* COMPARE_WORD of page.pml */
            continue;
        if (word_left (was, w) > 0)
            atomic_fetch_add_explicit (&page->passed, word_left (was, w), memory_order_relaxed);
        if (read_us (CLOCK_MONOTONIC_COARSE) >= atomic_load (&terms->until_us)) /* LOOK_AGAIN of page.pml */
            return errset (EAGAIN);
        fluid_join (&f, first); /* cannot fail: all in range */
        return (int)n;
    }
}

/* Unrolled by hand, because compilers unroll it only with -O3. A large block spends most of its time here. */
static void store_run (fluid_t *ids, fluid_t first, uint32_t n)
{
    uint32_t i = 0;

    for (; i + 4 <= n; i += 4) {
        ids[i] = first + i;
        ids[i + 1] = first + i + 1;
        ids[i + 2] = first + i + 2;
        ids[i + 3] = first + i + 3;
    }
    for (; i < n; i++)
        ids[i] = first + i;
}

int idt_page_generate (idt_page_t *p, fluid_t after, uint32_t n, fluid_t *ids)
{
    struct moment m;
    uint32_t got = 0;

    if (n == 0)
        return errset (EINVAL);
    m.asked_us = m.now_us = read_us (CLOCK_BOOTTIME);
    while (got < n) {
        fluid_t first;
        int k = reserve (p, &m, after, n - got, &first);

        if (k < 0)
            return got > 0 ? (int)got : -1;
        store_run (ids + got, first, (uint32_t)k);
        got += (uint32_t)k;
        after = ids[got - 1];
    }
    return (int)got;
}

int64_t idt_page_epoch (const idt_page_t *p)
{
    return p->epoch_ms;
}

const char *idt_page_instance (const idt_page_t *p)
{
    return p->instance;
}

uint32_t idt_page_generator (const idt_page_t *p)
{
    return p->generator;
}
