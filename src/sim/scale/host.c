/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* host.c - processors: when something is done, and what it costs */
#include "libutil/minmax.h"
#include "sim/scale/private.h"

#define REST_NS (5 * MS_NS) /* after which a broker's caches are cold: others had the processor */

static uint32_t mix (uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352dU;
    x = (x ^ x >> 15) * 0x846ca68bU;
    return x ^ x >> 16;
}

/* --- clocks ---------------------------------------------------------------------------------------- */

/* Brokers' clocks began at any time, and go a little wrong, each in its way. */
static uint64_t boot_offset_us (const struct rank *r)
{
    return UINT64_C (1000000) + mix (rank_number (r) + 1);
}

static int64_t boot_ppm (const struct rank *r)
{
    int64_t most = r->s->config.drift_ppm;

    return (int64_t)(mix (rank_number (r) + 0x5bd1e995U) % (2 * (uint32_t)most + 1)) - most;
}

uint64_t rank_boot_us (const struct rank *r)
{
    uint64_t us = r->busy_ns / 1000;

    return boot_offset_us (r) + us + (uint64_t)((int64_t)(us / 1000) * boot_ppm (r) / 1000);
}

uint64_t rank_when_ns (const struct rank *r, uint64_t boot_us)
{
    uint64_t now_us = rank_boot_us (r), us = boot_us > now_us ? boot_us - now_us : 0;

    return r->busy_ns + (us + us / 8192 + 1) * 1000; /* drift is less: not before */
}

/* --- processors ------------------------------------------------------------------------------------ */

void rank_spend (struct rank *r, double us)
{
    uint64_t ns = (uint64_t)(us * 1000);

    r->busy_ns += ns;
    if (scale_is_measured (r->s))
        r->used_ns += ns;
}

static uint64_t *first_free_core (struct scale *s)
{
    uint64_t *core = &s->core_ns[0];

    for (uint32_t i = 1; i < s->config.cores; i++)
        if (s->core_ns[i] < *core)
            core = &s->core_ns[i];
    return core;
}

static bool is_clients (const struct event *e)
{
    return e->type == EV_CLIENT || e->type == EV_ANSWERED;
}

/* Whose one thread does this; NULL: another's. */
static uint64_t *thread_of (struct scale *s, const struct event *e)
{
    if (is_clients (e))
        return &s->client_ns;
    return e->type == EV_IO ? NULL : &s->rank[e->rank].busy_ns;
}

static void wake (struct scale *s, const struct event *e, uint64_t *thread_ns, uint64_t at_ns)
{
    bool rested = !is_clients (e) && at_ns > *thread_ns + REST_NS;

    *thread_ns = at_ns;
    if (rested)
        rank_spend (&s->rank[e->rank], s->config.costs.wake_us);
}

bool host_begins (struct scale *s, const struct event *e)
{
    uint64_t *thread_ns = thread_of (s, e);
    uint64_t at_ns = thread_ns ? max_u64 (e->t_ns, *thread_ns) : e->t_ns;

    if (s->config.one_host)
        at_ns = max_u64 (at_ns, *first_free_core (s));
    if (s->config.one_host && at_ns > e->t_ns) {
        struct event later = *e;

        later.t_ns = at_ns;
        queue_push (&s->queue, later);
        return false;
    }
    if (thread_ns)
        wake (s, e, thread_ns, at_ns);
    return true;
}

void host_ends (struct scale *s, const struct event *e)
{
    uint64_t *thread_ns = thread_of (s, e);

    if (s->config.one_host)
        *first_free_core (s) = thread_ns ? *thread_ns : s->io_until_ns;
}
