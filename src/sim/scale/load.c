/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* load.c - clients: when they send requests, and how long they wait
 *
 * Each rank has one client. Random requests of each are equivalent to one random sequence of requests, each at a random
 * rank. Latency is measured from the end of the client's send until it begins to read the answer, as in
 * bench/bench-scale.c.
 */
#include "libutil/minmax.h"
#include "sim/scale/private.h"

static void ask_for (struct scale *s, uint32_t number, uint64_t t_ns, bool probe);

/* --- times of requests ----------------------------------------------------------------------------------- */

static double gap_ns (struct scale *s)
{
    return scale_exponential (s, 1e9 / (s->config.load.rate * s->askers));
}

void load_begin (struct scale *s)
{
    if (s->askers == 0)
        return;
    if (s->config.load.rate > 0)
        scale_at (s, s->t_ns + (uint64_t)gap_ns (s), EV_LOAD, 0, 0);
    if (s->config.load.burst > 0)
        scale_at (s, s->t_ns, EV_BURST, 0, 0);
}

static bool is_over (const struct scale *s)
{
    return s->phase >= PHASE_DRAIN;
}

void load_next (struct scale *s)
{
    if (is_over (s))
        return;
    ask_for (s, s->first_asker + (uint32_t)scale_below (s, s->askers), s->t_ns, false);
    scale_at (s, s->t_ns + (uint64_t)gap_ns (s), EV_LOAD, 0, 0);
}

/* The n-th rank of a burst. The first one also schedules the next burst. */
void load_burst (struct scale *s, uint64_t n)
{
    const struct scale_load *l = &s->config.load;
    uint64_t step_ns = l->spread_ms * MS_NS / s->askers;

    if (is_over (s))
        return;
    if (n == 0)
        scale_at (s, s->t_ns + l->period_ms * MS_NS, EV_BURST, 0, 0);
    for (;; n++) {
        for (uint32_t i = 0; i < l->burst; i++)
            ask_for (s, s->first_asker + (uint32_t)(n * s->stride % s->askers), s->t_ns, false);
        if (n + 1 == s->askers || step_ns > 0)
            break;
    }
    if (n + 1 < s->askers)
        scale_at (s, s->t_ns + step_ns, EV_BURST, 0, n + 1);
}

static uint64_t local_ns (const struct scale *s)
{
    return (uint64_t)((s->plan ? s->inside.local_us : s->config.costs.local_us) * 1000);
}

/* --- requests -------------------------------------------------------------------------------------------- */

static void ask_for (struct scale *s, uint32_t number, uint64_t t_ns, bool probe)
{
    struct scale_rank *r = &s->rank[number];

    if (!r->node)
        return;
    struct scale_ask *a = scale_ask_create (r);
    a->client = true;
    a->count = s->config.load.count;
    a->asked_ns = t_ns;
    a->probe = probe;
    a->measured = scale_is_measured (s) && !probe;
    s->result.asked++;
    s->outstanding++;
    if (s->config.one_host)
        queue_push (&s->queue, (struct scale_event){ .t_ns = t_ns, .type = EV_CLIENT, .rank = number, .with.p = a });
    else
        queue_push (&s->queue, (struct scale_event){
                                   .t_ns = t_ns + local_ns (s), .type = EV_REQUEST, .rank = number, .with.p = a });
}

static void spend_client (struct scale *s)
{
    uint64_t ns = (uint64_t)((s->plan ? s->inside.client_us : s->config.costs.client_us) / 2 * 1000);

    s->client_ns += ns;
    if (scale_is_measured (s))
        s->client_used_ns += ns;
}

void load_client (struct scale *s, const struct scale_event *e)
{
    struct scale_ask *a = e->with.p;

    spend_client (s);
    a->asked_ns = s->client_ns;
    queue_push (&s->queue, (struct scale_event){
                               .t_ns = s->client_ns + local_ns (s), .type = EV_REQUEST, .rank = e->rank, .with.p = a });
}

/* The broker may have been killed while the request was under way. */
void load_request (struct scale_rank *r, struct scale_ask *a)
{
    if (!r->node || a->life != r->life) {
        load_drop (r->s, a);
        return;
    }
    rank_spend (r, r->s->config.costs.request_us / 2);
    a->state = node_state (r->node);
    a->at_node = true;
    node_block (r->node, rank_boot_us (r), &(struct node_request){ a, a->count, 0, false, "client", false, false });
    rank_look (r);
}

/* --- answers ------------------------------------------------------------------------------------------------ */

static void note_latency (struct scale *s, const struct scale_ask *a, uint64_t ns)
{
    if (a->probe)
        samples_add (&s->served_again[a->state], ns);
    if (!a->measured)
        return;
    samples_add (&s->level[s->rank[a->rank].level].latency[a->state], ns);
    samples_add (&s->all, ns);
}

static void end (struct scale *s, struct scale_ask *a, uint64_t t_ns)
{
    if (a->failed)
        s->result.failed++;
    else {
        s->result.answered++;
        note_latency (s, a, t_ns - a->asked_ns);
    }
    s->outstanding--;
    ask_free (s, a);
}

void load_answer (struct scale *s, struct scale_ask *a, bool good)
{
    struct scale_rank *r = &s->rank[a->rank];

    rank_spend (r, s->config.costs.request_us / 2);
    a->failed = !good;
    a->at_node = false;
    uint64_t t_ns = r->busy_ns + local_ns (s);
    if (!s->config.one_host)
        end (s, a, t_ns);
    else
        queue_push (&s->queue, (struct scale_event){ .t_ns = t_ns, .type = EV_ANSWERED, .rank = a->rank, .with.p = a });
}

void load_answered (struct scale *s, struct scale_ask *a)
{
    uint64_t t_ns = s->client_ns;

    spend_client (s);
    end (s, a, t_ns);
}

void load_drop (struct scale *s, struct scale_ask *a)
{
    s->result.dropped++;
    s->outstanding--;
    ask_free (s, a);
}

/* Immediately after a loss each rank below sends one request. If all ranks are below, a sample of them does, which
 * suffices for percentiles.
 */
void load_probe (struct scale *s, uint32_t top)
{
    uint32_t step = s->config.size / 20000 + 1;

    for (uint32_t i = 0; i < s->config.size; i++)
        if (s->rank[i].node && rank_is_below (s, i, top) && (top != 0 || i % step == 0))
            ask_for (s, i, s->t_ns, true);
}
