/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rank.c - the node of a rank: messages that arrive, the callbacks of the node, the requests that it holds, and checks
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/minmax.h"
#include "sim/scale/private.h"

/* --- after each call into a node -------------------------------------------------------------------------------- */

static void check_ranges (struct scale_rank *r)
{
    const struct held *h = node_view (r->node).held;

    if (!r->s->check || !node_view (r->node).owner)
        return;
    for (unsigned i = 0; i < h->count; i++)
        sim_check_hold (r->s->check, rank_number (r), rank_life (r), h->lease[i].box.range.lo_ms,
                        h->lease[i].box.range.hi_ms);
}

static void note_active (struct scale_rank *r)
{
    struct scale *s = r->s;

    if (r->activated || node_view (r->node).state != NODE_ACTIVE)
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
    check_ranges (r);
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
    if (!r->s->plan) /* with a plan, inside_report_us contains this time */
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

/* --- requests of clients and children ------------------------------------------------------------------------- */

struct scale_ask *scale_ask_create (struct scale_rank *r)
{
    struct scale *s = r->s;
    struct scale_ask *a = s->spare_asks;

    if (a)
        s->spare_asks = a->next;
    else
        a = must (malloc (sizeof (*a)));
    *a = (struct scale_ask){ .next = r->asks, .rank = rank_number (r), .life = r->life };
    if (r->asks)
        r->asks->prev = a;
    r->asks = a;
    return a;
}

void ask_free (struct scale *s, struct scale_ask *a)
{
    if (a->prev)
        a->prev->next = a->next;
    else
        s->rank[a->rank].asks = a->next;
    if (a->next)
        a->next->prev = a->prev;
    a->next = s->spare_asks;
    s->spare_asks = a;
}

struct scale_gone {
    struct scale_rank *r;
    uint32_t child;
    bool answer;
};

static void answer_error (struct scale_rank *r, const struct scale_ask *a, int errnum)
{
    scale_link_send (r, &(struct scale_message){
                            .type = MSG_ERROR, .to = a->child, .tag = a->tag, .count = (uint32_t)errnum });
}

static bool gone_cb (void *cookie, void *arg)
{
    struct scale_gone *gone = arg;
    struct scale_ask *a = cookie;

    if (a->client || a->child != gone->child)
        return false;
    if (gone->answer)
        answer_error (gone->r, a, ECANCELED);
    ask_free (gone->r->s, a);
    return true;
}

void rank_cancel_child (struct scale_rank *r, uint32_t child, bool answer)
{
    node_cancel (r->node, rank_boot_us (r), gone_cb, &(struct scale_gone){ r, child, answer });
}

/* --- ids -------------------------------------------------------------------------------------------------------- */

static bool is_linked (const struct scale_rank *r, const struct scale_ask *a)
{
    return r->s->rank[a->child].link == a->link;
}

static void judge (struct scale_rank *r, const struct scale_ask *a, const struct id_run *run, size_t nruns)
{
    struct scale *s = r->s;
    uint64_t count = 0;

    check_ranges (r);
    for (size_t i = 0; i < nruns; i++) {
        count += run[i].n;
        if (s->check)
            sim_check_issue (s->check, &run[i]);
    }
    if (count != a->count)
        scale_fail (s, "an answer has another number of ids than was requested", a->rank);
    s->result.ids += count;
}

static void reply_op (void *arg, void *cookie, const struct id_run *run, size_t nruns)
{
    struct scale_rank *r = arg;
    struct scale_ask *a = cookie;

    if (a->client) {
        judge (r, a, run, nruns);
        load_answer (r->s, a, true);
        return;
    }
    if (is_linked (r, a))
        scale_link_send (
            r, &(struct scale_message){
                   .type = MSG_IDS, .to = a->child, .tag = a->tag, .run = (struct id_run *)run, .nruns = nruns });
    ask_free (r->s, a);
}

static void fail_op (void *arg, void *cookie, int errnum, const char *text)
{
    struct scale_rank *r = arg;
    struct scale_ask *a = cookie;

    if (a->client) {
        load_answer (r->s, a, false);
        return;
    }
    if (is_linked (r, a))
        answer_error (r, a, errnum);
    ask_free (r->s, a);
}

/* Send a message to the parent. Returns 0, or -1 if there is no link. */
static int send_up (struct scale_rank *r, struct scale_message m)
{
    if (r->place != PLACE_UP)
        return -1;
    m.to = r->parent;
    scale_link_send (r, &m);
    return 0;
}

static int forward_op (void *arg, uint32_t tag, uint32_t count, fluid_t after)
{
    struct scale_rank *r = arg;

    if (send_up (r, (struct scale_message){ .type = MSG_BLOCK, .tag = tag, .count = count, .after = after }) < 0)
        return -1;
    r->under_way++;
    if (r->s->result.most_under_way < r->under_way)
        r->s->result.most_under_way = r->under_way;
    return 0;
}

static void cancel_op (void *arg)
{
    (void)send_up (arg, (struct scale_message){ .type = MSG_CANCEL });
}

/* --- leases ------------------------------------------------------------------------------------------------------- */

static void note_tag (struct tags *t, uint32_t tag)
{
    if (t->count == t->size) {
        t->size = t->size ? 2 * t->size : 2;
        t->tag = must (realloc (t->tag, t->size * sizeof (t->tag[0])));
    }
    t->tag[t->count++] = tag;
}

static int lease_up_op (void *arg, uint32_t tag, const struct lease_request *req)
{
    struct scale_rank *r = arg;

    if (r->place == PLACE_UP && tag != 0)
        note_tag (&r->tags, tag);
    if (req->is_part && r->s->check) /* it promises not to use anything behind 'end_ms', whether it arrives or not */
        sim_check_return (r->s->check, rank_life (r), req->want[0].end_ms, req->want[0].kept);
    return send_up (r, (struct scale_message){ .type = MSG_LEASE, .tag = tag, .req = *req });
}

static void lease_reply_op (void *arg, void *cookie, const struct lease_answer *answer)
{
    struct scale_rank *r = arg;
    struct scale_ask *a = cookie;

    if (a->tag != 0 && is_linked (r, a))
        scale_link_send (r, &(struct scale_message){
                                .type = MSG_GRANTS, .to = a->child, .tag = a->tag, .answer = *answer });
    ask_free (r->s, a);
}

static void report_up_op (void *arg, const struct report *report)
{
    (void)send_up (arg, (struct scale_message){ .type = MSG_REPORT, .report = *report });
}

static void log_op (void *arg, int level, const char *text)
{
}

const struct node_ops rank_ops = {
    .reply = reply_op,
    .fail = fail_op,
    .forward = forward_op,
    .cancel = cancel_op,
    .lease_up = lease_up_op,
    .lease_reply = lease_reply_op,
    .report_up = report_up_op,
    .log = log_op,
};

/* --- rank 0's authority ------------------------------------------------------------------------------------------ */

static void store_op (void *arg, const struct lease_record *record)
{
    struct scale_rank *r = arg;
    struct scale *s = r->s;

    s->storing = *record;
    s->stores++;
    scale_at (s, r->busy_ns + (uint64_t)(s->config.costs.store_ms * 1e6), EV_STORED, 0, r->life);
}

static void positions_op (void *arg, uint64_t now_us, struct report *all)
{
    node_positions (((struct scale_rank *)arg)->node, now_us, all);
}

const struct authority_ops root_ops = { store_op, positions_op, log_op };

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
    const char *uuid = node_view (r->s->rank[m->from].node).config->incarnation;

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
    if (rank_number (r) == 0 && !m->req.is_part) {
        root_lease (r, m);
        return;
    }
    struct scale_ask *a = child_ask (r, m);
    if (node_lease_request (r->node, rank_boot_us (r), a, &m->req) == 0)
        return;
    if (a->tag != 0)
        scale_link_send (r, &(struct scale_message){
                                .type = MSG_GRANTS, .to = m->from, .tag = m->tag, .count = (uint32_t)errno });
    ask_free (r->s, a);
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

/* A part is not checked when it is granted, but when it is received. The ids that are made of it are checked, too. */
static void check_part (struct scale_rank *r, uint32_t from)
{
    const struct held *h = node_view (r->node).held;

    for (unsigned i = 0; r->s->check && i < h->count; i++)
        sim_check_part (r->s->check, rank_life (r), from, &h->lease[i].box);
}

static void on_grants (struct scale_rank *r, const struct scale_message *m)
{
    struct tags *t = &r->tags;
    uint32_t i = 0;

    while (i < t->count && t->tag[i] != m->tag)
        i++;
    if (i < t->count)
        memmove (&t->tag[i], &t->tag[i + 1], (--t->count - i) * sizeof (t->tag[0]));
    uint64_t parts = node_stats (r->node)->parts_received;
    if (m->count != 0)
        node_lease_failed (r->node, rank_boot_us (r), m->tag, (int)m->count);
    else
        node_lease_answered (r->node, rank_boot_us (r), m->tag, &m->answer);
    if (node_stats (r->node)->parts_received > parts)
        check_part (r, rank_life (&r->s->rank[m->from]));
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
