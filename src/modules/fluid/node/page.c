/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* page.c - a node that shares its generator with clients of its host (doc/design/page.md) */
#include <errno.h>
#include <syslog.h>

#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/fluid/node/private.h"

#define COARSE_US 10000 /* a coarse clock is at most this much behind */
#define MONTH_US (UINT64_C (31) * 86400 * 1000000)
#define APART_US 100    /* difference of two processors' clocks; must be below 1 ms, see limit_ms () */
#define LOOK_US 1000000 /* with a page, the terms are renewed at least this often */

/* The current time, which is later than the time of the call. Without ops.now_us () no time passes within a call. */
static uint64_t read_clock (struct node *n)
{
    if (n->ops->now_us)
        n->page_now_us = max_u64 (n->page_now_us, n->ops->now_us (n->arg));
    return n->page_now_us;
}

/* Note that clients' clocks have used an offset until now. */
static void note_offset (struct node *n, int64_t offset_us)
{
    n->page_limit_us = max_u64 (n->page_limit_us, read_clock (n) + (uint64_t)offset_us);
}

/* A page_limit_f. Each client uses an offset that was published, and makes no id of a time that its clock has not
 * shown, but sleeps until then. So a valid word is ahead of this clock by at most the difference of two clocks. That is
 * less than a millisecond, so words that are as far ahead as allowed delay this node only at the end of a millisecond.
 */
static uint64_t limit_ms (void *arg)
{
    struct node *n = arg;

    if (n->page_published)
        note_offset (n, n->page_offset_us);
    return (n->page_limit_us + APART_US) / 1000;
}

int node_page_open (struct node *n, uint64_t now_us, struct page *page, struct page *terms, const char *instance)
{
    if (!n->owner || n->spoilt.is)
        return errset (ENOTSUP);
    if (n->stopped || !n->epoch.known || n->gen.page || node_now_ms (n, now_us) < n->spoilt.end_ms)
        return errset (EAGAIN);
    page_gen_share (&n->gen, page, terms, instance, n->epoch.ms);
    page_gen_set_limit (&n->gen, limit_ms, n);
    page_gen_grant (&n->gen, grants_top (&n->parts, 0));
    node_tick (n, now_us);
    return 0;
}

static void see (struct node *n, const struct word *w)
{
    n->cursor_ms = max_u64 (n->cursor_ms, w->ms);
    n->last_id = max_u64 (n->last_id, page_gen_newest (&n->gen));
}

uint64_t node_page_now (const struct node *n, uint64_t now_us)
{
    return n->gen.page ? max_u64 (now_us, n->page_now_us) : now_us;
}

void node_page_close (struct node *n, uint64_t now_us)
{
    struct word last;

    if (!n->gen.page)
        return;
    n->page_now_us = max_u64 (n->page_now_us, now_us);
    if (page_gen_look (&n->gen, &last))
        n->stats.page_ids += page_gen_others (&n->gen);
    uint64_t end_ms = page_gen_close (&n->gen, node_now_ms (n, node_page_now (n, now_us)));
    page_gen_look (&n->gen, &last);
    see (n, &last);
    if (end_ms == 0)
        return;
    n->spoilt.is = true;
    n->spoilt.end_ms = end_ms;
    n->free.until_ms = 0;
    node_log (n, LOG_ERR,
              "the page that clients share holds an invalid word (fluid.attach decides who may write it): the page "
              "is closed, and this rank makes %u ids in a millisecond until its lease is over",
              FLUID_GRANULE);
}

void node_page_look (struct node *n, uint64_t now_us)
{
    struct word w;

    if (!n->gen.page)
        return;
    n->page_now_us = max_u64 (n->page_now_us, now_us);
    if (!page_gen_look (&n->gen, &w)) {
        node_page_close (n, now_us);
        return;
    }
    see (n, &w);
    n->stats.page_ids += page_gen_others (&n->gen);
}

uint64_t node_page_granules (const struct node *n, uint64_t ms, uint64_t *until_ms)
{
    if (ms >= n->spoilt.end_ms)
        return UINT64_MAX;
    *until_ms = min_u64 (*until_ms, n->spoilt.end_ms);
    return PAGE_OWN_GRANULES;
}

/* The word of a page has one number, and clients may use all sequence numbers above it. So only the lower half of the
 * sequence numbers can be granted. While the lease of a spoilt page is not over, nothing is granted.
 */
uint64_t node_page_may_grant (const struct node *n, uint64_t now_ms)
{
    if (now_ms < n->spoilt.end_ms)
        return 0;
    return n->gen.page ? (UINT64_C (1) << FLUID_GRANULES / 2) - 1 : UINT64_MAX;
}

uint64_t node_page_next_ms (struct node *n, uint64_t now_us, uint64_t now_ms)
{
    page_gen_pause (&n->gen);
    node_page_look (n, now_us);
    return max_u64 (now_ms, n->cursor_ms) + 1;
}

void node_page_granted (struct node *n)
{
    page_gen_grant (&n->gen, grants_top (&n->parts, n->cursor_ms));
}

/* While requests wait here, clients leave half of each millisecond to the node. */
static uint32_t kept (const struct node *n)
{
    return n->waiting.length > 0 ? FLUID_PER_MS / 2 : 0;
}

static void set_terms (struct node *n, uint64_t now_us, uint64_t monotonic_us)
{
    struct page_terms terms = { .kept = kept (n) };
    uint64_t now_ms;

    if (node_may_generate (n, now_us, &now_ms) && n->cur.until_us > now_us + COARSE_US) {
        terms.hi_ms = n->cur.box.range.hi_ms;
        terms.until_us = monotonic_us + min_u64 (n->cur.until_us - now_us, MONTH_US) - COARSE_US;
        terms.offset_us = (int64_t)(clock_read (n->clock, now_us) - now_us);
    }
    if (!n->gen.page) /* node_may_generate () may have closed it */
        return;
    page_gen_set_terms (&n->gen, &terms);
    if (terms.hi_ms == 0)
        return;
    if (n->page_published && n->page_offset_us != terms.offset_us)
        note_offset (n, n->page_offset_us); /* until now a client may have used that offset */
    n->page_published = true;
    n->page_offset_us = terms.offset_us;
}

bool node_page_publish (struct node *n, uint64_t now_us, uint64_t monotonic_us)
{
    node_page_look (n, now_us);
    if (n->gen.page)
        set_terms (n, now_us, monotonic_us);
    page_gen_end_grants (&n->gen, grants_top (&n->parts, n->cursor_ms), n->cursor_ms);
    return n->gen.page;
}

void node_page_work (struct node *n, uint64_t now_us)
{
    if (n->gen.page)
        node_wake (n, now_us + LOOK_US);
}
