/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* held.c - what one rank holds
 *
 * A box was granted to this incarnation alone, and its granter relies on the promise in each request. So three
 * conditions are kept here. Nothing at or above the end in a request is used after the request. That end is above all
 * ids that were made, and above all that was granted on. An answer is not accepted after another request was made. When
 * requests are sent has no influence on safety.
 */
#include <assert.h>
#include <string.h>

#include "libutil/minmax.h"
#include "modules/fluid/lease/held.h"

#define FIRST_PAUSE_US 100000 /* pause after a request without grant; doubles, up to pause_us () */
#define OFTEN_SIZE 128        /* a rank that wants more renews more often than every eighth of a term */
#define UNDER_WAY_US 2000000  /* pause before a request without answer is repeated; at most pause_us () */

void held_init (struct held *h, uint32_t rank, const char *incarnation, bool whole, uint64_t term_ms)
{
    *h = (struct held){ .whole = whole, .term_ms = term_ms, .want.rank = rank };
    assert (strlen (incarnation) == IDT_MSG_UUID_LEN);
    memcpy (h->want.incarnation, incarnation, sizeof (h->want.incarnation));
}

/* --- what is held -------------------------------------------------------------------------------- */

static bool is_usable (const struct lease *l, uint64_t now_us)
{
    return now_us < l->until_us; /* rule USE_UNTIL_OVER */
}

/* Join a box to what may be used at 'now_ms'. */
static void join (struct lease *all, const struct lease *l)
{
    if (all->box.granules == 0)
        *all = *l;
    if (l->box.generator != all->box.generator)
        return;
    all->box.granules |= l->box.granules;
    all->box.range.lo_ms = max_u64 (all->box.range.lo_ms, l->box.range.lo_ms);
    all->box.range.hi_ms = min_u64 (all->box.range.hi_ms, l->box.range.hi_ms);
    all->until_us = min_u64 (all->until_us, l->until_us);
}

bool held_find (const struct held *h, uint64_t now_us, uint64_t now_ms, struct lease *lease)
{
    uint64_t next_ms = UINT64_MAX; /* when a further box begins */
    struct lease all = { .box.granules = 0 };

    for (unsigned i = h->count; i-- > 0;) { /* the generator of the newest box that contains 'now_ms' is used */
        const struct lease *l = &h->lease[i];
        const struct range *r = &l->box.range;

        if (is_usable (l, now_us) && now_ms < r->lo_ms)
            next_ms = min_u64 (next_ms, r->lo_ms);
        else if (is_usable (l, now_us) && now_ms < r->hi_ms) /* rules MAKE_ABOVE_BEGIN, MAKE_BELOW_END */
            join (&all, l);
    }
    all.box.range.hi_ms = min_u64 (all.box.range.hi_ms, next_ms);
    if (all.box.granules != 0)
        *lease = all;
    return all.box.granules != 0;
}

uint64_t held_granules (const struct held *h)
{
    uint64_t granules = 0;

    for (unsigned i = 0; i < h->count; i++)
        granules |= h->lease[i].box.granules;
    return granules;
}

bool held_is_counted (const struct held *h, uint64_t now_us)
{
    return !h->closed && now_us < h->counted_us;
}

uint64_t held_end (const struct held *h)
{
    uint64_t end_ms = 0;

    for (unsigned i = 0; i < h->count; i++)
        end_ms = max_u64 (end_ms, h->lease[i].box.range.hi_ms);
    return end_ms;
}

/* Rule NEVER_USE_RETURNED: use nothing from 'end_ms' on, except the granules in 'kept'. A box of which some are kept is
 * split; without room for that, none of it is kept.
 */
static void cut (struct held *h, uint64_t end_ms, uint64_t kept)
{
    struct lease lease[HELD_MAX] = { { .until_us = 0 } };
    unsigned n = 0, left = h->count;

    for (unsigned i = 0; i < h->count; i++, left--) {
        struct lease l = h->lease[i], rest = l;

        rest.box.granules &= kept;
        if (l.box.range.hi_ms > end_ms && rest.box.granules != 0
            && (n + left < HELD_MAX || rest.box.granules == l.box.granules)) {
            lease[n++] = rest;
            l.box.granules &= ~kept;
        }
        l.box.range.hi_ms = min_u64 (l.box.range.hi_ms, end_ms);
        if (l.box.granules != 0 && l.box.range.lo_ms < l.box.range.hi_ms)
            lease[n++] = l;
    }
    memcpy (h->lease, lease, n * sizeof (lease[0]));
    h->count = n;
}

/* Rule NEVER_REVIVE: what was held for too long is dropped, so that a new grant does not revive it. */
static void drop_past (struct held *h, uint64_t now_us, uint64_t now_ms)
{
    unsigned n = 0;

    for (unsigned i = 0; i < h->count; i++)
        if (h->lease[i].box.range.hi_ms > now_ms && h->lease[i].until_us > now_us)
            h->lease[n++] = h->lease[i];
    h->count = n;
}

/* --- when to ask ---------------------------------------------------------------------------------- */

static uint64_t pause_us (const struct held *h)
{
    return h->term_ms * 1000 / (h->whole ? 12 : 8);
}

static uint64_t first_pause_us (const struct held *h)
{
    return min_u64 (FIRST_PAUSE_US, pause_us (h));
}

/* A whole is renewed after a third of a lease: this is the instance time, and below CLOCK_BOOTTIME of it. That counts
 * if a box was granted late, for an old request, because such a box may be used for a short time only.
 */
static uint64_t renewal_ms (const struct held *h)
{
    uint64_t end_ms = held_end (h), left_ms = h->term_ms * 2 / 3;

    return end_ms > left_ms ? end_ms - left_ms : 0;
}

/* CLOCK_BOOTTIME of the next renewal, by the time of use. The use of a box that was granted at once is a quarter of a
 * term longer than its time, so this is later than renewal_ms (), by a 60th of a term.
 */
static uint64_t renewal_us (const struct held *h)
{
    uint64_t until_us = h->count > 0 ? h->lease[h->count - 1].until_us : 0, left_us = h->term_ms * 900;

    return until_us > left_us ? until_us - left_us : 0;
}

/* A part that lasts 'ms' more is renewed after an eighth of a term, so that its size follows what this rank and others
 * need, and the more is wanted the earlier.
 */
static uint64_t part_renewal_us (const struct held *h, uint64_t now_us, uint64_t ms)
{
    uint32_t size = h->want.size;
    uint64_t after_ms = h->term_ms / (size <= OFTEN_SIZE ? 8 : 8 * size / OFTEN_SIZE);

    return now_us + min_u64 (after_ms, ms / 3) * 1000;
}

static uint64_t next_us (const struct held *h, uint64_t now_us, uint64_t now_ms)
{
    if (!h->whole)
        return h->again_us;
    if (renewal_ms (h) <= now_ms)
        return now_us;
    return min_u64 (now_us + (renewal_ms (h) - now_ms) * 1000, renewal_us (h));
}

static bool is_renewal (const struct held *h, uint32_t size)
{
    return h->count > 0 && !h->asking && !h->moved && size == h->want.size;
}

uint64_t held_due (const struct held *h, uint64_t now_us, uint64_t now_ms, uint32_t size)
{
    uint64_t at_us = now_us;

    if (h->closed || h->refused || (size == 0 && h->count == 0))
        return UINT64_MAX;
    if (size == 0)
        return now_us;
    if (is_renewal (h, size))
        at_us = max_u64 (next_us (h, now_us, now_ms), now_us);
    return max_u64 (at_us, h->ask_us);
}

bool held_may_join (const struct held *h, uint64_t now_us, uint64_t now_ms)
{
    return !h->closed && !h->asking && now_us >= h->ask_us && renewal_ms (h) <= now_ms + h->term_ms / 12;
}

/* Add up to a quarter to a pause, so that brokers that were cut off together do not ask at the same time. */
static uint64_t jitter (const struct held *h, uint64_t us)
{
    uint64_t x = (h->want.rank + UINT64_C (1)) * UINT64_C (0x9e3779b97f4a7c15)
                 + h->want.number * UINT64_C (0xbf58476d1ce4e5b9) + h->backoff_us;

    x = (x ^ x >> 31) * UINT64_C (0x94d049bb133111eb);
    return us + us / 4 * (x >> 56) / 256;
}

/* Whether the rank can wait, because it holds a whole. */
static bool can_wait (const struct held *h, uint64_t now_ms)
{
    return h->whole && held_end (h) > now_ms;
}

/* Set the time at which the request that is sent now will be repeated. A rank that holds a whole leaves time for
 * ancestors to combine requests. Any other rank waits, too, because a repetition does not make the request under way
 * faster, and all ancestors would have to relay it.
 */
static void plan_retry (struct held *h, uint64_t now_us, uint64_t now_ms)
{
    uint64_t us = can_wait (h, now_ms) ? 3 * pause_us (h) : min_u64 (UNDER_WAY_US, pause_us (h));

    h->ask_us = now_us + jitter (h, us);
}

/* --- requests ------------------------------------------------------------------------------------- */

/* Make a new promise. The caller keeps the rules END_ABOVE_MADE and END_ABOVE_GRANTED, cut () keeps the rule
 * NEVER_USE_RETURNED, and the number keeps the rule NEWEST_ANSWER_ONLY.
 */
static void promise (struct held *h, uint32_t size, uint64_t end_ms, uint64_t kept, uint64_t left_ms)
{
    h->want.number++;
    h->want.size = size;
    h->want.end_ms = end_ms;
    h->want.kept = kept;
    h->want.left_ms = left_ms;
    if (end_ms > 0)
        cut (h, end_ms, kept);
}

/* Whether a request is older than a term. Its answer would be useless, so a new request is made. */
static bool is_stale (const struct held *h, uint64_t now_us)
{
    return now_us - h->asked_us >= h->term_ms * 1000;
}

/* Rule REPEAT_WANT: a request without answer is sent again with the same number. */
static bool is_repeated (const struct held *h, uint64_t now_us, uint32_t size)
{
    return h->asking && size == h->want.size && !is_stale (h, now_us);
}

void held_ask (struct held *h, uint64_t now_us, uint64_t now_ms, uint32_t size, uint64_t low_ms, uint64_t kept,
               struct want *want)
{
    uint64_t soon_ms = kept != 0 ? now_ms + min_u64 (HELD_SWITCH_MS, h->term_ms / 8) : UINT64_MAX;

    assert (!h->closed && size > 0 && (kept == 0 || !h->whole));
    if (!is_repeated (h, now_us, size)) {
        promise (h, size, max_u64 (min_u64 (held_end (h), soon_ms), low_ms), kept, 0);
        h->asked_us = now_us;
    }
    h->asking = true;
    plan_retry (h, now_us, now_ms);
    *want = h->want;
}

uint64_t held_make_room (const struct held *h, uint64_t now_ms, uint32_t size, uint64_t granted)
{
    uint32_t most = h->share > 0 && h->share < size ? h->share : size;
    const struct lease *least = NULL;

    if (h->asking || h->count < HELD_MAX || h->size >= most)
        return 0;
    for (unsigned i = 0; i < h->count; i++) {
        const struct box *b = &h->lease[i].box;

        if (b->range.hi_ms <= now_ms) /* there is room already */
            return 0;
        if ((b->granules & granted) == 0 && (!least || box_size (b->granules) < box_size (least->box.granules)))
            least = &h->lease[i];
    }
    if (!least || most - h->size <= box_size (least->box.granules)) /* the next box would not be larger */
        return 0;
    return held_granules (h) & ~least->box.granules;
}

bool held_return (struct held *h, uint64_t low_ms, uint64_t left_ms, struct want *want)
{
    bool any = h->count > 0 || h->asking;

    promise (h, 0, low_ms, 0, left_ms);
    h->count = 0;
    h->asking = false;
    h->share = h->size = 0;
    *want = h->want;
    return any;
}

void held_close (struct held *h)
{
    h->closed = true; /* rule NEVER_USE_RETURNED: for good */
    h->count = 0;
    h->asking = false;
}

/* --- answers ---------------------------------------------------------------------------------------- */

/* Rules OWN_ANSWER, NEWEST_ANSWER_ONLY: whether this answers the newest request of this incarnation. An answer is
 * accepted once.
 */
static bool is_answer (const struct held *h, const struct grant *grant)
{
    return h->asking && !h->closed && grant->number == h->want.number && grant->rank == h->want.rank
           && strcmp (grant->incarnation, h->want.incarnation) == 0;
}

/* Whether the grant obeys the rules. A grant that does not obey them is not used. */
static bool is_sound (const struct held *h, const struct grant *grant)
{
    const struct box *b = &grant->box;
    uint32_t size = box_size (b->granules);

    return size > 0 && (h->whole ? size == BOX_WHOLE && b->generator == h->want.rank : size <= h->want.size)
           && b->generator <= FLUID_GENERATOR_MAX && b->range.lo_ms < b->range.hi_ms
           && b->range.hi_ms <= FLUID_TIMESTAMP_MAX + 1;
}

/* Whether 'box' replaces the box 'had'. It may begin later, but not after now, because nothing is made below the
 * watermark any longer.
 */
static bool extends (const struct box *had, const struct box *box, uint64_t now_ms)
{
    return had->generator == box->generator && had->granules == box->granules && box->range.lo_ms <= had->range.hi_ms
           && box->range.lo_ms <= max_u64 (had->range.lo_ms, now_ms) && box->range.hi_ms >= had->range.hi_ms;
}

/* Hold a box. Returns false if too many others are held. If the box does not end later than these, it is granted again
 * for the next request.
 */
static bool hold (struct held *h, uint64_t now_ms, const struct lease *lease)
{
    for (unsigned i = 0; i < h->count; i++)
        if (extends (&h->lease[i].box, &lease->box, now_ms)) {
            h->lease[i] = *lease;
            return true;
        }
    if (h->count == (h->whole ? 2 : HELD_MAX)) {
        h->no_room = true;
        return false;
    }
    h->lease[h->count++] = *lease;
    return true;
}

/* The least pause after an answer whose box lasts 'ms' more. A part may be needed in another size soon. */
static uint64_t calm_us (const struct held *h, uint64_t ms)
{
    if (!h->whole)
        return first_pause_us (h) / 4;
    return min_u64 (max_u64 (ms * 1000 / 3, FIRST_PAUSE_US), pause_us (h));
}

/* Accept one box. */
static bool take (struct held *h, uint64_t now_us, uint64_t now_ms, const struct grant *grant)
{
    uint64_t use_ms = grant->use_ms > 0 ? grant->use_ms : LEASE_USE_MS (h->term_ms);
    const struct lease lease = { grant->box, h->asked_us + use_ms * 1000 };

    h->counted_us = lease.until_us; /* even if the box is useless, as the granter counts it */
    if (!is_sound (h, grant))
        return false;
    return lease.box.range.hi_ms > now_ms && is_usable (&lease, now_us) && hold (h, now_ms, &lease);
}

/* The pause after a request that got nothing. */
static uint64_t backoff (struct held *h)
{
    h->backoff_us = min_u64 (h->backoff_us > 0 ? 2 * h->backoff_us : first_pause_us (h), pause_us (h));
    return h->backoff_us;
}

/* A box was granted that cannot be used. The next request has a new number, so it gets another box. If the answer was
 * late, that helps at once. If the clock here is far ahead of the granter's, it does not help, so pauses grow.
 */
static void useless (struct held *h, uint64_t now_us)
{
    uint64_t pause = h->whole ? h->backoff_us : first_pause_us (h);

    backoff (h);
    h->ask_us = now_us + pause;
}

bool held_take (struct held *h, uint64_t now_us, uint64_t now_ms, const struct grant *grant, size_t n, uint32_t share,
                uint64_t retry_ms)
{
    bool any = false, taken = false;
    uint32_t size = 0;

    drop_past (h, now_us, now_ms);
    h->no_room = false;
    for (size_t i = 0; i < n; i++)
        if (is_answer (h, &grant[i])) {
            any = true;
            taken |= take (h, now_us, now_ms, &grant[i]);
            size += box_size (grant[i].box.granules);
        }
    if (!any)
        return false;
    h->asking = false;
    h->share = share;
    h->size = size;
    if (!taken) {
        useless (h, now_us);
        return false;
    }
    h->backoff_us = 0;
    h->moved = false;
    h->ask_us = now_us + calm_us (h, held_end (h) - now_ms);
    h->again_us = part_renewal_us (h, now_us, held_end (h) - now_ms);
    if (retry_ms > 0)
        h->again_us = min_u64 (h->again_us, now_us + min_u64 (retry_ms, h->term_ms) * 1000);
    if (h->no_room) /* there will be when what was returned is over */
        h->again_us = min_u64 (h->again_us, now_us + HELD_SWITCH_MS * 1000);
    return true;
}

void held_missed (struct held *h, uint64_t now_us, uint64_t now_ms, uint64_t retry_ms)
{
    if (retry_ms > 0)
        h->ask_us = now_us + jitter (h, min_u64 (retry_ms * 1000, h->term_ms * 1000));
    else
        h->ask_us = min_u64 (h->ask_us, now_us + jitter (h, can_wait (h, now_ms) ? pause_us (h) : backoff (h)));
}

void held_refused (struct held *h)
{
    h->refused = true;
}

void held_hurry (struct held *h, uint64_t now_us)
{
    if (h->asking)
        h->ask_us = now_us;
    h->backoff_us = 0;
}

void held_moved (struct held *h, uint64_t now_us)
{
    held_hurry (h, now_us);
    if (h->whole)
        return;
    h->refused = false;
    h->moved = true;
    h->ask_us = now_us;
}

static uint64_t earlier (uint64_t at_us, uint64_t us)
{
    return at_us > us ? at_us - us : 0;
}

void held_lost_time (struct held *h, uint64_t us)
{
    for (unsigned i = 0; i < h->count; i++)
        h->lease[i].until_us = earlier (h->lease[i].until_us, us);
    h->counted_us = earlier (h->counted_us, us);
    h->asked_us = earlier (h->asked_us, us);
}
