/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lessee.c - one broker's lease of its generator
 *
 * A range was granted to this incarnation alone, even if other brokers request the same generator. So three things
 * matter for safety: an answer is accepted once, ids are made only inside the range, and what was returned is never
 * used again. When requests are sent has no influence on safety. They are sent after a third of a lease. While nothing
 * is held, they are sent sooner, with growing pauses.
 */
#include <assert.h>
#include <string.h>

#include <idtree/fluid.h>

#include "libutil/minmax.h"
#include "modules/fluid/lease/lessee.h"

#define FIRST_PAUSE_US 100000 /* pause after a request without grant; doubles, up to a twelfth of a lease */
#define UNDER_WAY_US 2000000  /* without a lease, pause before a request is repeated; at most pause_us () */

void lessee_init (struct lessee *h, uint32_t generator, const char *incarnation, uint64_t lease_ms)
{
    *h = (struct lessee){ .generator = generator, .lease_ms = lease_ms };
    assert (strlen (incarnation) == IDT_MSG_UUID_LEN);
    memcpy (h->incarnation, incarnation, sizeof (h->incarnation));
}

bool lessee_in_use (const struct lessee *h, uint64_t now_us)
{
    return !h->closed && now_us < h->until_us;
}

bool lessee_range (const struct lessee *h, uint64_t now_us, uint64_t now_ms, struct range *range)
{
    if (!lessee_in_use (h, now_us)) /* rule W_USE */
        return false;
    for (unsigned i = 0; i < h->nranges; i++)
        if (now_ms >= h->range[i].lo_ms && now_ms < h->range[i].hi_ms) { /* rules CHECK_END, CHECK_BEGIN */
            *range = h->range[i];
            return true;
        }
    return false;
}

uint64_t lessee_end (const struct lessee *h)
{
    return h->nranges > 0 ? h->range[h->nranges - 1].hi_ms : 0;
}

/* The instance time of the next renewal: after a third of a lease. */
static uint64_t renewal_ms (const struct lessee *h)
{
    uint64_t end_ms = lessee_end (h), left_ms = h->lease_ms * 2 / 3;

    return end_ms > left_ms ? end_ms - left_ms : 0;
}

/* CLOCK_BOOTTIME of the next renewal. It counts if a range was granted late, for an old request, because such a range
 * may be used for a short time only.
 */
static uint64_t renewal_us (const struct lessee *h)
{
    uint64_t left_us = h->lease_ms * 900;

    return h->until_us > left_us ? h->until_us - left_us : 0;
}

uint64_t lessee_due (const struct lessee *h, uint64_t now_us, uint64_t now_ms)
{
    uint64_t at_us = now_us;

    if (h->closed)
        return UINT64_MAX;
    if (!h->asking && renewal_ms (h) > now_ms)
        at_us += (renewal_ms (h) - now_ms) * 1000;
    at_us = min_u64 (at_us, max_u64 (renewal_us (h), now_us));
    return max_u64 (at_us, h->ask_us);
}

bool lessee_may_join (const struct lessee *h, uint64_t now_us, uint64_t now_ms)
{
    return !h->closed && !h->asking && now_us >= h->ask_us && renewal_ms (h) <= now_ms + h->lease_ms / 12;
}

/* Add up to a quarter to each pause, because brokers that were cut off together must not ask in step. */
static uint64_t jitter (const struct lessee *h, uint64_t us)
{
    uint64_t x = (h->generator + 1) * UINT64_C (0x9e3779b97f4a7c15) + h->number * 0xbf58476d1ce4e5b9 + h->backoff_us;

    x = (x ^ x >> 31) * UINT64_C (0x94d049bb133111eb);
    return us + us / 4 * (x >> 56) / 256;
}

static uint64_t pause_us (const struct lessee *h)
{
    return h->lease_ms * 1000 / 12;
}

/* Set the time at which the request that is sent now will be repeated. With a lease there is time for ancestors to
 * combine requests. Without a lease, a repetition does not make the request under way faster, and all ancestors would
 * have to relay the repetition, too.
 */
static void plan_retry (struct lessee *h, uint64_t now_us, uint64_t now_ms)
{
    uint64_t us = lessee_end (h) > now_ms ? 3 * pause_us (h) : min_u64 (UNDER_WAY_US, pause_us (h));

    h->ask_us = now_us + jitter (h, us);
}

/* The pause after a request that got nothing. */
static uint64_t backoff (struct lessee *h)
{
    h->backoff_us = min_u64 (h->backoff_us > 0 ? 2 * h->backoff_us : FIRST_PAUSE_US, pause_us (h));
    return h->backoff_us;
}

/* Rule REPEAT_WANT: a request without answer is sent again with the same number. */
void lessee_ask (struct lessee *h, uint64_t now_us, uint64_t now_ms, struct lease_want *want)
{
    assert (!h->closed);
    /* If a request is a lease old, its grant is hardly useful any longer, so make a new request. */
    if (!h->asking || now_us - h->asked_us >= h->lease_ms * 1000) {
        h->number++;
        h->asked_us = now_us;
    }
    h->asking = true;
    plan_retry (h, now_us, now_ms);
    *want = (struct lease_want){ .generator = h->generator, .number = h->number, .have_hi_ms = lessee_end (h) };
    memcpy (want->incarnation, h->incarnation, sizeof (want->incarnation));
}

/* The least pause after an answer whose range lasts 'left_ms' more. */
static uint64_t calm_us (const struct lessee *h, uint64_t left_ms)
{
    return min_u64 (max_u64 (left_ms * 1000 / 3, FIRST_PAUSE_US), pause_us (h));
}

static void drop_past (struct lessee *h, uint64_t now_ms)
{
    while (h->nranges > 0 && h->range[0].hi_ms <= now_ms) {
        h->range[0] = h->range[1];
        h->nranges--;
    }
}

/* Rule OWN_ANSWER: a grant to another incarnation is not accepted, even with the same generator and number. */
static bool is_answer (const struct lessee *h, const struct lease_grant *grant)
{
    return !h->closed && h->asking && grant->number == h->number && grant->generator == h->generator
           && strcmp (grant->incarnation, h->incarnation) == 0;
}

/* Ranges arrive in order of time. A range out of order was not granted by the rules of this root, and is not used. */
static bool is_sound (const struct lessee *h, const struct lease_grant *grant)
{
    return grant->lo_ms < grant->hi_ms && grant->hi_ms <= FLUID_TIMESTAMP_MAX + 1 && grant->lo_ms >= h->top_ms;
}

bool lessee_take (struct lessee *h, uint64_t now_us, uint64_t now_ms, const struct lease_grant *grant)
{
    if (!is_answer (h, grant))
        return false;
    h->asking = false;              /* an answer is accepted once */
    if (!lessee_in_use (h, now_us)) /* rule W_LAPSED: the watermark no longer waits for it */
        h->nranges = 0;
    h->until_us = h->asked_us + LEASE_USE_MS (h->lease_ms) * 1000; /* even if it is useless, as the root counts it */
    if (!is_sound (h, grant))
        return false;
    h->top_ms = grant->hi_ms;
    if (grant->hi_ms <= now_ms) { /* too late; the next request has a new number, so it gets another range */
        h->ask_us = now_us;
        return false;
    }
    h->backoff_us = 0;
    h->ask_us = now_us + calm_us (h, grant->hi_ms - now_ms);
    drop_past (h, now_ms);
    if (h->nranges > 0 && grant->lo_ms == lessee_end (h))
        h->range[h->nranges - 1].hi_ms = grant->hi_ms;
    else if (h->nranges < 2)
        h->range[h->nranges++] = (struct range){ grant->lo_ms, grant->hi_ms };
    else
        return false; /* its ids are lost, as no other rank has them */
    return true;
}

void lessee_missed (struct lessee *h, uint64_t now_us, uint64_t now_ms)
{
    uint64_t us = lessee_end (h) > now_ms ? pause_us (h) : backoff (h);

    h->ask_us = min_u64 (h->ask_us, now_us + jitter (h, us));
}

void lessee_hurry (struct lessee *h, uint64_t now_us)
{
    if (h->asking)
        h->ask_us = now_us;
    h->backoff_us = 0;
}

static uint64_t earlier (uint64_t at_us, uint64_t us)
{
    return at_us > us ? at_us - us : 0;
}

void lessee_lost_time (struct lessee *h, uint64_t us)
{
    h->until_us = earlier (h->until_us, us);
    h->asked_us = earlier (h->asked_us, us);
}

bool lessee_close (struct lessee *h, uint64_t end_ms, struct lease_back *back)
{
    struct range last = h->nranges > 0 ? h->range[h->nranges - 1] : (struct range){ 0, 0 };

    /* Rule CLOSE_FIRST: close first, and for good. */
    h->closed = true;
    h->nranges = 0;
    end_ms = max_u64 (end_ms, last.lo_ms);
    if (end_ms >= last.hi_ms)
        return false;
    *back = (struct lease_back){ .generator = h->generator, .end_ms = end_ms };
    memcpy (back->incarnation, h->incarnation, sizeof (back->incarnation));
    return true;
}
