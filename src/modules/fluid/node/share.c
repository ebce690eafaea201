/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* share.c - subleases of sequence numbers: from the parent, and to children (doc/design/shares.md)
 *
 * An owner rank grants subleases and requests none. Any other rank requests a sublease if it needs one, and grants
 * parts of it. borrower.h keeps the subleases that a rank holds, lender.h those that it granted. struct demand decides
 * how much is needed.
 */
#include <errno.h>

#include "libutil/minmax.h"
#include "modules/fluid/node/private.h"

#define BUSY_MS 4 /* if the backlog is larger than this, nothing is granted */
#define BUSY_RETRY_MS 1000

static uint32_t width (uint64_t granules)
{
    return (uint32_t)__builtin_popcountll (granules) * FLUID_GRANULE;
}

/* No id was made, and nothing was granted, at or above this time. */
static uint64_t end_ms (const struct node *n)
{
    return max_u64 (n->cursor_ms + 1, lender_end (&n->sharing.lender)); /* rules S_USED, S_LENTON */
}

/* --- lent ---------------------------------------------------------------------------------------- */

/* Sequence numbers that this rank must keep. These are the configured part or, if that is more, four times its own
 * peak. 'anyhow' of them are subtracted, because so many numbers cannot be granted in any case. A rank with a large
 * backlog keeps all.
 */
static uint32_t kept (struct node *n, uint64_t now_ms, uint32_t anyhow)
{
    uint32_t keep = width (n->cur.granules) * n->config.share_keep / FLUID_PER_MS;
    uint32_t peak = 4 * demand_peak (&n->sharing.demand);

    if (n->waiting.missing > (uint64_t)BUSY_MS * width (node_granules (n, now_ms)))
        return FLUID_PER_MS;
    keep = keep > peak ? keep : peak;
    return keep > anyhow ? keep - anyhow : 0;
}

/* Remember the largest request that was not fully granted, so that this rank borrows enough for it. Subleases that this
 * rank granted already are counted elsewhere.
 */
static void note_missed (struct node *n, uint64_t now_us, const struct share_want *want, const struct share *share)
{
    struct sharing *s = &n->sharing;

    if (want->size == 0 || (share && width (share->granules) >= want->size))
        s->missed = 0;
    else if (s->missed < want->size || now_us >= s->missed_us)
        s->missed = want->size;
    s->missed_us = now_us + s->lender.term_ms * 1000;
}

/* Whether a request should wait until this rank has borrowed enough for it. The rank cannot get a larger sublease while
 * it grants a part of the one that it has. A request is delayed only once.
 */
static bool may_borrow_first (struct node *n, uint64_t now_us, const struct share_want *want,
                              const struct lender_stock *stock)
{
    const struct sharing *s = &n->sharing;
    bool again = now_us < s->missed_us && s->missed >= want->size;

    return !n->owner && stock->whole && !again && lender_lent (&s->lender, want) == 0
           && width (node_granules (n, stock->from_ms)) < want->size + stock->keep;
}

/* Grant at most half of what is available, so that something is left for the next request. A borrower keeps the size
 * that it had, unless another one recently got nothing.
 */
static void limit (struct node *n, uint64_t now_us, const struct lender_stock *stock, struct share_want *want)
{
    uint64_t granules = node_granules (n, stock->from_ms) & stock->whole->granules;
    uint32_t had = lender_lent (&n->sharing.lender, want), left = width (granules) + had;
    uint32_t most = left > stock->keep ? (left - stock->keep) / 2 : 0;

    if (now_us >= n->sharing.starved_us && had > most)
        most = had;
    while (want->size > AREA_MIN_SIZE && want->size > most)
        want->size /= 2;
}

/* Grant what is requested, or a part of it. Returns whether something was granted. */
static bool lend (struct node *n, uint64_t now_us, uint64_t now_ms, const struct lender_stock *stock,
                  struct share_want want, struct share *share)
{
    struct sharing *s = &n->sharing;
    bool has_some = lender_lent (&s->lender, &want) > 0;

    if (stock->whole)
        limit (n, now_us, stock, &want);
    bool lent = lender_answer (&s->lender, now_us, now_ms, stock, &want, share);
    if (lent && !has_some)
        s->starved_us = 0;
    else if (!lent && !has_some && want.size > 0 && stock->whole && stock->keep < FLUID_PER_MS)
        s->starved_us = now_us + s->lender.term_ms * 1000;
    return lent;
}

int node_share (struct node *n, uint64_t now_us, const struct share_want *want, struct share *share, uint64_t *retry_ms)
{
    struct lender_stock stock = { .whole = NULL };
    struct area whole;
    uint64_t now_ms = node_now_ms (n, now_us);

    errno = n->stopped ? EHOSTUNREACH : ENOTSUP;
    if (n->stopped || n->config.share == NODE_SHARE_OFF)
        return -1;
    *retry_ms = 0;
    if (node_may_generate (n, now_us, &now_ms)) {
        whole = n->cur;
        whole.granules &= node_page_may_lend (n, now_ms);
        stock.whole = &whole;
        stock.from_ms = node_page_next_ms (n, now_us, now_ms);
        stock.keep = kept (n, now_ms, width (n->cur.granules & ~whole.granules));
    }
    if (may_borrow_first (n, now_us, want, &stock))
        stock.whole = NULL;
    if (stock.keep == FLUID_PER_MS)
        *retry_ms = BUSY_RETRY_MS;
    bool lent = lend (n, now_us, now_ms, &stock, *want, share);
    node_page_lent (n);
    n->sharing.free.until_ms = 0;
    note_missed (n, now_us, want, lent ? share : NULL);
    n->stats.lent += lent;
    node_tick (n, now_us); /* so that this rank borrows what its children need */
    return lent;
}

/* --- needed -------------------------------------------------------------------------------------- */

/* Requests that fit into one millisecond are served here. That takes less than a millisecond longer than forwarding
 * them.
 */
bool node_share_is_short (struct node *n, uint64_t now_us, uint64_t more)
{
    uint64_t now_ms;

    if (!n->parent_up || !node_may_generate (n, now_us, &now_ms))
        return false;
    return n->waiting.missing + more > width (node_granules (n, now_ms));
}

/* Note the demand. A rank with a generator or a sublease needs its peaks. A borrower also needs to know whether its
 * sublease is large enough.
 */
void node_share_note (struct node *n, uint64_t now_us, uint32_t count, uint32_t got)
{
    uint64_t now_ms;
    bool here = n->owner || got == count
                || (!node_forward_is_busy (n) && node_may_generate (n, now_us, &now_ms)
                    && !node_share_is_short (n, now_us, count - got));

    if (n->config.share == NODE_SHARE_AUTO)
        demand_note (&n->sharing.demand, now_us, count, !here);
}

static uint32_t round_up (uint32_t n)
{
    uint32_t size = AREA_MIN_SIZE;

    while (size < AREA_MAX_SIZE && size < n)
        size *= 2;
    return size;
}

/* The size that children need. It is twice what they have, because this rank keeps as much for itself, plus four times
 * what was not granted, because requests for those ids still arrive here.
 */
static uint32_t needed_below (struct node *n, uint64_t now_us, uint64_t now_ms)
{
    const struct sharing *s = &n->sharing;
    uint32_t per_ms, missed = now_us < s->missed_us ? s->missed : 0;

    lender_count (&s->lender, now_ms, &per_ms);
    return per_ms + missed > 0 ? round_up (2 * per_ms + 4 * missed) : 0;
}

/* The size to request now. It grows immediately, and shrinks only if a quarter is enough. */
static uint32_t wanted (struct node *n, uint64_t now_us, uint64_t now_ms)
{
    const struct borrower *b = &n->sharing.borrower;

    bool is_auto = n->config.share == NODE_SHARE_AUTO;
    uint32_t size = is_auto ? demand_size (&n->sharing.demand, now_us) : n->config.share;
    uint32_t below = needed_below (n, now_us, now_ms);

    size = size > below ? size : below;
    return b->nareas > 0 && size > 0 && size < b->want.size && size * 4 > b->want.size ? b->want.size : size;
}

/* --- borrowed ------------------------------------------------------------------------------------ */

static void send (struct node *n, uint64_t now_us, struct share_want *want)
{
    want->rank = n->config.rank;
    node_look_anew (n); /* rule S_GIVEN: the area in use may end earlier now */
    n->stats.share_messages++;
    if (n->ops->share_up (n->arg, want) < 0)
        borrower_missed (&n->sharing.borrower, now_us, 0);
}

/* The sublease is not returned while requests wait, because they may have ids of it already. */
static void ask (struct node *n, uint64_t now_us, uint64_t now_ms, uint32_t size)
{
    struct borrower *b = &n->sharing.borrower;
    struct share_want want;

    if (borrower_due (b, now_us, now_ms, size) > now_us)
        return;
    if (size > 0) {
        borrower_ask (b, now_us, now_ms, size, end_ms (n), &want);
        send (n, now_us, &want);
    }
    else if (n->waiting.length == 0
             && borrower_close (b, end_ms (n), lender_left_ms (&n->sharing.lender, now_us), &want))
        send (n, now_us, &want);
}

void node_share_work (struct node *n, uint64_t now_us)
{
    if (n->owner || n->config.share == NODE_SHARE_OFF || !n->parent_up || !n->clock->known || n->doubt.now)
        return;
    uint64_t now_ms = node_now_ms (n, now_us);
    uint32_t size = wanted (n, now_us, now_ms);

    ask (n, now_us, now_ms, size);
    if (size > 0)
        node_wake (n, borrower_due (&n->sharing.borrower, now_us, now_ms, size));
    if (n->config.share == NODE_SHARE_AUTO)
        node_wake (n, demand_due (&n->sharing.demand));
}

void node_share_answered (struct node *n, uint64_t now_us, const struct share *share, uint64_t retry_ms)
{
    if (n->stopped)
        return;
    if (share && borrower_take (&n->sharing.borrower, now_us, node_now_ms (n, now_us), share)) {
        n->stats.borrowed++;
        node_look_anew (n);
    }
    else
        borrower_missed (&n->sharing.borrower, now_us, retry_ms);
    node_tick (n, now_us);
}

void node_share_failed (struct node *n, uint64_t now_us, int errnum)
{
    if (n->stopped)
        return;
    if (errnum == ENOTSUP || errnum == EPERM || errnum == EPROTO)
        borrower_refused (&n->sharing.borrower);
    else /* ENOSYS: the parent's module is reloaded, or is too old */
        borrower_missed (&n->sharing.borrower, now_us, errnum == ENOSYS ? BUSY_RETRY_MS : 0);
    node_tick (n, now_us);
}

/* --- time and place ------------------------------------------------------------------------------ */

void node_share_moved (struct node *n, uint64_t now_us)
{
    borrower_moved (&n->sharing.borrower, now_us);
}

void node_share_lost_time (struct node *n, uint64_t us)
{
    borrower_lost_time (&n->sharing.borrower, us);
}

void node_share_jumped (struct node *n, uint64_t us)
{
    lender_jumped (&n->sharing.lender, us);
}

void node_share_term (struct node *n)
{
    n->sharing.lender.term_ms = n->sharing.borrower.term_ms = max_u64 (n->root_lease_ms / 4, 1);
}

void node_share_stop (struct node *n, uint64_t now_us)
{
    struct share_want want;

    if (!n->owner
        && borrower_close (&n->sharing.borrower, end_ms (n), lender_left_ms (&n->sharing.lender, now_us), &want)
        && n->parent_up)
        send (n, now_us, &want);
}
