/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* host.c - the model of processors, links and clients: when a step ends, when a message arrives, when a client sends a
 * request and how long it waits
 *
 * Messages over a link arrive in the order in which they were sent, in each direction. Each rank has one client. All
 * clients' random requests are modelled as one random sequence of requests, each at a random rank, which is equivalent.
 * Latency is measured from the end of the client's send until the client begins to read the answer, as in
 * bench/bench-scale.c.
 */
#include <stdlib.h>
#include <string.h>

#include "libutil/minmax.h"
#include "sim/scale/private.h"

#define REST_NS (5 * MS_NS) /* after a longer rest, a broker's caches are cold */

/* Bytes on the wire (protocol.md): FRAME is header, routes and ZeroMQ's frames; RUN is a run of ids; WANT is a want or
 * a grant in JSON.
 */
#define FRAME 120
#define RUN 12
#define WANT 90

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

    return r->busy_ns + (us + us / 8192 + 1) * 1000; /* never too early, because the drift is less than 1/8192 */
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

/* Return the address of the time at which the thread that handles the event is free again; NULL: ZeroMQ's threads
 * handle it.
 */
static uint64_t *thread_of (struct scale *s, const struct scale_event *e)
{
    if (is_clients (e))
        return &s->client_ns;
    if (e->type == EV_IO)
        return NULL;
    return s->plan ? &process_of (s, e)->busy_ns : &s->rank[e->rank].busy_ns;
}

/* Only requests need additional time for cold caches. In a process of many brokers, the measured times of heartbeats
 * and reports already include this time (scripts/scale-measure).
 */
static bool is_request (const struct scale_event *e)
{
    return e->type == EV_REQUEST
           || (e->type == EV_MESSAGE && ((const struct scale_message *)e->with.p)->type == MSG_BLOCK);
}

/* Add the time for cold caches. If the thread did not rest, only the memory of the broker itself is cold. */
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

/* --- messages: memory ------------------------------------------------------------------------------------------ */

static struct scale_message *get_message (struct scale *s)
{
    struct scale_message *m = s->spare_messages;

    if (m)
        s->spare_messages = m->next;
    else
        m = must (malloc (sizeof (*m)));
    return m;
}

static struct scale_message *copy_message (struct scale *s, const struct scale_message *msg)
{
    struct scale_message *m = get_message (s);

    *m = *msg;
    if (m->nruns > sizeof (m->small) / sizeof (m->small[0]))
        m->run = sim_copy (msg->run, msg->nruns, sizeof (msg->run[0]));
    else if (m->nruns > 0)
        m->run = memcpy (m->small, msg->run, msg->nruns * sizeof (msg->run[0]));
    if (m->type == MSG_LEASE) {
        m->req.want = sim_copy (msg->req.want, msg->req.nwant, sizeof (msg->req.want[0]));
    }
    if (m->type == MSG_GRANTS)
        m->answer.grant = sim_copy (msg->answer.grant, msg->answer.ngrant, sizeof (msg->answer.grant[0]));
    return m;
}

void scale_link_free (struct scale *s, struct scale_message *m)
{
    if (m->nruns > 0 && m->run != m->small)
        free (m->run);
    if (m->type == MSG_LEASE) {
        free ((void *)m->req.want);
    }
    if (m->type == MSG_GRANTS)
        free ((void *)m->answer.grant);
    m->next = s->spare_messages;
    s->spare_messages = m;
}

/* --- messages: links --------------------------------------------------------------------------------------------- */

static uint64_t bytes_of (const struct scale_message *m)
{
    uint64_t wants = 0;

    if (m->type == MSG_LEASE)
        wants = m->req.nwant;
    else if (m->type == MSG_GRANTS)
        wants = m->answer.ngrant;
    return FRAME + m->nruns * RUN + wants * WANT;
}

bool scale_link_is_inside (const struct scale *s, uint32_t a, uint32_t b)
{
    return s->plan && plan_process (s->plan, a) == plan_process (s->plan, b);
}

/* Return the processor time that a message needs. The content of messages for leases takes the same time
 * on each kind of link. Inside a process, start_us includes the hello.
 */
double message_cost_us (const struct scale *s, const struct scale_message *m, double other_us)
{
    const struct costs *c = &s->config.costs;
    bool inside = scale_link_is_inside (s, m->from, m->to);
    double lease_us = inside ? c->inside_us : c->lease_us;

    switch (m->type) {
    case MSG_PING:
    case MSG_PONG:
        return (inside ? s->inside.heartbeat_us : c->heartbeat_us) / 2; /* the other half is for the response */
    case MSG_LEASE:
        return lease_us + (double)m->req.nwant * c->want_us;
    case MSG_GRANTS:
        return lease_us + (double)m->answer.ngrant * c->want_us;
    case MSG_REPORT:
        return inside ? s->inside.report_us : c->report_us;
    case MSG_HELLO:
    case MSG_JOINED:
        return inside ? c->inside_us : c->hello_us / 2;
    default:
        return inside ? c->inside_us : other_us;
    }
}

static void count (struct scale *s, const struct scale_rank *child, const struct scale_message *m)
{
    if (!scale_is_measured (s))
        return;
    s->level[child->level].messages[m->type]++;
    s->result.beats += m->type == MSG_PING;
    s->result.forwards += m->type == MSG_BLOCK;
    if (scale_link_is_inside (s, m->from, m->to))
        s->result.inside++;
    else
        s->result.outside++;
    s->level[child->level].bytes += bytes_of (m);
}

static uint64_t arrival_ns (struct scale *s, struct scale_way *way, uint64_t sent_ns)
{
    const struct costs *c = &s->config.costs;
    double us = c->latency_us + scale_exponential (s, c->jitter_us);

    way->last_ns = max_u64 (way->last_ns, sent_ns + (uint64_t)(us * 1000));
    return way->last_ns;
}

/* Plan when a message arrives over a link between processes. */
static struct scale_event leave (struct scale_rank *from, struct scale_rank *child, struct scale_message *m)
{
    struct scale *s = from->s;
    struct scale_way *way = child == from ? &child->up : &child->down;

    way->free_ns = max_u64 (way->free_ns, from->busy_ns)
                   + (uint64_t)((double)bytes_of (m) / s->config.costs.bytes_per_us * 1000);
    return (struct scale_event){ .t_ns = s->config.one_host ? way->free_ns : arrival_ns (s, way, way->free_ns),
                                 .type = s->config.one_host ? EV_IO : EV_MESSAGE,
                                 .rank = m->to,
                                 .with.p = m };
}

void scale_link_send (struct scale_rank *from, const struct scale_message *msg)
{
    struct scale *s = from->s;
    struct scale_rank *child = message_goes_up (msg->type) ? from : &s->rank[msg->to];
    struct scale_message *m = copy_message (s, msg);

    m->from = rank_number (from);
    m->link = child->link;
    rank_spend (from, message_cost_us (s, m, s->config.costs.send_us));
    count (s, child, m);
    /* the link is a queue in memory, which is read when the process has no other work */
    if (scale_link_is_inside (s, m->from, m->to))
        queue_push (&s->queue,
                    (struct scale_event){ .t_ns = from->busy_ns, .type = EV_MESSAGE, .rank = m->to, .with.p = m });
    else
        queue_push (&s->queue, leave (from, child, m));
}

/* ZeroMQ's threads have a message. They deliver it when they begin to run. Their further work keeps a core busy, but
 * does not delay the message.
 */
void scale_link_io (struct scale *s, const struct scale_event *e)
{
    struct scale_message *m = e->with.p;
    uint64_t ns = (uint64_t)(2 * s->config.costs.io_us * 1000);
    bool up = message_goes_up (m->type);
    struct scale_rank *child = &s->rank[up ? m->from : m->to];

    s->io_until_ns = e->t_ns + ns;
    if (scale_is_measured (s))
        s->io_used_ns += ns;
    queue_push (&s->queue, (struct scale_event){ .t_ns = arrival_ns (s, up ? &child->up : &child->down, e->t_ns),
                                                 .type = EV_MESSAGE,
                                                 .rank = m->to,
                                                 .with.p = m });
}

/* --- clients: when they send requests ---------------------------------------------------------------------- */

static uint64_t local_ns (const struct scale *s)
{
    return (uint64_t)((s->plan ? s->inside.local_us : s->config.costs.local_us) * 1000);
}

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

/* The n-th rank of a burst sends its requests. The first rank also schedules the next burst. */
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

/* --- requests -------------------------------------------------------------------------------------------- */

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

/* A client's request arrives. The broker may have been killed since the request was sent. */
void load_request (struct scale_rank *r, struct scale_ask *a)
{
    if (!r->node || a->life != r->life) {
        load_drop (r->s, a);
        return;
    }
    rank_spend (r, r->s->config.costs.request_us / 2);
    a->state = node_view (r->node).state;
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

/* Immediately after a loss, each rank below 'top' sends one request. If all ranks are below 'top', only a sample of
 * them sends one, which suffices for percentiles.
 */
void load_probe (struct scale *s, uint32_t top)
{
    uint32_t step = s->config.size / 20000 + 1;

    for (uint32_t i = 0; i < s->config.size; i++)
        if (s->rank[i].node && rank_is_below (s, i, top) && (top != 0 || i % step == 0))
            ask_for (s, i, s->t_ns, true);
}
