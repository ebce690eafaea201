/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* scale.c - the course of a run: its queue of events, its ranks, its measurement */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "sim/scale/private.h"
#include "sim/sim_check.h"

#define BEAT_NS SECOND_NS             /* HEARTBEAT of broker/overlay/overlay.c; its HEARTBEAT_INSIDE is twice this */
#define MOMENTS 16                    /* moments of a period, as in broker/overlay/overlay.c */
#define PATIENCE_NS (300 * SECOND_NS) /* longest time of a cold start */
#define WAYS 4                        /* children of each node of the heap */

/* --- random numbers -------------------------------------------------------------------------------------- */

uint64_t scale_below (struct scale *s, uint64_t n)
{
    return sim_random (&s->random) % n;
}

double scale_fraction (struct scale *s)
{
    return (double)(sim_random (&s->random) >> 11) / 9007199254740992.;
}

double scale_exponential (struct scale *s, double mean)
{
    return -mean * log (1 - scale_fraction (s));
}

/* --- the queue of events --------------------------------------------------------------------------------- */

static bool earlier (const struct scale_event *a, const struct scale_event *b)
{
    return a->t_ns != b->t_ns ? a->t_ns < b->t_ns : a->order < b->order;
}

void queue_push (struct queue *q, struct scale_event e)
{
    size_t i = q->count++;

    if (i == q->size) {
        q->size = q->size ? 2 * q->size : 1024;
        q->event = must (realloc (q->event, q->size * sizeof (e)));
    }
    e.order = ++q->order;
    for (; i > 0 && earlier (&e, &q->event[(i - 1) / WAYS]); i = (i - 1) / WAYS)
        q->event[i] = q->event[(i - 1) / WAYS];
    q->event[i] = e;
}

/* Return the child of 'i' with the earliest event. 'i' must have a child. */
static size_t first_child (const struct queue *q, size_t i)
{
    size_t first = WAYS * i + 1, end = first + WAYS < q->count ? first + WAYS : q->count;

    for (size_t k = first + 1; k < end; k++)
        if (earlier (&q->event[k], &q->event[first]))
            first = k;
    return first;
}

bool queue_pop (struct queue *q, struct scale_event *e)
{
    if (q->count == 0)
        return false;
    *e = q->event[0];
    struct scale_event last = q->event[--q->count];
    size_t i = 0;

    while (WAYS * i + 1 < q->count) {
        size_t k = first_child (q, i);

        if (!earlier (&q->event[k], &last))
            break;
        q->event[i] = q->event[k];
        i = k;
    }
    q->event[i] = last;
    return true;
}

void queue_fini (struct queue *q)
{
    free (q->event);
    *q = (struct queue){ 0 };
}

/* --- scheduling -------------------------------------------------------------------------------------------- */

void scale_at (struct scale *s, uint64_t t_ns, enum event_type type, uint32_t rank, uint64_t n)
{
    queue_push (&s->queue,
                (struct scale_event){ .t_ns = max_u64 (t_ns, s->t_ns), .type = type, .rank = rank, .with.n = n });
}

bool scale_is_measured (const struct scale *s)
{
    return s->phase == PHASE_MEASURE;
}

void scale_fail (struct scale *s, const char *what, uint32_t rank)
{
    if (s->result.violation[0] == '\0')
        snprintf (s->result.violation, sizeof (s->result.violation), "rank %u: %s", (unsigned)rank, what);
}

static void look_at_check (struct scale *s)
{
    const char *violation = s->check ? sim_check_violation (s->check) : NULL;

    if (violation && s->result.violation[0] == '\0')
        snprintf (s->result.violation, sizeof (s->result.violation), "%s", violation);
}

/* --- phases ------------------------------------------------------------------------------------------------- */

void scale_look_at_start (struct scale *s)
{
    if (s->phase != PHASE_COLD || s->result.started || s->nactive < s->owners || s->nup < s->config.size)
        return;
    s->result.started = true;
    s->cold_root_used_ns = s->rank[0].used_ns;
    scale_at (s, s->t_ns + SECOND_NS, EV_PHASE, 0, PHASE_WARM);
}

static void begin_to_measure (struct scale *s)
{
    for (uint32_t i = 0; i < s->config.size; i++)
        s->rank[i].used_ns = 0;
    s->begin_ns = s->t_ns;
    if (s->config.fault.kill)
        scale_at (s, s->t_ns + s->config.measure_ms * MS_NS / 4, EV_KILL, s->config.fault.rank, 0);
    scale_at (s, s->t_ns + s->config.measure_ms * MS_NS, EV_PHASE, 0, PHASE_DRAIN);
}

/* Run until all requests have ended, at most until all of their deadlines are over. */
static void drain (struct scale *s)
{
    uint64_t most_ns = s->end_ns + (s->config.timeout_ms + s->config.backlog_ms) * MS_NS + 10 * SECOND_NS;

    if (s->outstanding == 0 || s->t_ns > most_ns)
        s->phase = PHASE_END;
    else
        scale_at (s, s->t_ns + SECOND_NS / 10, EV_PHASE, 0, PHASE_DRAIN);
}

static void begin_phase (struct scale *s, enum phase phase)
{
    if (phase < s->phase || (phase == PHASE_WARM && s->phase == PHASE_WARM))
        return;
    if (phase == PHASE_DRAIN && s->phase == PHASE_MEASURE)
        s->end_ns = s->t_ns;
    s->phase = phase;
    if (phase == PHASE_WARM) {
        load_begin (s);
        scale_at (s, s->t_ns + s->config.warm_up_ms * MS_NS, EV_PHASE, 0, PHASE_MEASURE);
    }
    else if (phase == PHASE_MEASURE)
        begin_to_measure (s);
    else if (phase == PHASE_DRAIN)
        drain (s);
}

/* --- events --------------------------------------------------------------------------------------------------- */

static void beat_of (struct scale *s, uint32_t number)
{
    if (number > 0 && s->rank[number].place == PLACE_UP)
        scale_at (s, s->t_ns, EV_PING, number, s->rank[number].link);
}

/* Send the heartbeats of moment 'n'. With --one-host all ranks have one clock, and the number of a rank determines in
 * which of the MOMENTS moments of a period it sends. A rank whose parent is in the same process sends only in every
 * second period.
 */
static void beat_in_moment (struct scale *s, uint64_t n)
{
    for (uint32_t i = (uint32_t)(n % MOMENTS); i < s->config.size; i += MOMENTS)
        if (i > 0 && !scale_link_is_inside (s, i, s->rank[i].parent))
            beat_of (s, i);
    for (uint32_t i = (uint32_t)(n / 2 % MOMENTS); n % 2 == 0 && i < s->config.size; i += MOMENTS)
        if (i > 0 && scale_link_is_inside (s, i, s->rank[i].parent))
            beat_of (s, i);
}

/* Send the next heartbeats. Without --one-host, the heartbeats of all ranks are spread over a period, and follow each
 * other in steps of 'stride' through the ranks.
 */
static void beat (struct scale *s)
{
    uint32_t size = s->config.size, beats = s->config.one_host ? MOMENTS : size;
    uint64_t n = s->beats++;

    if (s->config.one_host)
        beat_in_moment (s, n);
    else
        beat_of (s, (uint32_t)(n % size * s->stride % size));
    scale_at (s, (n + 1) * BEAT_NS / beats, EV_BEAT, 0, 0);
}

/* Whether an event still has to be handled. Its broker may have ended, or its time may have changed, since it was
 * scheduled.
 */
static bool is_current (const struct scale *s, const struct scale_event *e)
{
    const struct scale_rank *r = &s->rank[e->rank];

    switch ((enum event_type)e->type) {
    case EV_TICK:
        return r->node && r->tick_ns == e->with.n;
    case EV_PING:
        return r->node && r->place == PLACE_UP && r->link == e->with.n;
    case EV_STORED:
    case EV_WALL:
        return r->node && r->life == e->with.n;
    case EV_JOIN:
        return r->node && r->waits;
    case EV_RETRY:
    case EV_PROBE:
    case EV_LOST:
        return r->node != NULL;
    default:
        return true;
    }
}

static void do_job (struct scale *s, const struct scale_event *e)
{
    struct scale_rank *r = &s->rank[e->rank];

    switch ((enum event_type)e->type) {
    case EV_START:
        rank_start (s, e);
        break;
    case EV_JOIN:
        rank_join (r);
        break;
    case EV_TICK:
        rank_tick (r);
        break;
    case EV_PING:
        rank_ping (r);
        break;
    case EV_RETRY:
        rank_retry (r, e->with.n);
        break;
    case EV_PROBE:
        rank_probe (r);
        break;
    case EV_LOST:
        rank_lost (r, e->with.n);
        break;
    case EV_STORED:
        rank_stored (r);
        break;
    case EV_WALL:
        rank_wall (r);
        break;
    case EV_IO:
        scale_link_io (s, e);
        break;
    case EV_REQUEST:
        load_request (r, e->with.p);
        break;
    case EV_CLIENT:
        load_client (s, e);
        break;
    case EV_ANSWERED:
        load_answered (s, e->with.p);
        break;
    case EV_BEAT:
        beat (s);
        break;
    case EV_LOAD:
        load_next (s);
        break;
    case EV_BURST:
        load_burst (s, e->with.n);
        break;
    case EV_KILL:
        rank_kill (s, e->rank);
        break;
    case EV_PHASE:
        begin_phase (s, (enum phase)e->with.n);
        break;
    default:
        rank_message (r, e->with.p);
        scale_link_free (s, e->with.p);
    }
}

static bool is_outside (const struct scale_event *e)
{
    return e->type == EV_START || e->type == EV_BEAT || e->type == EV_LOAD || e->type == EV_BURST || e->type == EV_KILL
           || e->type == EV_PHASE;
}

/* Handle a postponed event of a process, unless it is obsolete. */
static void take_turn (struct scale *s, const struct scale_event *e)
{
    struct scale_event next;

    if (!host_turn (s, e, &next))
        return;
    if (is_current (s, &next)) {
        host_turn_begins (s, &next);
        do_job (s, &next);
        host_ends (s, &next);
    }
    host_turn_ends (s, e->rank);
}

static void happen (struct scale *s, const struct scale_event *e)
{
    s->t_ns = e->t_ns;
    s->result.events++;
    if (e->type == EV_TURN)
        take_turn (s, e);
    else if (is_outside (e) && !(s->plan && e->type == EV_START))
        do_job (s, e);
    else if (is_current (s, e) && host_begins (s, e)) {
        do_job (s, e);
        host_ends (s, e);
    }
}

/* --- a run ------------------------------------------------------------------------------------------------------ */

static void plan_start (struct scale *s)
{
    for (uint32_t i = 0; s->plan && i < plan_processes (s->plan); i++)
        scale_at (s, (uint64_t)(s->config.costs.boot_ms * 1e6), EV_START, plan_rank (s->plan, i, 0), 1);
    for (uint32_t i = 0; !s->plan && i < s->config.size; i++)
        scale_at (s, s->config.start_spread_ms > 0 ? scale_below (s, s->config.start_spread_ms * MS_NS) : 0, EV_START,
                  i, 0);
    scale_at (s, 0, EV_BEAT, 0, 0);
    scale_at (s, PATIENCE_NS, EV_PHASE, 0, PHASE_WARM);
}

static void sum_up (struct scale *s)
{
    double used_ns = 0;

    for (uint32_t i = 0; i < s->config.size; i++) {
        used_ns += (double)s->rank[i].used_ns;
        s->result.sharing += s->rank[i].node && node_view (s->rank[i].node).state == NODE_SHARING;
    }
    if (s->end_ns > s->begin_ns)
        s->result.busy_cores = used_ns / (double)(s->end_ns - s->begin_ns);
}

void scale_run (struct scale *s, struct scale_result *result)
{
    struct scale_event e;

    plan_start (s);
    while (s->phase != PHASE_END && queue_pop (&s->queue, &e))
        happen (s, &e);
    look_at_check (s);
    if (s->outstanding > 0)
        scale_fail (s, "requests are not answered long after the end", 0);
    if (s->check)
        s->result.seen_ids = sim_check_ids (s->check);
    s->result.p50_ns = samples_percentile (&s->all, 50);
    sum_up (s);
    *result = s->result;
}

/* --- create and destroy ------------------------------------------------------------------------------------------- */

/* Return a step that reaches each rank exactly once: a prime that does not divide the size. */
static uint32_t stride_for (uint32_t size)
{
    static const uint32_t primes[] = { 1000003, 999983, 99991 };

    for (size_t i = 0; i < sizeof (primes) / sizeof (primes[0]); i++)
        if (size % primes[i] != 0)
            return primes[i];
    return 1;
}

static void place_ranks (struct scale *s)
{
    uint32_t size = s->config.size, generators = s->config.max_generators;

    for (uint32_t i = 0; i < size; i++) {
        uint32_t level = topo_level (s->topo, i);

        level = level < MAX_LEVELS ? level : MAX_LEVELS - 1;
        s->rank[i] = (struct scale_rank){ .s = s, .level = (uint8_t)level, .tick_ns = UINT64_MAX };
        s->level[level].ranks++;
        s->nlevels = s->nlevels > level + 1 ? s->nlevels : level + 1;
    }
    s->owners = size < generators ? size : generators;
    s->askers = size;
    if (s->config.load.askers == ASKERS_OWNERS)
        s->askers = s->owners;
    if (s->config.load.askers == ASKERS_IDLE) {
        s->first_asker = s->owners;
        s->askers = size - s->owners;
    }
}

static int sim_check_config (const struct scale_config *config, idt_error_t *errp)
{
    if (config->size < 1 || config->size > SCALE_MAX_SIZE)
        return errsetf (errp, EINVAL, "the size must be 1 to %d", SCALE_MAX_SIZE);
    if (config->fault.kill && config->fault.rank >= config->size)
        return errsetf (errp, EINVAL, "rank %u cannot be killed: the last rank is %u", (unsigned)config->fault.rank,
                        (unsigned)config->size - 1);
    if (config->processes > config->size)
        return errsetf (errp, EINVAL, "%u processes need at least as many ranks, but there are %u",
                        (unsigned)config->processes, (unsigned)config->size);
    if (config->processes > 0 && !config->one_host)
        return errsetf (errp, EINVAL, "processes of many ranks need --one-host: they share one host");
    return 0;
}

static struct scale_transport costs_inside (const struct costs *c, uint32_t size)
{
    return (struct scale_transport){ .heartbeat_us = costs_with (c, c->inside_heartbeat_us, size),
                                     .report_us = costs_with (c, c->inside_report_us, size),
                                     .local_us = costs_with (c, c->inside_local_us, size),
                                     .cold_us = costs_with (c, c->cold_us, size),
                                     .client_us = costs_with (c, c->inside_client_us, size) };
}

/* Make the plan of the processes. If each rank has its own process, there is no plan. */
static int make_plan (struct scale *s, idt_error_t *errp)
{
    uint32_t processes = s->config.processes;

    if (processes == 0 || processes == s->config.size)
        return 0;
    if (!(s->plan = plan_create (s->config.size, processes, s->topo, errp)))
        return -1;
    s->process = must (calloc (plan_processes (s->plan), sizeof (s->process[0])));
    return 0;
}

struct scale *scale_create (const struct scale_config *config, idt_error_t *errp)
{
    struct scale *s;

    if (sim_check_config (config, errp) < 0)
        return NULL;
    s = must (calloc (1, sizeof (*s)));
    s->config = *config;
    s->inside = costs_inside (&config->costs, config->size);
    s->random = config->seed;
    if (!(s->topo = topo_create (config->topology, config->size, errp)) || make_plan (s, errp) < 0) {
        topo_destroy (s->topo);
        free (s);
        return NULL;
    }
    s->stride = stride_for (config->size);
    s->rank = must (calloc (config->size, sizeof (s->rank[0])));
    s->check = config->check ? sim_check_create () : NULL;
    place_ranks (s);
    return s;
}

static void free_event (struct scale *s, const struct scale_event *e)
{
    if (e->type == EV_MESSAGE || e->type == EV_IO)
        scale_link_free (s, e->with.p);
    else if (e->type == EV_REQUEST || e->type == EV_CLIENT || e->type == EV_ANSWERED)
        ask_free (s, e->with.p);
}

static void free_events (struct scale *s)
{
    struct scale_event e;

    while (queue_pop (&s->queue, &e))
        free_event (s, &e);
    for (uint32_t i = 0; s->plan && i < plan_processes (s->plan); i++) {
        struct scale_process *p = &s->process[i];

        for (; p->count > 0; p->count--, p->first++)
            free_event (s, &p->todo[p->first % p->size]);
        free (p->todo);
    }
    queue_fini (&s->queue);
}

static void free_spares (struct scale *s)
{
    struct scale_message *m;
    struct scale_ask *a;

    while ((m = s->spare_messages)) {
        s->spare_messages = m->next;
        free (m);
    }
    while ((a = s->spare_asks)) {
        s->spare_asks = a->next;
        free (a);
    }
}

void scale_destroy (struct scale *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->config.size; i++)
        if (s->rank[i].node)
            rank_end (&s->rank[i]);
    free_events (s);
    free_spares (s);
    for (uint32_t l = 0; l < MAX_LEVELS; l++)
        for (int i = 0; i < NSTATES; i++)
            samples_fini (&s->level[l].latency[i]);
    for (int i = 0; i < NSTATES; i++)
        samples_fini (&s->served_again[i]);
    samples_fini (&s->joined);
    samples_fini (&s->activated);
    samples_fini (&s->joined_again);
    samples_fini (&s->all);
    sim_check_destroy (s->check);
    plan_destroy (s->plan);
    topo_destroy (s->topo);
    free (s->process);
    free (s->rank);
    free (s);
}
