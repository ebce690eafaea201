/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* host.c - processors: when a step ends, and how much time it takes */
#include <stdlib.h>

#include "libutil/minmax.h"
#include "sim/scale/private.h"

#define REST_NS (5 * MS_NS) /* a longer rest leaves a broker's caches cold */

static uint32_t mix (uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352dU;
    x = (x ^ x >> 15) * 0x846ca68bU;
    return x ^ x >> 16;
}

/* --- clocks ---------------------------------------------------------------------------------------- */

/* Each broker's clock has its own offset and drift. */
static uint64_t boot_offset_us (const struct scale_rank *r)
{
    return UINT64_C (1000000) + mix (rank_number (r) + 1);
}

static int64_t boot_ppm (const struct scale_rank *r)
{
    int64_t most = r->s->config.drift_ppm;

    return (int64_t)(mix (rank_number (r) + 0x5bd1e995U) % (2 * (uint32_t)most + 1)) - most;
}

uint64_t rank_boot_us (const struct scale_rank *r)
{
    uint64_t us = r->busy_ns / 1000;

    return boot_offset_us (r) + us + (uint64_t)((int64_t)(us / 1000) * boot_ppm (r) / 1000);
}

uint64_t rank_when_ns (const struct scale_rank *r, uint64_t boot_us)
{
    uint64_t now_us = rank_boot_us (r), us = boot_us > now_us ? boot_us - now_us : 0;

    return r->busy_ns + (us + us / 8192 + 1) * 1000; /* never too early: the drift is less than 1/8192 */
}

/* --- processors ------------------------------------------------------------------------------------ */

void rank_spend (struct scale_rank *r, double us)
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

static bool is_clients (const struct scale_event *e)
{
    return e->type == EV_CLIENT || e->type == EV_ANSWERED;
}

static struct scale_process *process_of (struct scale *s, const struct scale_event *e)
{
    return &s->process[plan_process (s->plan, e->rank)];
}

/* The single thread that handles the event; NULL if it is another one. */
static uint64_t *thread_of (struct scale *s, const struct scale_event *e)
{
    if (is_clients (e))
        return &s->client_ns;
    if (e->type == EV_IO)
        return NULL;
    return s->plan ? &process_of (s, e)->busy_ns : &s->rank[e->rank].busy_ns;
}

/* Only requests take additional time for cold caches: the measured times of heartbeats and reports in a process of
 * many include it (scripts/scale-measure).
 */
static bool is_request (const struct scale_event *e)
{
    return e->type == EV_REQUEST
           || (e->type == EV_MESSAGE && ((const struct scale_message *)e->with.p)->type == MSG_BLOCK);
}

/* If the thread did not rest, only the memory of the broker itself is cold. */
static void wake (struct scale *s, const struct scale_event *e, uint64_t *thread_ns, uint64_t at_ns)
{
    bool rested = at_ns > *thread_ns + REST_NS;
    struct scale_rank *r = &s->rank[e->rank];

    *thread_ns = at_ns;
    if (is_clients (e))
        return;
    bool is_cold = at_ns > r->busy_ns + REST_NS && is_request (e);

    r->busy_ns = at_ns;
    if (rested)
        rank_spend (r, s->config.costs.wake_us);
    else if (is_cold)
        rank_spend (r, s->inside.cold_us);
}

static void push_todo (struct scale_process *p, const struct scale_event *e)
{
    if (p->count == p->size) {
        struct scale_event *todo = must (calloc (2 * (size_t)p->size + 16, sizeof (todo[0])));

        for (uint32_t i = 0; i < p->count; i++)
            todo[i] = p->todo[(p->first + i) % p->size];
        free (p->todo);
        p->todo = todo;
        p->first = 0;
        p->size = 2 * p->size + 16;
    }
    p->todo[(p->first + p->count++) % p->size] = *e;
}

static bool process_begins (struct scale *s, const struct scale_event *e)
{
    struct scale_process *p = process_of (s, e);
    uint64_t at_ns = max_u64 (p->busy_ns, *first_free_core (s));

    if (!p->has_turn && at_ns <= e->t_ns) {
        wake (s, e, &p->busy_ns, e->t_ns);
        return true;
    }
    push_todo (p, e);
    if (!p->has_turn)
        scale_at (s, at_ns, EV_TURN, plan_process (s->plan, e->rank), 0);
    p->has_turn = true;
    return false;
}

bool host_turn (struct scale *s, const struct scale_event *e, struct scale_event *next)
{
    struct scale_process *p = &s->process[e->rank];
    uint64_t at_ns = max_u64 (p->busy_ns, *first_free_core (s));

    if (at_ns > e->t_ns) {
        scale_at (s, at_ns, EV_TURN, e->rank, 0);
        return false;
    }
    *next = p->todo[p->first];
    p->first = (p->first + 1) % p->size;
    p->count--;
    next->t_ns = e->t_ns;
    return true;
}

void host_turn_begins (struct scale *s, const struct scale_event *e)
{
    wake (s, e, &process_of (s, e)->busy_ns, e->t_ns);
}

void host_turn_ends (struct scale *s, uint32_t process)
{
    struct scale_process *p = &s->process[process];

    p->has_turn = p->count > 0;
    if (p->has_turn)
        scale_at (s, p->busy_ns, EV_TURN, process, 0);
}

bool host_begins (struct scale *s, const struct scale_event *e)
{
    if (s->plan && !is_clients (e) && e->type != EV_IO)
        return process_begins (s, e);
    uint64_t *thread_ns = thread_of (s, e);
    uint64_t at_ns = thread_ns ? max_u64 (e->t_ns, *thread_ns) : e->t_ns;

    if (s->config.one_host)
        at_ns = max_u64 (at_ns, *first_free_core (s));
    if (s->config.one_host && at_ns > e->t_ns) {
        struct scale_event later = *e;

        later.t_ns = at_ns;
        queue_push (&s->queue, later);
        return false;
    }
    if (thread_ns)
        wake (s, e, thread_ns, at_ns);
    return true;
}

void host_ends (struct scale *s, const struct scale_event *e)
{
    uint64_t *thread_ns = thread_of (s, e);

    if (s->plan && thread_ns && !is_clients (e))
        *thread_ns = s->rank[e->rank].busy_ns;

    if (s->config.one_host)
        *first_free_core (s) = thread_ns ? *thread_ns : s->io_until_ns;
}
