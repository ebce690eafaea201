/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ops.c - the callbacks of a node: answers and messages; and the requests that it holds */
#include <errno.h>
#include <stdlib.h>

#include "sim/scale/private.h"

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

    rank_check_ranges (r);
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

static int forward_op (void *arg, uint32_t tag, uint32_t count, fluid_t after)
{
    struct scale_rank *r = arg;

    if (r->place != PLACE_UP)
        return -1;
    scale_link_send (r, &(struct scale_message){
                            .type = MSG_BLOCK, .to = r->parent, .tag = tag, .count = count, .after = after });
    r->under_way++;
    if (r->s->result.most_under_way < r->under_way)
        r->s->result.most_under_way = r->under_way;
    return 0;
}

static void cancel_op (void *arg)
{
    struct scale_rank *r = arg;

    if (r->place == PLACE_UP)
        scale_link_send (r, &(struct scale_message){ .type = MSG_CANCEL, .to = r->parent });
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

    if (r->place != PLACE_UP)
        return -1;
    if (tag != 0)
        note_tag (&r->tags, tag);
    scale_link_send (r, &(struct scale_message){ .type = MSG_LEASE, .to = r->parent, .tag = tag, .req = *req });
    return 0;
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
    struct scale_rank *r = arg;

    if (r->place == PLACE_UP)
        scale_link_send (r, &(struct scale_message){ .type = MSG_REPORT, .to = r->parent, .report = *report });
}

/* The request is a promise not to use the rest, whether it arrives or not. */
static int share_up_op (void *arg, const struct share_want *want)
{
    struct scale_rank *r = arg;

    if (r->s->check)
        sim_check_return (r->s->check, rank_life (r), want->end_ms);
    if (r->place != PLACE_UP)
        return -1;
    r->wants_share = r->wants_share || want->size > 0;
    scale_link_send (r, &(struct scale_message){ .type = MSG_WANT, .to = r->parent, .want = *want });
    return 0;
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
    .share_up = share_up_op,
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
