/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* arrive.c - messages that arrive at a rank, from its children and its parent, and the checks that follow */
#include <string.h>

#include "libutil/minmax.h"
#include "sim/scale/private.h"

/* --- after each call into a node -------------------------------------------------------------------------------- */

void rank_check_ranges (struct scale_rank *r)
{
    const struct lessee *h = node_lessee (r->node);

    if (!r->s->check || !node_owns_generator (r->node))
        return;
    for (unsigned i = 0; i < h->nranges; i++)
        sim_check_hold (r->s->check, h->generator, rank_life (r), h->range[i].lo_ms, h->range[i].hi_ms);
}

static void note_active (struct scale_rank *r)
{
    struct scale *s = r->s;

    if (r->activated || node_state (r->node) != NODE_ACTIVE)
        return;
    r->activated = true;
    s->nactive++;
    if (s->phase == PHASE_COLD)
        samples_add (&s->activated, r->busy_ns);
    scale_look_at_start (s);
}

void rank_look (struct scale_rank *r)
{
    uint64_t due_us = node_deadline (r->node);

    if (rank_number (r) == 0)
        due_us = min_u64 (due_us, authority_deadline (r->s->authority));
    rank_check_ranges (r);
    note_active (r);
    if (due_us == UINT64_MAX)
        return;
    uint64_t at_ns = rank_when_ns (r, due_us);
    if (at_ns < r->tick_ns) {
        r->tick_ns = at_ns;
        scale_at (r->s, at_ns, EV_TICK, rank_number (r), at_ns);
    }
}

void rank_tick (struct scale_rank *r)
{
    r->tick_ns = UINT64_MAX;
    if (!r->s->plan) /* with a plan inside_report_us contains it */
        rank_spend (r, r->s->config.costs.tick_us);
    if (rank_number (r) == 0)
        authority_tick (r->s->authority, rank_boot_us (r));
    node_tick (r->node, rank_boot_us (r));
    rank_look (r);
}

void rank_ping (struct scale_rank *r)
{
    scale_link_send (r, &(struct scale_message){
                            .type = MSG_PING, .to = r->parent, .sample = { .sent_us = rank_boot_us (r) } });
}

/* --- messages ----------------------------------------------------------------------------------------------------- */

static struct scale_ask *child_ask (struct scale_rank *r, const struct scale_message *m)
{
    struct scale_ask *a = scale_ask_create (r);

    a->child = m->from;
    a->link = m->link;
    a->tag = m->tag;
    a->count = m->count;
    a->at_node = true;
    return a;
}

static void on_block (struct scale_rank *r, const struct scale_message *m)
{
    const char *uuid = node_config (r->s->rank[m->from].node)->incarnation;

    if (scale_is_measured (r->s) && rank_number (r) == 0)
        r->s->result.root_asked++;
    node_block (r->node, rank_boot_us (r),
                &(struct node_request){ child_ask (r, m), m->count, m->after, true, uuid, false, false });
}

static void root_lease (struct scale_rank *r, const struct scale_message *m)
{
    struct scale *s = r->s;
    struct lease_answer answer;

    if (s->phase == PHASE_COLD) {
        s->result.root_leases++;
        s->cold_root_wants += m->req.nwant;
    }
    authority_answer (s->authority, rank_boot_us (r), &m->req, &answer);
    rank_ops.lease_reply (r, child_ask (r, m), &answer);
    node_tick (r->node, rank_boot_us (r));
}

static void on_lease (struct scale_rank *r, const struct scale_message *m)
{
    if (rank_number (r) == 0)
        root_lease (r, m);
    else
        node_lease_request (r->node, rank_boot_us (r), child_ask (r, m), &m->req);
}

static void on_ping (struct scale_rank *r, const struct scale_message *m)
{
    struct scale_message pong = { .type = MSG_PONG, .to = m->from, .sample = m->sample };

    if (node_clock (r->node, rank_boot_us (r), &pong.sample.peer_received_us, &pong.sample.peer_bound_us))
        pong.sample.peer_sent_us = pong.sample.peer_received_us;
    scale_link_send (r, &pong);
}

static void on_pong (struct scale_rank *r, const struct scale_message *m)
{
    struct idt_clock_sample sample = m->sample;

    sample.received_us = rank_boot_us (r);
    if (sample.peer_received_us > 0)
        node_sample (r->node, rank_boot_us (r), &sample);
}

static void on_answer (struct scale_rank *r, const struct scale_message *m)
{
    if (r->under_way > 0)
        r->under_way--;
    if (m->type == MSG_IDS)
        node_forwarded (r->node, rank_boot_us (r), m->tag, m->run, m->nruns);
    else
        node_forward_failed (r->node, rank_boot_us (r), m->tag, (int)m->count);
}

static void on_grants (struct scale_rank *r, const struct scale_message *m)
{
    struct tags *t = &r->tags;
    uint32_t i = 0;

    while (i < t->count && t->tag[i] != m->tag)
        i++;
    if (i < t->count)
        memmove (&t->tag[i], &t->tag[i + 1], (--t->count - i) * sizeof (t->tag[0]));
    node_lease_answered (r->node, rank_boot_us (r), m->tag, &m->answer);
}

/* A sublease is not checked when it is granted, but by the ids that are made of it. */
static void on_want (struct scale_rank *r, const struct scale_message *m)
{
    struct scale_message answer = { .type = MSG_SHARE, .to = m->from };
    uint64_t retry_ms = 0;
    int n = node_share (r->node, rank_boot_us (r), &m->want, &answer.share, &retry_ms);

    answer.has_share = n == 1;
    answer.count = (uint32_t)retry_ms;
    if (m->want.size > 0)
        scale_link_send (r, &answer);
}

static void note_area (struct scale_rank *r, uint32_t from)
{
    const struct borrower *b = node_borrower (r->node);

    if (r->s->check && b->nareas > 0)
        sim_check_borrow (r->s->check, rank_life (r), from, &b->area[b->nareas - 1]);
}

static void on_share (struct scale_rank *r, const struct scale_message *m)
{
    uint64_t borrowed = node_stats (r->node)->borrowed;

    r->wants_share = false;
    node_share_answered (r->node, rank_boot_us (r), m->has_share ? &m->share : NULL, m->count);
    if (node_stats (r->node)->borrowed > borrowed)
        note_area (r, rank_life (&r->s->rank[m->from]));
}

static bool arrives (const struct scale *s, const struct scale_rank *r, const struct scale_message *m)
{
    const struct scale_rank *child = message_goes_up (m->type) ? &s->rank[m->from] : r;

    return r->node && child->node && child->link == m->link;
}

static void take (struct scale_rank *r, const struct scale_message *m)
{
    switch (m->type) {
    case MSG_BLOCK:
        on_block (r, m);
        break;
    case MSG_CANCEL:
        rank_cancel_child (r, m->from, true);
        break;
    case MSG_LEASE:
        on_lease (r, m);
        break;
    case MSG_REPORT:
        node_report (r->node, rank_boot_us (r), &m->report);
        break;
    case MSG_WANT:
        on_want (r, m);
        break;
    case MSG_SHARE:
        on_share (r, m);
        break;
    case MSG_PING:
        on_ping (r, m);
        break;
    case MSG_HELLO:
        rank_hello (r, m);
        break;
    case MSG_PONG:
        on_pong (r, m);
        break;
    case MSG_GRANTS:
        on_grants (r, m);
        break;
    case MSG_JOINED:
        rank_joined (r, m);
        break;
    default:
        on_answer (r, m);
    }
}

void rank_message (struct scale_rank *r, const struct scale_message *m)
{
    if (!arrives (r->s, r, m))
        return;
    if (scale_is_measured (r->s) && message_goes_up (m->type))
        r->received++;
    rank_spend (r, message_cost_us (r->s, m, r->s->config.costs.receive_us));
    take (r, m);
    rank_look (r);
}
