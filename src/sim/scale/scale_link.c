/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* scale_link.c - messages that are under way: in order over each link, in each direction */
#include <stdlib.h>
#include <string.h>

#include "libutil/minmax.h"
#include "sim/scale/private.h"

/* Sizes on the wire in bytes (protocol.md): header, routes and ZeroMQ's frames; a run; a want or a grant in JSON. */
#define FRAME 120
#define RUN 12
#define WANT 90

/* --- memory ------------------------------------------------------------------------------------------ */

static struct scale_message *get_message (struct scale *s)
{
    struct scale_message *m = s->spare_messages;

    if (m)
        s->spare_messages = m->next;
    else
        m = must (malloc (sizeof (*m)));
    return m;
}

static void *copy (const void *p, size_t n, size_t size)
{
    void *q = n > 0 ? must (malloc (n * size)) : NULL;

    if (n > 0)
        memcpy (q, p, n * size);
    return q;
}

static struct scale_message *copy_message (struct scale *s, const struct scale_message *msg)
{
    struct scale_message *m = get_message (s);

    *m = *msg;
    if (m->nruns > sizeof (m->small) / sizeof (m->small[0]))
        m->run = copy (msg->run, msg->nruns, sizeof (msg->run[0]));
    else if (m->nruns > 0)
        m->run = memcpy (m->small, msg->run, msg->nruns * sizeof (msg->run[0]));
    if (m->type == MSG_LEASE) {
        m->req.want = copy (msg->req.want, msg->req.nwant, sizeof (msg->req.want[0]));
        m->req.back = copy (msg->req.back, msg->req.nback, sizeof (msg->req.back[0]));
    }
    if (m->type == MSG_GRANTS)
        m->answer.grant = copy (msg->answer.grant, msg->answer.ngrant, sizeof (msg->answer.grant[0]));
    return m;
}

void scale_link_free (struct scale *s, struct scale_message *m)
{
    if (m->nruns > 0 && m->run != m->small)
        free (m->run);
    if (m->type == MSG_LEASE) {
        free ((void *)m->req.want);
        free ((void *)m->req.back);
    }
    if (m->type == MSG_GRANTS)
        free ((void *)m->answer.grant);
    m->next = s->spare_messages;
    s->spare_messages = m;
}

/* --- links --------------------------------------------------------------------------------------------- */

static uint64_t bytes_of (const struct scale_message *m)
{
    uint64_t wants = 0;

    if (m->type == MSG_LEASE)
        wants = m->req.nwant + m->req.nback;
    else if (m->type == MSG_GRANTS)
        wants = m->answer.ngrant;
    else if (m->type == MSG_WANT || m->type == MSG_SHARE)
        wants = 1;
    return FRAME + m->nruns * RUN + wants * WANT;
}

bool scale_link_is_inside (const struct scale *s, uint32_t a, uint32_t b)
{
    return s->plan && plan_process (s->plan, a) == plan_process (s->plan, b);
}

/* Times of messages at one end, for one kind of link. */
struct carried {
    double heartbeat_us, lease_us, report_us, hello_us, other_us;
};

/* start_us includes the work of a hello inside a process. */
static struct carried carried_inside (const struct costs *c, const struct scale_transport *inside)
{
    return (struct carried){ .heartbeat_us = inside->heartbeat_us,
                             .lease_us = c->inside_us,
                             .report_us = inside->report_us,
                             .hello_us = c->inside_us,
                             .other_us = c->inside_us };
}

static struct carried carried_outside (const struct costs *c, double other_us)
{
    return (struct carried){ .heartbeat_us = c->heartbeat_us,
                             .lease_us = c->lease_us,
                             .report_us = c->report_us,
                             .hello_us = c->hello_us / 2,
                             .other_us = other_us };
}

/* The content of messages for leases and subleases takes the same time on each kind of link. */
double message_cost_us (const struct scale *s, const struct scale_message *m, double other_us)
{
    const struct costs *c = &s->config.costs;
    struct carried by = scale_link_is_inside (s, m->from, m->to) ? carried_inside (c, &s->inside)
                                                                 : carried_outside (c, other_us);

    switch (m->type) {
    case MSG_PING:
    case MSG_PONG:
        return by.heartbeat_us / 2; /* the other half is for the response */
    case MSG_LEASE:
        return by.lease_us + (double)(m->req.nwant + m->req.nback) * c->want_us;
    case MSG_GRANTS:
        return by.lease_us + (double)m->answer.ngrant * c->want_us;
    case MSG_WANT:
    case MSG_SHARE:
        return by.lease_us + c->want_us;
    case MSG_REPORT:
        return by.report_us;
    case MSG_HELLO:
    case MSG_JOINED:
        return by.hello_us;
    default:
        return by.other_us;
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

/* Over a link between processes. */
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
    if (scale_link_is_inside (s, m->from, m->to)) /* a queue in memory: read when the process has no other work */
        queue_push (&s->queue,
                    (struct scale_event){ .t_ns = from->busy_ns, .type = EV_MESSAGE, .rank = m->to, .with.p = m });
    else
        queue_push (&s->queue, leave (from, child, m));
}

/* The message is delivered when ZeroMQ's threads begin to run; their further work keeps a core busy, and does not delay
 * the message.
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
