/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* borrower.c - the subleases that one rank holds
 *
 * A sublease was granted to this incarnation alone, and the lender relies on the promise in each request. So three
 * conditions are kept here. Nothing at or above the end in a request is used after the request. That end is above all
 * ids that were made, and above all that was granted to children. An answer is not accepted after another request was
 * made.
 */
#include <assert.h>
#include <string.h>

#include "libutil/minmax.h"
#include "modules/fluid/lease/borrower.h"

#define FIRST_PAUSE_US 100000  /* first pause between requests, or an eighth of a term if that is less; doubles */
#define LONG_PAUSE_US 30000000 /* longest pause, or a term if that is less */

void borrower_init (struct borrower *b, const char *incarnation, uint64_t term_ms)
{
    *b = (struct borrower){ .term_ms = term_ms };
    assert (strlen (incarnation) == IDT_MSG_UUID_LEN);
    memcpy (b->incarnation, incarnation, sizeof (b->incarnation));
}

/* --- what is held -------------------------------------------------------------------------------- */

bool borrower_area (const struct borrower *b, uint64_t now_us, uint64_t now_ms, struct area *area)
{
    for (unsigned i = b->nareas; i-- > 0;) {
        const struct area *a = &b->area[i];

        if (now_us < a->until_us && now_ms >= a->range.lo_ms && now_ms < a->range.hi_ms) {
            *area = *a;
            return true;
        }
    }
    return false;
}

uint64_t borrower_end (const struct borrower *b)
{
    uint64_t end_ms = 0;

    for (unsigned i = 0; i < b->nareas; i++)
        end_ms = max_u64 (end_ms, b->area[i].range.hi_ms);
    return end_ms;
}

/* Rule S_GIVEN: use nothing from 'end_ms' on. */
static void cut (struct borrower *b, uint64_t end_ms)
{
    unsigned n = 0;

    for (unsigned i = 0; i < b->nareas; i++) {
        b->area[i].range.hi_ms = min_u64 (b->area[i].range.hi_ms, end_ms);
        if (b->area[i].range.lo_ms < b->area[i].range.hi_ms)
            b->area[n++] = b->area[i];
    }
    b->nareas = n;
}

static void drop_past (struct borrower *b, uint64_t now_us, uint64_t now_ms)
{
    unsigned n = 0;

    for (unsigned i = 0; i < b->nareas; i++)
        if (b->area[i].range.hi_ms > now_ms && b->area[i].until_us > now_us)
            b->area[n++] = b->area[i];
    b->nareas = n;
}

/* --- requests -------------------------------------------------------------------------------------- */

/* The instance time of the next renewal: half a term before the end. */
static uint64_t renewal_ms (const struct borrower *b)
{
    uint64_t end_ms = borrower_end (b);

    return end_ms > b->term_ms / 2 ? end_ms - b->term_ms / 2 : 0;
}

static uint64_t last_until_us (const struct borrower *b)
{
    return b->nareas > 0 ? b->area[b->nareas - 1].until_us : 0;
}

static uint64_t renewal_us (const struct borrower *b)
{
    uint64_t us = last_until_us (b), left_us = b->term_ms * 500;

    return us > left_us ? us - left_us : 0;
}

static bool is_renewal (const struct borrower *b, uint32_t size)
{
    return !b->moved && !b->asking && b->nareas > 0 && size == b->want.size;
}

uint64_t borrower_due (const struct borrower *b, uint64_t now_us, uint64_t now_ms, uint32_t size)
{
    uint64_t at_us = now_us;

    if (b->refused || (size == 0 && b->nareas == 0))
        return UINT64_MAX;
    if (size == 0)
        return now_us;
    if (is_renewal (b, size) && renewal_ms (b) > now_ms)
        at_us = min_u64 (now_us + (renewal_ms (b) - now_ms) * 1000, max_u64 (renewal_us (b), now_us));
    return max_u64 (at_us, b->ask_us);
}

/* Add up to a quarter to each pause, because brokers that lost one parent together must not ask in step. */
static uint64_t jitter (const struct borrower *b, uint64_t us)
{
    uint64_t x = b->want.number * UINT64_C (0x9e3779b97f4a7c15) + b->backoff_us;

    for (const char *c = b->incarnation; *c; c++)
        x = (x ^ (unsigned char)*c) * UINT64_C (0x100000001b3);
    return us + us / 4 * (x >> 56) / 256;
}

static uint64_t first_pause_us (const struct borrower *b)
{
    return min_u64 (FIRST_PAUSE_US, b->term_ms * 125);
}

/* Set the time at which the request that is sent now will be repeated. */
static void plan_retry (struct borrower *b, uint64_t now_us, bool first)
{
    b->backoff_us = first ? first_pause_us (b)
                          : min_u64 (2 * b->backoff_us, min_u64 (LONG_PAUSE_US, b->term_ms * 1000));
    b->ask_us = now_us + jitter (b, b->backoff_us);
}

/* Make a new promise. 'low_ms' keeps the rules S_USED and S_LENTON, cut () keeps the rule S_GIVEN, and the number keeps
 * the rule S_OLD.
 */
static void promise (struct borrower *b, uint32_t size, uint64_t end_ms, uint64_t low_ms, uint64_t left_ms)
{
    b->want.number++;
    b->want.size = size;
    b->want.end_ms = max_u64 (end_ms, low_ms);
    b->want.left_ms = left_ms;
    memcpy (b->want.incarnation, b->incarnation, sizeof (b->want.incarnation));
    cut (b, b->want.end_ms);
}

/* The end of what is held after a request for 'size'. It stays if the size stays. If the size changes, the end is soon,
 * so that the new sublease can begin.
 */
static uint64_t end_for (const struct borrower *b, uint64_t now_ms, uint32_t size)
{
    uint64_t end_ms = borrower_end (b);

    return size == b->want.size ? end_ms : min_u64 (end_ms, now_ms + min_u64 (BORROWER_SWITCH_MS, b->term_ms / 8));
}

/* Whether a request is older than the term of its grant. Such a request is useless, so a new one is made. */
static bool is_stale (const struct borrower *b, uint64_t now_us)
{
    return now_us - b->asked_us >= b->term_ms * 1000;
}

void borrower_ask (struct borrower *b, uint64_t now_us, uint64_t now_ms, uint32_t size, uint64_t low_ms,
                   struct share_want *want)
{
    assert (size > 0);
    bool another = !b->asking || size != b->want.size;

    if (another || is_stale (b, now_us)) {
        promise (b, size, end_for (b, now_ms, size), low_ms, 0);
        b->asked_us = now_us;
    }
    b->asking = true;
    plan_retry (b, now_us, another);
    *want = b->want;
}

bool borrower_close (struct borrower *b, uint64_t low_ms, uint64_t left_ms, struct share_want *want)
{
    bool any = b->nareas > 0 || b->asking;

    promise (b, 0, 0, low_ms, left_ms);
    b->nareas = 0;
    b->asking = false;
    *want = b->want;
    return any;
}

/* --- answers ---------------------------------------------------------------------------------------- */

/* Rules S_MINE, S_OLD: whether this answers the newest request. An answer is accepted once. */
static bool is_answer (const struct borrower *b, const struct share *share)
{
    return b->asking && share->number == b->want.number && strcmp (share->incarnation, b->incarnation) == 0;
}

/* Whether the grant obeys the rules. A grant that does not obey them is not used. */
static bool is_sound (const struct borrower *b, const struct share *share)
{
    uint32_t first, size = area_run (share->granules, &first);

    return size > 0 && size <= b->want.size && share->generator <= FLUID_GENERATOR_MAX
           && share->range.lo_ms < share->range.hi_ms && share->range.hi_ms <= FLUID_TIMESTAMP_MAX + 1;
}

/* Whether 'area' extends the sublease 'had'. */
static bool goes_on (const struct area *had, const struct area *area)
{
    return had->generator == area->generator && had->granules == area->granules && had->range.lo_ms >= area->range.lo_ms
           && had->range.hi_ms <= area->range.hi_ms;
}

static void hold (struct borrower *b, const struct area *area)
{
    if (b->nareas > 0 && goes_on (&b->area[b->nareas - 1], area))
        b->nareas--;
    else if (b->nareas == 2) /* the oldest is dropped: its ids are lost, as no other rank has them */
        b->area[0] = b->area[--b->nareas];
    b->area[b->nareas++] = *area;
}

bool borrower_take (struct borrower *b, uint64_t now_us, uint64_t now_ms, const struct share *share)
{
    if (!is_answer (b, share))
        return false;
    b->asking = false;
    if (!is_sound (b, share))
        return false;
    struct area area = { share->generator, share->granules, share->range, b->asked_us + share->use_ms * 1000 };

    if (area.range.hi_ms <= now_ms || area.until_us <= now_us)
        return false; /* too late; the next request has a new number */
    drop_past (b, now_us, now_ms);
    hold (b, &area);
    b->moved = false;
    b->ask_us = now_us + first_pause_us (b);
    return true;
}

void borrower_missed (struct borrower *b, uint64_t now_us, uint64_t retry_ms)
{
    uint64_t us = min_u64 (retry_ms, LONG_PAUSE_US / 1000) * 1000;

    b->ask_us = max_u64 (b->ask_us, now_us + jitter (b, us));
}

void borrower_refused (struct borrower *b)
{
    b->refused = true;
}

void borrower_moved (struct borrower *b, uint64_t now_us)
{
    b->refused = false;
    b->moved = true;
    b->backoff_us = first_pause_us (b) / 2;
    b->ask_us = now_us;
}

static uint64_t earlier (uint64_t at_us, uint64_t us)
{
    return at_us > us ? at_us - us : 0;
}

void borrower_lost_time (struct borrower *b, uint64_t us)
{
    for (unsigned i = 0; i < b->nareas; i++)
        b->area[i].until_us = earlier (b->area[i].until_us, us);
    b->asked_us = earlier (b->asked_us, us);
}

/* --- how many ids a rank needs ------------------------------------------------------------------- */

/* A burst is all that is requested within four milliseconds of its first request. At worst, a real burst that spans two
 * such intervals counts as two halves. The sizes are powers of two above twice the mean, and allow for that.
 */

#define BURST_MS (DEMAND_BURST_US / 1000)
#define WINDOW_MS (DEMAND_WINDOW_US / 1000)

void demand_init (struct demand *d, uint64_t now_us)
{
    *d = (struct demand){ .window_us = now_us, .burst_us = now_us };
}

static uint32_t round_up (uint64_t ids_per_ms)
{
    uint32_t size = AREA_MIN_SIZE;

    while (size < AREA_MAX_SIZE && size < ids_per_ms)
        size *= 2;
    return size;
}

/* Twice the mean, in ids for each millisecond. */
static uint64_t twice_mean (const struct demand_window *w)
{
    return (2 * w->ids + WINDOW_MS - 1) / WINDOW_MS;
}

static uint32_t fit (const struct demand_window *w)
{
    return round_up (max_u64 (twice_mean (w), w->burst / BURST_MS));
}

static bool may_change (const struct demand *d, uint64_t now_us)
{
    return d->changed_us == 0 || now_us >= d->changed_us + DEMAND_TERM_US;
}

static void change (struct demand *d, uint64_t now_us, uint32_t size)
{
    d->size = size;
    d->changed_us = now_us;
    d->busy = d->calm = d->idle = 0;
}

/* Whether the need fits into a sublease. A rank that needed too much waits until it needs a quarter of the largest
 * size.
 */
static bool can_borrow (struct demand *d, const struct demand_window *w)
{
    uint64_t most = d->too_much ? AREA_MAX_SIZE / 4 : AREA_MAX_SIZE;

    d->too_much = twice_mean (w) > most;
    return !d->too_much;
}

static void judge_begin (struct demand *d, uint64_t now_us, const struct demand_window *w)
{
    bool can = can_borrow (d, w);

    d->busy = can && w->went_up >= DEMAND_BEGIN ? d->busy + 1 : 0;
    if (d->busy >= DEMAND_BEGIN_WINDOWS)
        change (d, now_us, fit (w));
}

static void judge_size (struct demand *d, uint64_t now_us, const struct demand_window *w)
{
    bool overflows = w->requests >= DEMAND_BEGIN && w->went_up * 8 >= w->requests;

    d->idle = w->requests < DEMAND_IDLE ? d->idle + 1 : 0;
    d->calm = w->burst * 8 < (uint64_t)d->size * BURST_MS ? d->calm + 1 : 0;
    if (d->idle >= DEMAND_IDLE_WINDOWS || !can_borrow (d, w))
        change (d, now_us, 0);
    else if (!may_change (d, now_us))
        return;
    else if (overflows && d->size < AREA_MAX_SIZE)
        change (d, now_us, d->size * 2);
    else if (d->calm >= DEMAND_CALM_WINDOWS && d->size > AREA_MIN_SIZE && twice_mean (w) <= d->size / 2)
        change (d, now_us, d->size / 2);
}

static void end_window (struct demand *d, uint64_t now_us)
{
    d->last = d->window;
    d->window = (struct demand_window){ 0 };
    d->window_us += DEMAND_WINDOW_US;
    if (d->size == 0)
        judge_begin (d, now_us, &d->last);
    else
        judge_size (d, now_us, &d->last);
}

/* After a long time without requests, only as many windows are evaluated as influence a decision. */
static void advance (struct demand *d, uint64_t now_us)
{
    const uint64_t most = DEMAND_CALM_WINDOWS + DEMAND_IDLE_WINDOWS;

    for (uint64_t n = 0; now_us >= d->window_us + DEMAND_WINDOW_US; n++) {
        if (n == most)
            d->window_us = now_us - DEMAND_WINDOW_US;
        end_window (d, now_us);
    }
}

void demand_note (struct demand *d, uint64_t now_us, uint32_t ids, bool went_up)
{
    advance (d, now_us);
    if (now_us >= d->burst_us + DEMAND_BURST_US) {
        d->burst_us = now_us;
        d->burst_ids = 0;
    }
    d->burst_ids += ids;
    d->window.burst = max_u64 (d->window.burst, d->burst_ids);
    d->window.ids += ids;
    d->window.requests++;
    d->window.went_up += went_up;
}

uint32_t demand_size (struct demand *d, uint64_t now_us)
{
    advance (d, now_us);
    return d->size;
}

uint64_t demand_due (const struct demand *d)
{
    return d->size > 0 || d->window.requests > 0 ? d->window_us + DEMAND_WINDOW_US : UINT64_MAX;
}

uint32_t demand_peak (const struct demand *d)
{
    uint64_t burst = max_u64 (d->window.burst, d->last.burst);

    return (uint32_t)min_u64 ((burst + BURST_MS - 1) / BURST_MS, FLUID_PER_MS);
}
