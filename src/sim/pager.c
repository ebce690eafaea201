/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pager.c - processes on a life's host that make ids by its page
 *
 * They run the client's code (libpage/page_client.c). The linker replaces its clocks by simulated ones:
 * -Wl,--wrap=clock_gettime,--wrap=clock_nanosleep. If a process would sleep, its call ends, and is repeated when the
 * sleep is over. Some processes are stopped after their first reading of the clock, and continue later, after other
 * events.
 */
#include <errno.h>
#include <setjmp.h>
#include <time.h>

#include "libpage/page_client.h"
#include "libutil/minmax.h"
#include "sim/world.h"

/* Shared libraries must find these functions, too, because they call the functions of libc that this test replaces. */
#pragma GCC visibility push(default)

#define COARSE_US 4000 /* largest delay of a coarse clock, in microseconds */
#define MOST 3000      /* most ids of a call */

int __wrap_clock_gettime (clockid_t which, struct timespec *ts);
int __wrap_clock_nanosleep (clockid_t which, int flags, const struct timespec *at, struct timespec *left);

struct pager {
    struct idt_page client; /* page NULL: the process has no page */
    fluid_t last;           /* the last id that it made */
    bool asks;
    uint32_t want;
    uint64_t asked_us; /* the life's clock at the first reading of the call */
    uint64_t truth_us; /* the instance's time at that reading; 0: unknown */
    fluid_t floor;     /* the newest id that others had made at that time */
    uint64_t bound_us; /* largest error of the clock, by its own bound */
};

/* --- clocks of the process that runs ------------------------------------------------------------------- */

static struct {
    uint64_t boot_us, now_us, coarse_us, wake_us;
    jmp_buf sleeps;
} called;

int __wrap_clock_gettime (clockid_t which, struct timespec *ts)
{
    uint64_t us = which == CLOCK_BOOTTIME ? called.boot_us : called.coarse_us;

    *ts = (struct timespec){ .tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000 * 1000) };
    return 0;
}

int __wrap_clock_nanosleep (clockid_t which, int flags, const struct timespec *at, struct timespec *left)
{
    called.wake_us = (uint64_t)at->tv_sec * 1000000 + ((uint64_t)at->tv_nsec + 999) / 1000;
    if (called.wake_us > called.now_us)
        longjmp (called.sleeps, 1);
    called.boot_us = called.now_us;
    return 0;
}

/* Make ids like idt_page_generate (). EINPROGRESS: the process sleeps until called.wake_us. */
static int generate (struct life *l, struct pager *p, fluid_t *ids)
{
    called.boot_us = p->asked_us;
    called.now_us = life_boot_us (l);
    called.coarse_us = called.now_us - world_below (l->w, COARSE_US);
    if (setjmp (called.sleeps) == 0)
        return idt_page_generate (&p->client, p->last, p->want, ids);
    errno = EINPROGRESS;
    return -1;
}

/* --- pages ------------------------------------------------------------------------------------------------ */

/* Make a page. Its memory remains for the processes that have mapped it. */
static struct page *make_page (struct life *l)
{
    struct kept_page *kept = must (aligned_alloc (PAGE_LINE, sizeof (*kept)));

    *kept = (struct kept_page){ .next = l->w->pages };
    if (node_page_open (l->node, life_boot_us (l), &kept->page, &kept->page, l->uuid) < 0) {
        free (kept);
        return NULL;
    }
    l->w->pages = kept;
    return &kept->page;
}

void life_publish (struct life *l)
{
    if (l->page && !node_page_publish (l->node, life_boot_us (l), life_boot_us (l)))
        l->page = NULL;
}

/* Request the page. A living broker answers. */
static void get_page (struct life *l, struct pager *p)
{
    p->client.page = NULL;
    if (!l->alive || l->paused)
        return;
    if (!l->page && node_view (l->node).owner && (l->page = make_page (l)))
        life_look (l);
    if (l->page)
        p->client = (struct idt_page){ .page = l->page, .terms = l->page, .generator = l->page->generator };
}

/* --- ids ----------------------------------------------------------------------------------------------------- */

static void judge_run (struct life *l, const struct pager *p, const struct id_run *run)
{
    struct sim_check *c = l->w->check;
    struct fluid_fields f = fluid_split (run->first);

    sim_check_issue (c, run);
    if (run->first <= p->last || run->first <= p->floor)
        sim_check_fail (c, "a page of life %u gives an id at %llu that is not above an earlier one", (unsigned)l->id,
                        (unsigned long long)f.timestamp_ms);
    if (f.timestamp_ms < l->w->watermark_ms)
        sim_check_fail (c, "a page of life %u gives an id at %llu, below the watermark %llu", (unsigned)l->id,
                        (unsigned long long)f.timestamp_ms, (unsigned long long)l->w->watermark_ms);
    if (p->truth_us > 0 && (f.timestamp_ms + 1) * MS + max_u64 (p->bound_us, life_bound_us (l)) < p->truth_us)
        sim_check_fail (c, "a page of life %u gives an id at %llu for a request of %llu us", (unsigned)l->id,
                        (unsigned long long)f.timestamp_ms, (unsigned long long)p->truth_us);
}

static void judge (struct life *l, struct pager *p, const fluid_t *ids, int n)
{
    for (int i = 0, k; i < n; i += k) {
        for (k = 1; i + k < n && ids[i + k] == ids[i] + (fluid_t)k && fluid_split (ids[i + k]).sequence > 0; k++)
            ;
        judge_run (l, p, &(struct id_run){ ids[i], (uint32_t)k });
        p->last = ids[i + k - 1];
    }
    l->paged_id = max_u64 (l->paged_id, p->last);
    l->w->result.paged += (uint64_t)n;
}

static void begin (struct life *l, struct pager *p)
{
    struct world *w = l->w;

    p->asks = true;
    p->want = world_chance (w, 900) ? 1 + (uint32_t)world_below (w, 20) : 1 + (uint32_t)world_below (w, MOST);
    p->asked_us = life_boot_us (l);
    p->truth_us = world_truth_us (w);
    p->floor = max_u64 (l->paged_id, l->last_id);
    p->bound_us = life_bound_us (l);
}

void pagers_start (struct life *l)
{
    l->pager = must (calloc (NPAGERS, sizeof (l->pager[0])));
    for (uint64_t k = 0; k < NPAGERS; k++)
        world_later (l->w, world_below (l->w, 20 * MS), EV_PAGE, l->id, k);
}

void pager_event (struct life *l, uint64_t k)
{
    struct world *w = l->w;
    struct pager *p = &l->pager[k];
    fluid_t ids[MOST];

    if (!p->client.page)
        get_page (l, p);
    if (!p->client.page && !l->alive)
        return;
    if (p->client.page && !p->asks) {
        begin (l, p);
        if (world_chance (w, 100)) {
            world_later (w, world_below (w, 2 * w->lease_ms * MS), EV_PAGE, l->id, k);
            return;
        }
    }
    int n = p->client.page ? generate (l, p, ids) : 0;
    if (n < 0 && errno == EINPROGRESS) {
        world_later (w, called.wake_us - called.now_us + 1, EV_PAGE, l->id, k);
        return;
    }
    p->asks = false;
    if (n > 0)
        judge (l, p, ids, n);
    else
        p->client.page = NULL;
    world_later (w, 100 + world_below (w, world_chance (w, 300) ? 300 : 8 * MS), EV_PAGE, l->id, k);
}
