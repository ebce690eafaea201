/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lessee.c - one broker's claim to its generator
 *
 * What is held was given to this incarnation alone, whoever else claims the generator: so all that matters here
 * is to take an answer once, to stay inside, and never to use again what was given back.  When to ask is
 * a question of comfort: a third into a lease, sooner and with growing pauses while nothing is held.
 */
#include <assert.h>
#include <string.h>

#include <idtree/fluid.h>

#include "libutil/minmax.h"
#include "modules/fluid/lease/lessee.h"

#define FIRST_PAUSE_US 100000 /* after a want that got nothing; doubles, up to a twelfth of a lease */
#define UNDER_WAY_US 2000000  /* before a want is repeated that nobody has answered, while nothing is held */

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
    if (!lessee_in_use (h, now_us)) /* W_USE */
        return false;
    for (unsigned i = 0; i < h->nranges; i++)
        if (now_ms >= h->range[i].lo_ms && now_ms < h->range[i].hi_ms) { /* CHECK_END, CHECK_BEGIN */
            *range = h->range[i];
            return true;
        }
    return false;
}

uint64_t lessee_end (const struct lessee *h)
{
    return h->nranges > 0 ? h->range[h->nranges - 1].hi_ms : 0;
}

/* The instance time from which more is wanted: a third into a lease. */
static uint64_t renewal_ms (const struct lessee *h)
{
    uint64_t end_ms = lessee_end (h), left_ms = h->lease_ms * 2 / 3;

    return end_ms > left_ms ? end_ms - left_ms : 0;
}

/* What was given late for an old want is of use for a short time only. */
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

/* Pauses of brokers that were cut off together must not stay in step: up to a quarter is added to each. */
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

/* When to repeat a want that was sent now.  While a lease is held there is time for those who combine it; else what is
 * under way is not made faster by another, which all above would have to carry, too.
 */
static void plan_retry (struct lessee *h, uint64_t now_us, uint64_t now_ms)
{
    uint64_t us = lessee_end (h) > now_ms ? 3 * pause_us (h) : min_u64 (UNDER_WAY_US, pause_us (h));

    h->ask_us = now_us + jitter (h, us);
}

/* The pause after a want that got nothing. */
static uint64_t backoff (struct lessee *h)
{
    h->backoff_us = min_u64 (h->backoff_us > 0 ? 2 * h->backoff_us : FIRST_PAUSE_US, pause_us (h));
    return h->backoff_us;
}

/* REPEAT_WANT: until a want is answered it is sent again, under its number. */
void lessee_ask (struct lessee *h, uint64_t now_us, uint64_t now_ms, struct lease_want *want)
{
    assert (!h->closed);
    /* What the root gave for a want that is a lease old is hardly of use any more: want something new. */
    if (!h->asking || now_us - h->asked_us >= h->lease_ms * 1000) {
        h->number++;
        h->asked_us = now_us;
    }
    h->asking = true;
    plan_retry (h, now_us, now_ms);
    *want = (struct lease_want){ .generator = h->generator, .number = h->number, .have_hi_ms = lessee_end (h) };
    memcpy (want->incarnation, h->incarnation, sizeof (want->incarnation));
}

/* The least pause after an answer whose range lasts 'left_ms' yet. */
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

/* OWN_ANSWER: what was given to another incarnation is not ours, even if it has our generator and our number. */
static bool is_answer (const struct lessee *h, const struct lease_grant *grant)
{
    return !h->closed && h->asking && grant->number == h->number && grant->generator == h->generator
           && strcmp (grant->incarnation, h->incarnation) == 0;
}

/* Ranges come in order of time: one that does not was not given by our root's rules, and is not used. */
static bool is_sound (const struct lessee *h, const struct lease_grant *grant)
{
    return grant->lo_ms < grant->hi_ms && grant->hi_ms <= FLUID_TIMESTAMP_MAX + 1 && grant->lo_ms >= h->top_ms;
}

bool lessee_take (struct lessee *h, uint64_t now_us, uint64_t now_ms, const struct lease_grant *grant)
{
    if (!is_answer (h, grant))
        return false;
    h->asking = false;              /* taken once: what comes again is no answer any more */
    if (!lessee_in_use (h, now_us)) /* W_LAPSED: nobody has waited for it since */
        h->nranges = 0;
    h->until_us = h->asked_us + LEASE_USE_MS (h->lease_ms) * 1000; /* of use or not: the root counts with us */
    if (!is_sound (h, grant))
        return false;
    h->top_ms = grant->hi_ms;
    if (grant->hi_ms <= now_ms) { /* too late; the next want has a new number, so it will not be this one again */
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
        return false; /* nobody else has it: it is lost, no more */
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

    /* CLOSE_FIRST: closed first, and for good. */
    h->closed = true;
    h->nranges = 0;
    end_ms = max_u64 (end_ms, last.lo_ms);
    if (end_ms >= last.hi_ms)
        return false;
    *back = (struct lease_back){ .generator = h->generator, .end_ms = end_ms };
    memcpy (back->incarnation, h->incarnation, sizeof (back->incarnation));
    return true;
}
