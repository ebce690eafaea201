/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* life_ops.c - the callbacks of a node: answers, which are checked, and messages; and the requests that it holds */
#include <errno.h>

#include "sim/world.h"

/* --- requests of clients and children ------------------------------------------------------------------------- */

struct ask *ask_create (struct life *l, bool client, uint32_t count, fluid_t after)
{
    struct ask *a = must (calloc (1, sizeof (*a)));

    *a = (struct ask){ .next = l->asks, .client = client, .life = l->id, .count = count, .after = after };
    a->final = l->w->healed;
    a->asked_us = life_boot_us (l);
    a->truth_us = world_truth_us (l->w);
    a->paged_id = l->paged_id;
    life_note_bound (l);
    l->asks = a;
    return a;
}

void ask_destroy (struct life *l, struct ask *a)
{
    struct ask **link = &l->asks;

    while (*link && *link != a)
        link = &(*link)->next;
    if (!*link) {
        sim_check_fail (l->w->check, "a request of life %u was answered twice", (unsigned)l->id);
        return;
    }
    *link = a->next;
    free (a);
}

/* Check that a request is answered before its timeout. A pause of the life does not count. */
static void sim_check_time (struct life *l, const struct ask *a)
{
    uint64_t late_us = a->asked_us + (l->w->timeout_ms + BACKLOG_MS) * MS + 5 * MS;

    if (life_boot_us (l) > late_us && l->resumed_us <= a->asked_us)
        sim_check_fail (l->w->check, "life %u answers %llu us late", (unsigned)l->id,
                        (unsigned long long)(life_boot_us (l) - late_us));
}

static void sim_check_answer (struct world *w, struct life *l, const struct ask *a, const struct id_run *run,
                              size_t nruns)
{
    fluid_t *last_id = &l->client_last_id[a->client_number];
    uint64_t count = 0;

    if (nruns > 0 && run[0].first <= a->after)
        sim_check_fail (w->check, "an id is not above the one that the request named");
    if (nruns > 0 && run[0].first <= a->paged_id)
        sim_check_fail (w->check, "an id of life %u is not above the ids of its page", (unsigned)l->id);
    for (size_t i = 0; i < nruns; i++) {
        sim_check_issue (w->check, &run[i]);
        if (run[i].first <= *last_id)
            sim_check_fail (w->check, "ids of a client of life %u do not increase", (unsigned)l->id);
        *last_id = run[i].first + run[i].n - 1;
        count += run[i].n;
    }
    if (l->last_id < *last_id)
        l->last_id = *last_id;
    if (count != a->count)
        sim_check_fail (w->check, "a request for %u ids got %llu", (unsigned)a->count, (unsigned long long)count);
    w->result.answered++;
}

/* Check that ids that were made here and leave now are not below a watermark that a root has reported. */
static void sim_check_watermark (struct life *l, const struct id_run *run, size_t nruns)
{
    for (size_t i = 0; i < nruns; i++) {
        struct fluid_fields f = fluid_split (run[i].first);

        if (life_makes (l, &f) && f.timestamp_ms < l->w->watermark_ms && !life_may_be_late (l, &f))
            sim_check_fail (l->w->check, "life %u makes an id at %llu, below the watermark %llu", (unsigned)l->id,
                            (unsigned long long)f.timestamp_ms, (unsigned long long)l->w->watermark_ms);
    }
}

/* Check that ids that were made here are not older than their request, apart from the clock's bound. */
static void sim_check_age (struct life *l, const struct ask *a, const struct id_run *run, size_t nruns)
{
    life_note_bound (l);
    for (size_t i = 0; i < nruns; i++) {
        struct fluid_fields f = fluid_split (run[i].first);

        if (life_makes (l, &f) && (f.timestamp_ms + 1) * MS + l->bound_us < a->truth_us)
            sim_check_fail (l->w->check, "life %u makes an id at %llu for a request of %llu us", (unsigned)l->id,
                            (unsigned long long)f.timestamp_ms, (unsigned long long)a->truth_us);
    }
}

static void reply_op (void *arg, void *cookie, const struct id_run *run, size_t nruns)
{
    struct life *l = arg;
    struct ask *a = cookie;

    life_look_at_ranges (l);
    sim_check_watermark (l, run, nruns);
    sim_check_age (l, a, run, nruns);
    sim_check_time (l, a);
    if (a->client)
        sim_check_answer (l->w, l, a, run, nruns);
    else
        message_send (l->w, &(struct message){ .type = MSG_IDS,
                                               .from = l->id,
                                               .to = a->child,
                                               .link = a->link,
                                               .tag = a->tag,
                                               .run = (struct id_run *)run,
                                               .nruns = nruns });
    ask_destroy (l, a);
}

/* Check that EOVERFLOW is answered only after the end of the root's time. Notes the lead first, because this life may
 * be a root that has just started.
 */
static void sim_check_overflow (struct life *l)
{
    struct world *w = l->w;

    life_note_lead (l);
    if ((int64_t)w->t + w->ahead_us < (int64_t)(END_MS * MS))
        sim_check_fail (w->check, "a request fails with EOVERFLOW before the end of time");
}

static void fail_op (void *arg, void *cookie, int errnum, const char *text)
{
    struct life *l = arg;
    struct ask *a = cookie;

    sim_check_time (l, a);
    if (a->client)
        l->w->result.failed++;
    else
        message_send (l->w, &(struct message){ .type = MSG_ERROR,
                                               .from = l->id,
                                               .to = a->child,
                                               .link = a->link,
                                               .tag = a->tag,
                                               .count = (uint32_t)errnum });
    if (errnum == EOVERFLOW)
        sim_check_overflow (l);
    else if (a->client && a->final && errnum != EAGAIN
             && l->w->disk.horizon_ms < END_MS) /* at the end of time nothing is left to grant */
        sim_check_fail (l->w->check, "life %u of rank %u cannot be served although all faults are healed: %s",
                        (unsigned)l->id, (unsigned)l->rank, text ? text : "");
    ask_destroy (l, a);
}

static int forward_op (void *arg, uint32_t tag, uint32_t count, fluid_t after)
{
    struct life *l = arg;

    if (l->link == 0)
        return -1;
    message_send (l->w, &(struct message){ .type = MSG_BLOCK,
                                           .from = l->id,
                                           .to = l->parent,
                                           .link = l->link,
                                           .tag = tag,
                                           .count = count,
                                           .after = after });
    return 0;
}

static void cancel_op (void *arg)
{
    struct life *l = arg;

    if (l->link != 0)
        message_send (l->w, &(struct message){ .type = MSG_CANCEL, .from = l->id, .to = l->parent, .link = l->link });
}

static int lease_up_op (void *arg, uint32_t tag, const struct lease_request *req)
{
    struct life *l = arg;

    if (l->link == 0)
        return -1;
    if (tag != 0)
        l->tags[l->ntags++ % NTAGS] = tag;
    message_send (l->w,
                  &(struct message){
                      .type = MSG_LEASE, .from = l->id, .to = l->parent, .link = l->link, .tag = tag, .req = *req });
    return 0;
}

static void lease_reply_op (void *arg, void *cookie, const struct lease_answer *answer)
{
    struct life *l = arg;
    struct ask *a = cookie;

    for (size_t i = 0; i < answer->ngrant; i++)
        if (l->authority && answer->grant[i].hi_ms > l->w->disk.horizon_ms)
            sim_check_fail (l->w->check, "the root grants more than is on the disk");
    if (a->tag != 0)
        message_send (
            l->w,
            &(struct message){
                .type = MSG_GRANTS, .from = l->id, .to = a->child, .link = a->link, .tag = a->tag, .answer = *answer });
    ask_destroy (l, a);
}

static void store_op (void *arg, const struct lease_record *record)
{
    struct life *l = arg;

    if (record->horizon_ms > END_MS || record->watermark_ms > record->horizon_ms)
        sim_check_fail (l->w->check, "the root stores what it would refuse");
    l->storing = true;
    l->record = *record;
    world_later (l->w, 100 + world_below (l->w, l->w->disk_delay_us), EV_STORED, l->id, 0);
}

static void report_up_op (void *arg, const struct report *report)
{
    struct life *l = arg;

    if (l->link != 0)
        message_send (l->w,
                      &(struct message){
                          .type = MSG_REPORT, .from = l->id, .to = l->parent, .link = l->link, .report = *report });
}

/* The request is a promise not to use the rest, whether it arrives or not. */
static int share_up_op (void *arg, const struct share_want *want)
{
    struct life *l = arg;

    sim_check_return (l->w->check, l->id, want->end_ms);
    for (unsigned i = 0; i < NAREAS; i++)
        if (l->area[i].area.range.hi_ms > want->end_ms)
            l->area[i].area.range.hi_ms = want->end_ms;
    if (l->link == 0)
        return -1;
    message_send (l->w, &(struct message){
                            .type = MSG_WANT, .from = l->id, .to = l->parent, .link = l->link, .want = *want });
    return 0;
}

static void log_op (void *arg, int level, const char *text)
{
    world_say (((struct life *)arg)->w, arg, text);
}

static uint64_t now_op (void *arg)
{
    return life_boot_us (arg);
}

const struct node_ops life_ops = {
    .reply = reply_op,
    .fail = fail_op,
    .forward = forward_op,
    .cancel = cancel_op,
    .lease_up = lease_up_op,
    .lease_reply = lease_reply_op,
    .report_up = report_up_op,
    .log = log_op,
    .share_up = share_up_op,
    .now_us = now_op,
};

static void positions_op (void *arg, uint64_t now_us, struct report *all)
{
    node_positions (((struct life *)arg)->node, now_us, all);
}

const struct authority_ops life_root_ops = { store_op, positions_op, log_op };
