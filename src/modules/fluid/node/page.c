/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* page.c - a node that shares its generator with processes of its host (doc/design/page.md) */
#include <errno.h>
#include <syslog.h>

#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/fluid/node/private.h"

#define COARSE_US 10000 /* at most a coarse clock is behind */
#define MONTH_US (UINT64_C (31) * 86400 * 1000000)
#define LOOK_US 1000000 /* while there is a page: its clock is set as often, at least */

int node_page_open (struct node *n, uint64_t now_us, struct page *page, const char *instance)
{
    if (!n->owner || n->page_spoilt)
        return errset (ENOTSUP);
    if (n->stopped || !n->epoch.known || n->gen.page)
        return errset (EAGAIN);
    page_gen_share (&n->gen, page, instance, n->epoch.ms);
    page_gen_lend (&n->gen, lender_top (&n->sharing.lender, 0));
    node_tick (n, now_us);
    return 0;
}

static void see (struct node *n, const struct word *w)
{
    n->cursor_ms = max_u64 (n->cursor_ms, w->ms);
    n->last_id = max_u64 (n->last_id, page_gen_newest (&n->gen));
}

/* A page that was spoilt says nothing. */
void node_page_close (struct node *n)
{
    struct word last;

    if (!n->page_spoilt)
        n->stats.page_ids += page_gen_others (&n->gen);
    page_gen_close (&n->gen);
    page_gen_look (&n->gen, &last);
    see (n, &last);
}

void node_page_look (struct node *n)
{
    struct word w;

    if (!n->gen.page)
        return;
    if (!page_gen_look (&n->gen, &w)) {
        node_log (n, LOG_ERR,
                  "the page that processes share does not hold what it may: it is closed, and no id is made of "
                  "what is left of the lease (who has it: fluid.attach)");
        n->page_spoilt = true;
        node_page_close (n);
        return;
    }
    see (n, &w);
    n->stats.page_ids += page_gen_others (&n->gen);
}

/* Others can keep one number only apart from what is lent: that is low. */
uint64_t node_page_may_lend (const struct node *n)
{
    return n->gen.page ? (UINT64_C (1) << FLUID_GRANULES / 2) - 1 : UINT64_MAX;
}

uint64_t node_page_next_ms (struct node *n, uint64_t now_ms)
{
    page_gen_pause (&n->gen);
    node_page_look (n);
    return max_u64 (now_ms, n->cursor_ms) + 1;
}

void node_page_lent (struct node *n)
{
    page_gen_lend (&n->gen, lender_top (&n->sharing.lender, n->cursor_ms));
}

/* Askers that wait here are one more that makes ids of the word: half of each millisecond is theirs. */
static uint32_t kept (const struct node *n)
{
    return n->waiting.length > 0 ? FLUID_PER_MS / 2 : 0;
}

static void set_terms (struct node *n, uint64_t now_us, uint64_t monotonic_us)
{
    struct page_terms terms = { .kept = kept (n) };
    uint64_t now_ms;

    if (node_may_generate (n, now_us, &now_ms) && n->cur.until_us > now_us + COARSE_US) {
        terms.hi_ms = n->cur.range.hi_ms;
        terms.until_us = monotonic_us + min_u64 (n->cur.until_us - now_us, MONTH_US) - COARSE_US;
        terms.offset_us = (int64_t)(clock_read (n->clock, now_us) - now_us);
    }
    if (n->gen.page) /* a look may have closed it */
        page_gen_set_terms (&n->gen, &terms);
}

bool node_page_publish (struct node *n, uint64_t now_us, uint64_t monotonic_us)
{
    node_page_look (n);
    if (n->gen.page)
        set_terms (n, now_us, monotonic_us);
    page_gen_end_loans (&n->gen, lender_top (&n->sharing.lender, n->cursor_ms), n->cursor_ms);
    return n->gen.page;
}

void node_page_work (struct node *n, uint64_t now_us)
{
    if (n->gen.page)
        node_wake (n, now_us + LOOK_US);
}
