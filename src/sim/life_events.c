/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* life_events.c - the callbacks of a node: answers, which are checked, and messages; and the events of a life:
 * messages, clients, heartbeats, its disk, a pause
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "libutil/minmax.h"
#include "modules/fluid/lease/clock.h"
#include "sim/world.h"

/* --- requests of clients and children ------------------------------------------------------------------------- */

static struct ask *ask_create (struct life *l, bool client, uint32_t count, fluid_t after)
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

/* Check that a request is answered before its timeout. A pause of the life does not count as waiting. */
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

/* Check that ids that were made by this life, and leave it now, are not below a watermark that a root has reported. */
static void sim_check_watermark (struct life *l, const struct id_run *run, size_t nruns)
{
    for (size_t i = 0; i < nruns; i++) {
        struct fluid_fields f = fluid_split (run[i].first);

        if (life_makes (l, &f) && f.timestamp_ms < l->w->old_mark_ms && f.timestamp_ms > l->late_ms)
            sim_check_fail (l->w->check, "life %u makes an id at %llu, below the watermark %llu of a replaced root",
                            (unsigned)l->id, (unsigned long long)f.timestamp_ms, (unsigned long long)l->w->old_mark_ms);
        if (life_makes (l, &f) && f.timestamp_ms < l->w->watermark_ms && !life_may_be_late (l, &f))
            sim_check_fail (l->w->check, "life %u makes an id at %llu, below the watermark %llu", (unsigned)l->id,
                            (unsigned long long)f.timestamp_ms, (unsigned long long)l->w->watermark_ms);
    }
}

/* Check that ids that were made by this life are not older than their request, apart from the clock's bound. */
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

/* Send a message to the parent. Returns 0, or -1 if there is no link. */
static int send_up (struct life *l, struct message m)
{
    if (l->link == 0)
        return -1;
    m.from = l->id;
    m.to = l->parent;
    m.link = l->link;
    message_send (l->w, &m);
    return 0;
}

/* Send the answer to a child's request. */
static void send_down (struct life *l, const struct ask *a, struct message m)
{
    m.from = l->id;
    m.to = a->child;
    m.link = a->link;
    m.tag = a->tag;
    message_send (l->w, &m);
}

/* Note a box of a part. A new one is another source of ids; one that extends a former one replaces it. */
static void note_part (struct life *l, uint32_t from, const struct lease *lease)
{
    const struct box *box = &lease->box;

    sim_check_part (l->w->check, l->id, from, box);
    for (unsigned i = 0; i < l->nparts && i < NPARTS; i++) {
        struct life_part *p = &l->part[i];

        if (p->lease.box.generator == box->generator && p->lease.box.granules == box->granules
            && p->lease.box.range.lo_ms == box->range.lo_ms) {
            *p = (struct life_part){ *lease, p->made_ms, false };
            return;
        }
    }
    l->part[l->nparts++ % NPARTS] = (struct life_part){ *lease, 0, false };
}

/* Note the parts in the answer that is being processed. The node may make ids of them before it returns, so this is
 * called before these ids are checked, too.
 */
static void note_parts (struct life *l)
{
    if (node_stats (l->node)->parts_received == l->parts_noted)
        return;
    l->parts_noted = node_stats (l->node)->parts_received;
    for (unsigned i = 0; i < node_view (l->node).held->count; i++)
        note_part (l, l->granter, &node_view (l->node).held->lease[i]);
}

static void reply_op (void *arg, void *cookie, const struct id_run *run, size_t nruns)
{
    struct life *l = arg;
    struct ask *a = cookie;

    life_look_at_ranges (l);
    note_parts (l);
    sim_check_watermark (l, run, nruns);
    sim_check_age (l, a, run, nruns);
    sim_check_time (l, a);
    if (a->client)
        sim_check_answer (l->w, l, a, run, nruns);
    else
        send_down (l, a, (struct message){ .type = MSG_IDS, .run = (struct id_run *)run, .nruns = nruns });
    ask_destroy (l, a);
}

/* Check that EOVERFLOW is answered only when the root's time has ended. The lead of the roots is noted first, because
 * this life may be a root that has just started.
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
        send_down (l, a, (struct message){ .type = MSG_ERROR, .count = (uint32_t)errnum });
    if (errnum == EOVERFLOW)
        sim_check_overflow (l);
    else if (a->client && a->final && errnum != EAGAIN
             && l->w->disk.horizon_ms < END_MS) /* at the end of time no leases can be granted */
        sim_check_fail (l->w->check, "life %u of rank %u cannot be served although all faults are healed: %s",
                        (unsigned)l->id, (unsigned)l->rank, text ? text : "");
    ask_destroy (l, a);
}

static int forward_op (void *arg, uint32_t tag, uint32_t count, fluid_t after)
{
    return send_up (arg, (struct message){ .type = MSG_BLOCK, .tag = tag, .count = count, .after = after });
}

static void cancel_op (void *arg)
{
    (void)send_up (arg, (struct message){ .type = MSG_CANCEL });
}

/* A want promises not to use anything behind 'end_ms' that is not kept, whether it arrives or not. */
static void note_promise (struct life *l, const struct want *want)
{
    sim_check_return (l->w->check, l->id, want->end_ms, want->kept);
    for (unsigned i = 0, n = l->nparts < NPARTS ? l->nparts : NPARTS; i < n; i++) {
        struct life_part *p = &l->part[i];
        uint64_t kept = p->lease.box.granules & want->kept;

        if (p->lease.box.range.hi_ms <= want->end_ms || kept == p->lease.box.granules)
            continue;
        if (kept != 0) {
            struct life_part *rest = &l->part[l->nparts++ % NPARTS];

            *rest = *p;
            rest->lease.box.granules = kept;
            p->lease.box.granules &= ~kept;
        }
        p->lease.box.range.hi_ms = want->end_ms;
    }
}

static int lease_up_op (void *arg, uint32_t tag, const struct lease_request *req)
{
    struct life *l = arg;

    if (l->link != 0 && tag != 0)
        l->tags[l->ntags++ % NTAGS] = tag;
    if (req->is_part)
        note_promise (l, &req->want[0]);
    return send_up (l, (struct message){ .type = MSG_LEASE, .tag = tag, .req = *req });
}

static void lease_reply_op (void *arg, void *cookie, const struct lease_answer *answer)
{
    struct life *l = arg;
    struct ask *a = cookie;

    for (size_t i = 0; i < answer->ngrant; i++)
        if (l->authority && answer->grant[i].box.range.hi_ms > l->w->disk.horizon_ms)
            sim_check_fail (l->w->check, "the root grants more than is on the disk");
    if (a->tag != 0)
        send_down (l, a, (struct message){ .type = MSG_GRANTS, .answer = *answer });
    ask_destroy (l, a);
}

static void store_op (void *arg, const struct lease_record *record)
{
    struct life *l = arg;

    if (record->horizon_ms > END_MS || record->watermark_ms > record->horizon_ms)
        sim_check_fail (l->w->check, "the root stores what it would refuse");
    l->storing = true;
    l->record = *record;
    l->sent[l->serial % NSENT] = *record;
    world_later (l->w, 100 + world_below (l->w, l->w->disk_delay_us), l->w->standby ? EV_COMMIT : EV_STORED, l->id,
                 l->serial << 1);
}

static void report_up_op (void *arg, const struct report *report)
{
    (void)send_up (arg, (struct message){ .type = MSG_REPORT, .report = *report });
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
    .now_us = now_op,
};

static void positions_op (void *arg, uint64_t now_us, struct report *all)
{
    node_positions (((struct life *)arg)->node, now_us, all);
}

const struct authority_ops life_root_ops = { store_op, positions_op, log_op };

/* --- messages ----------------------------------------------------------------------------------------------------- */

static void on_block (struct life *l, const struct message *m)
{
    struct ask *a = ask_create (l, false, m->count, m->after);

    a->child = m->from;
    a->link = m->link;
    a->tag = m->tag;
    node_block (l->node, life_boot_us (l),
                &(struct node_request){ a, m->count, m->after, true, l->w->life[m->from]->uuid, false, false });
}

static void on_lease (struct life *l, const struct message *m)
{
    struct ask *a = ask_create (l, false, 0, 0);

    a->child = m->from;
    a->link = m->link;
    a->tag = m->tag;
    if (l->authority && !m->req.is_part) {
        struct lease_answer answer;

        authority_answer (l->authority, life_boot_us (l), &m->req, &answer);
        life_ops.lease_reply (l, a, &answer);
    }
    else if (node_lease_request (l->node, life_boot_us (l), a, &m->req) < 0) {
        if (a->tag != 0)
            send_down (l, a, (struct message){ .type = MSG_GRANTS, .count = (uint32_t)errno });
        ask_destroy (l, a);
    }
}

static void on_ping (struct life *l, const struct message *m)
{
    struct message pong = { .type = MSG_PONG, .from = l->id, .to = m->from, .link = m->link, .sample = m->sample };

    if (!node_clock (l->node, life_boot_us (l), &pong.sample.peer_received_us, &pong.sample.peer_bound_us))
        return;
    pong.sample.peer_sent_us = pong.sample.peer_received_us;
    message_send (l->w, &pong);
}

static void on_pong (struct life *l, const struct message *m)
{
    struct idt_clock_sample s = m->sample;

    s.received_us = life_boot_us (l);
    node_sample (l->node, life_boot_us (l), &s);
}

static void on_grants (struct life *l, const struct message *m)
{
    uint64_t boot = life_boot_us (l);

    l->granter = m->from;
    if (m->count != 0)
        node_lease_failed (l->node, boot, m->tag, (int)m->count);
    else
        node_lease_answered (l->node, boot, m->tag, &m->answer);
    note_parts (l);
}

/* Whether a message arrives: its link must still exist, and its receiver must live. */
static bool arrives (const struct world *w, const struct message *m)
{
    const struct life *from = w->life[m->from], *to = w->life[m->to];
    bool up = m->type == MSG_BLOCK || m->type == MSG_CANCEL || m->type == MSG_LEASE || m->type == MSG_PING
              || m->type == MSG_REPORT;
    const struct life *child = up ? from : to;

    /* the last messages of a child may arrive after its end */
    return to->alive && (child->link == m->link || (!from->alive && (m->type == MSG_LEASE || m->type == MSG_REPORT)));
}

static void on_message (struct life *l, const struct message *m)
{
    uint64_t boot = life_boot_us (l);

    if (!arrives (l->w, m))
        return;
    switch (m->type) {
    case MSG_BLOCK:
        on_block (l, m);
        break;
    case MSG_CANCEL:
        life_forget_child (l, m->from);
        break;
    case MSG_LEASE:
        on_lease (l, m);
        break;
    case MSG_PING:
        on_ping (l, m);
        break;
    case MSG_PONG:
        on_pong (l, m);
        break;
    case MSG_REPORT:
        node_report (l->node, boot, &m->report);
        break;
    case MSG_IDS:
        node_forwarded (l->node, boot, m->tag, m->run, m->nruns);
        break;
    case MSG_ERROR:
        node_forward_failed (l->node, boot, m->tag, (int)m->count);
        break;
    case MSG_GRANTS:
        on_grants (l, m);
        break;
    }
}

static uint32_t some_count (struct world *w)
{
    switch (world_below (w, 8)) {
    case 0:
        return 1 + (uint32_t)world_below (w, 5000);
    case 1:
        return 1024;
    default:
        return 1 + (uint32_t)world_below (w, 20);
    }
}

/* Return an id that was never made, because a client may name any id. */
static fluid_t lie (struct life *l)
{
    static const uint64_t reaches_ms[] = { 150, 5000, UINT64_C (946080000000) };
    uint64_t ms = l->last_reading / 1000 + 1 + world_below (l->w, reaches_ms[world_below (l->w, 3)]);

    return (ms < FLUID_TIMESTAMP_MAX ? ms : FLUID_TIMESTAMP_MAX) << 24;
}

static fluid_t some_after (struct life *l)
{
    struct world *w = l->w;
    fluid_t after = world_chance (w, 300) ? l->last_id : 0;

    if (world_chance (w, 20) && w->nlives > 1) { /* an id that another life made */
        fluid_t other = w->life[1 + world_below (w, w->nlives)]->last_id;
        after = other > after ? other : after;
    }
    return !w->healing && world_chance (w, 10) ? lie (l) : after;
}

static void ask (struct life *l, uint32_t client, uint32_t count, fluid_t after)
{
    char name[16];
    struct ask *a = ask_create (l, true, count, after);

    a->client_number = client;
    snprintf (name, sizeof (name), "client %u", (unsigned)client);
    l->w->result.requests++;
    node_block (l->node, life_boot_us (l), &(struct node_request){ a, count, after, false, name, false, false });
}

/* A module gets time. What it gets must not overlap with any other, even if modules were restarted. */
static void grant_time (struct life *l)
{
    struct world *w = l->w;
    struct time_grant time;

    if (node_grant_time (l->node, life_boot_us (l), l->uuid, &time) < 0)
        return;
    sim_check_hold (w->times, l->rank, ++w->ntimes, time.lo_ms, time.hi_ms);
    if (world_chance (w, 500)) {
        uint64_t end_ms = time.lo_ms + world_below (w, time.hi_ms - time.lo_ms);

        node_return_time (l->node, life_boot_us (l), l->uuid, end_ms);
        sim_check_close (w->times, l->rank, w->ntimes, end_ms);
    }
    if (sim_check_violation (w->times))
        sim_check_fail (w->check, "time of a module: %s", sim_check_violation (w->times));
}

/* A client requests ids. The last client sometimes requests very many. */
void life_ask (struct life *l)
{
    struct world *w = l->w;

    if (!w->healing && world_chance (w, 3))
        for (int i = 0; i < 5; i++)
            ask (l, NCLIENTS - 1, 20000, 0);
    if (world_chance (w, 30))
        grant_time (l);
    ask (l, (uint32_t)world_below (w, NCLIENTS), some_count (w), some_after (l));
    if (!w->healing)
        world_later (w, 200 + world_below (w, world_chance (w, 300) ? 300 : 8 * MS), EV_CLIENT, l->id, 0);
}

/* A replaced root does not wait for holders that report to the new root. When their use of its boxes is over, it
 * reports a watermark above ids that they have made, and that may not have left them yet.
 */
static void note_old_mark (struct world *w, uint64_t ms)
{
    if (ms <= w->old_mark_ms)
        return;
    w->old_mark_ms = ms;
    for (uint32_t i = 1; i <= w->nlives; i++)
        w->life[i]->late_ms = max_u64 (w->life[i]->late_ms, node_view (w->life[i]->node).newest_ms);
}

/* Request the watermark of a root. After a crash it may be lower than before. */
void life_ask_watermark (struct life *l)
{
    struct world *w = l->w;
    uint64_t ms;

    if (life_is_replaced (l) && authority_news (l->authority).fenced_by_foreign)
        return; /* a child has leases of the new root */
    if (!authority_watermark (l->authority, life_boot_us (l), &ms))
        sim_check_fail (w->check, "the root cannot determine a watermark");
    else if (ms > w->disk.horizon_ms)
        sim_check_fail (w->check, "the watermark is above what is on the disk");
    else if (life_is_replaced (l))
        note_old_mark (w, ms);
    else if (ms > w->watermark_ms) {
        w->watermark_ms = ms;
        w->result.watermarks++;
    }
}

static void on_heartbeat (struct life *l, bool once)
{
    struct world *w = l->w;

    if (l->authority) {
        authority_wall (l->authority, life_boot_us (l), world_wall_us (w));
        node_tick (l->node, life_boot_us (l));
        life_ask_watermark (l);
    }
    else
        (void)send_up (l, (struct message){ .type = MSG_PING, .sample = { .sent_us = life_boot_us (l) } });
    if (!once)
        world_later (w, 30 * MS, EV_HEARTBEAT, l->id, 0);
    world_check_bounds (w);
}

/* A write arrives at the shared store, also if its sender is dead. The last bit of 'n' is set for a copy that arrives
 * again. If no answer comes, the sender asks until it knows whether the write is done.
 */
void life_commit (struct life *l, const struct sim_event *e)
{
    struct world *w = l->w;
    uint64_t serial = e->n >> 1, delay_us = 100 + world_below (w, w->disk_delay_us);
    bool unsure = !w->healing && world_chance (w, w->disk_failing ? 700 : 50);

    if (unsure && world_chance (w, 500))
        world_later (w, world_below (w, 2 * w->lease_ms * MS), EV_COMMIT, l->id, e->n | 1);
    else if (w->config->unfenced || (l->fence == w->fence && serial == w->serial)) {
        w->disk = l->sent[serial % NSENT];
        w->serial = serial + 1;
    }
    if (!l->alive || (e->n & 1))
        return;
    if (life_is_replaced (l) && !w->config->unfenced)
        world_later (w, delay_us, EV_STORED, l->id, 0);
    else if (unsure || w->serial <= serial)
        world_later (w, delay_us, EV_COMMIT, l->id, e->n);
    else
        world_later (w, delay_us, EV_STORED, l->id, 1);
}

static void shared_stored (struct life *l, bool done)
{
    l->storing = false;
    if (done) {
        l->serial++;
        authority_stored (l->authority, life_boot_us (l), l->record.horizon_ms);
    }
    else
        authority_store_failed (l->authority, life_boot_us (l));
    node_tick (l->node, life_boot_us (l));
}

/* A commit has ended. If the disk fails, the root is notified of a failure, although the record may be stored. */
void life_stored (struct life *l, const struct sim_event *e)
{
    struct world *w = l->w;

    if (!l->alive)
        return;
    if (w->standby) {
        shared_stored (l, e->n != 0);
        return;
    }
    l->storing = false;
    if (!w->disk_failing || world_chance (w, 300))
        w->disk = l->record;
    if (w->disk_failing)
        authority_store_failed (l->authority, life_boot_us (l));
    else
        authority_stored (l->authority, life_boot_us (l), l->record.horizon_ms);
    node_tick (l->node, life_boot_us (l));
}

void life_wait (struct life *l, const struct sim_event *e)
{
    if (l->nwaiting == l->waiting_size) {
        l->waiting_size = l->waiting_size ? 2 * l->waiting_size : 16;
        l->waiting = must (realloc (l->waiting, l->waiting_size * sizeof (l->waiting[0])));
    }
    l->waiting[l->nwaiting++] = *e;
}

void life_clocks_went (struct life *l, uint64_t boot_us, uint64_t raw_us, uint64_t wall_us)
{
    struct clock_check_reading at = { .boot_us = 1, .raw_us = 1, .wall_us = 1 };
    struct clock_check witness = { .known = false };
    int64_t sure_us;

    l->boot_offset += boot_us;
    l->resumed_us = life_boot_us (l); /* requests seem to have waited for all of the missed time */
    clock_check_look (&witness, &at, &sure_us);
    at = (struct clock_check_reading){ .boot_us = 1 + boot_us, .raw_us = 1 + raw_us, .wall_us = 1 + wall_us };
    int64_t off_us = clock_check_look (&witness, &at, &sure_us);
    if (l->authority) {
        authority_lost_time (l->authority, life_boot_us (l), off_us, sure_us);
        node_tick (l->node, life_boot_us (l));
    }
    else
        node_lost_time (l->node, life_boot_us (l), off_us);
    for (unsigned i = 0; off_us > 0 && i < NPARTS; i++) /* parts are older by the missed time */
        l->part[i].lease.until_us -= min_u64 (l->part[i].lease.until_us, (uint64_t)off_us);
    life_look (l);
}

void life_resume (struct life *l)
{
    l->paused = false;
    if (l->misses && l->w->t - l->paused_t >= SEEN_US) {
        uint64_t us = l->w->t - l->paused_t;

        l->boot_offset -= us + (uint64_t)((int64_t)(us / 1000) * l->boot_ppm / 1000);
        life_clocks_went (l, 2, us, world_chance (l->w, 500) ? us : 0);
    }
    l->misses = false;
    l->resumed_us = life_boot_us (l);
    world_say (l->w, l, "continues");
    for (size_t i = 0; i < l->nwaiting; i++) { /* all at this moment, in their order */
        l->waiting[i].t = l->w->t;
        world_push (l->w, l->waiting[i]);
    }
    l->nwaiting = 0;
}

static void life_tick (struct life *l)
{
    if (l->authority)
        authority_tick (l->authority, life_boot_us (l));
    node_tick (l->node, life_boot_us (l));
}

void life_event (struct life *l, const struct sim_event *e)
{
    switch (e->type) {
    case EV_TICK:
        if (e->t >= l->tick_t)
            l->tick_t = UINT64_MAX;
        life_tick (l);
        break;
    case EV_MESSAGE:
        on_message (l, e->msg);
        break;
    case EV_ATTACH:
        if (l->link == 0)
            life_attach (l);
        break;
    case EV_LOST:
        if (l->link == e->n)
            life_lose (l);
        break;
    case EV_HEARTBEAT:
        on_heartbeat (l, e->n != 0);
        break;
    case EV_CLIENT:
        life_ask (l);
        break;
    default:
        assert (false);
    }
    life_look (l);
}
