/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* life.c - one process of a broker: its clocks, its start and end, its links, and the promises that it must keep at any
 * time
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/minmax.h"
#include "modules/fluid/node/node.h"
#include "sim/world.h"

#define ASTRAY_MS 200 /* largest difference between the clocks of two brokers */

/* --- lives -------------------------------------------------------------------------------------------------- */

uint64_t life_boot_us (const struct life *l)
{
    return l->boot_offset + l->w->t + (uint64_t)((int64_t)(l->w->t / 1000) * l->boot_ppm / 1000);
}

int64_t world_wall_us (const struct world *w)
{
    return EPOCH_MS * 1000 + (int64_t)w->t + w->wall_offset_us;
}

void life_look_at_ranges (struct life *l)
{
    struct world *w = l->w;
    const struct held *h = node_view (l->node).held;
    const struct lanes *lanes = node_view (l->node).lanes;

    for (unsigned i = 0; node_view (l->node).owner && i < h->count; i++) {
        const struct range *range = &h->lease[i].box.range;

        sim_check_hold (w->check, l->rank, l->id, range->lo_ms, range->hi_ms);
        for (uint32_t lane = 0; lane < lanes->count; lane++)
            sim_check_hold (w->check, lanes_generator (lanes, lane), l->id, range->lo_ms, range->hi_ms);
        if (l->authority && range->hi_ms > w->disk.horizon_ms)
            sim_check_fail (w->check, "the root holds more than is on the disk");
    }
}

static bool is_of (const struct box *a, const struct fluid_fields *f)
{
    return a->generator == f->generator && (a->granules >> f->sequence / FLUID_GRANULE & 1)
           && f->timestamp_ms >= a->range.lo_ms && f->timestamp_ms < a->range.hi_ms;
}

bool life_makes (const struct life *l, const struct fluid_fields *f)
{
    if (node_view (l->node).owner)
        return f->generator == l->rank
               || (lanes_own (node_view (l->node).lanes, f->generator)
                   && f->generator % l->w->nranks
                          == l->rank); /* size may be wrong, so check that the lane is this rank's */
    for (unsigned i = 0; i < l->nparts && i < NPARTS; i++)
        if (is_of (&l->part[i].lease.box, f))
            return true;
    return false;
}

static bool is_same (const struct box *a, const struct box *b)
{
    return a->generator == b->generator && a->granules == b->granules && a->range.lo_ms == b->range.lo_ms;
}

/* Whether a part can no longer be used. If the clock missed time, the node ends its use earlier than the grant says. */
static bool is_over (const struct life *l, const struct lease *lease)
{
    const struct held *h = node_view (l->node).held;
    uint64_t until_us = lease->until_us;

    for (unsigned i = 0; i < h->count; i++)
        if (is_same (&h->lease[i].box, &lease->box))
            until_us = min_u64 (until_us, h->lease[i].until_us);
    return life_boot_us (l) >= until_us;
}

/* Whether an id of a part may leave this life although it is below a watermark. If two parts contain the id, either may
 * be its source.
 */
static bool part_may_be_late (const struct life *l, const struct fluid_fields *f)
{
    for (unsigned i = 0; i < l->nparts && i < NPARTS; i++) {
        const struct life_part *a = &l->part[i];

        if (is_of (&a->lease.box, f)
            && f->timestamp_ms <= (is_over (l, &a->lease) && !a->over ? l->cursor_ms : a->made_ms))
            return true;
    }
    return false;
}

bool life_may_be_late (const struct life *l, const struct fluid_fields *f)
{
    uint64_t boot = life_boot_us (l);
    bool waited_for = boot < l->until_us && boot < node_view (l->node).held->counted_us;

    if (!node_view (l->node).owner)
        return part_may_be_late (l, f);
    return f->timestamp_ms <= (waited_for ? l->made_ms : l->cursor_ms);
}

static void note_parts (struct life *l)
{
    for (unsigned i = 0; i < l->nparts && i < NPARTS; i++)
        if (!l->part[i].over && is_over (l, &l->part[i].lease)) {
            l->part[i].made_ms = l->cursor_ms;
            l->part[i].over = true;
        }
}

/* When the time of use of a life or part is over, the watermark no longer waits for it. But ids that the life made
 * before for a request that is not complete yet may still leave. So note the newest of them.
 */
static void note_use (struct life *l)
{
    if (life_boot_us (l) >= l->until_us)
        l->made_ms = l->cursor_ms;
    note_parts (l);
    l->until_us = node_view (l->node).held->counted_us;
    l->cursor_ms = node_view (l->node).newest_ms;
}

/* Return 0 if the node is not sure of the time: it reports no bound then. */
uint64_t life_bound_us (const struct life *l)
{
    return node_view (l->node).sure_of_time ? clock_bound (node_view (l->node).clock, life_boot_us (l)) : 0;
}

void life_note_bound (struct life *l)
{
    l->bound_us = max_u64 (l->bound_us, life_bound_us (l));
}

void life_note_lead (struct life *l)
{
    if (!l->authority || !node_view (l->node).clock->known)
        return;
    int64_t ahead = (int64_t)(clock_read (node_view (l->node).clock, life_boot_us (l)) - l->w->t);
    if (ahead > l->w->ahead_us)
        l->w->ahead_us = ahead;
}

/* Check the clock. It must not go back. It may be ahead of all roots by at most ASTRAY_MS, or by its own bound if that
 * is larger, as after a reading that took long. An id that a client named must not move the clock.
 */
static void look_at_clock (struct life *l)
{
    struct world *w = l->w;
    uint64_t reading = clock_read (node_view (l->node).clock, life_boot_us (l));
    uint64_t bound = clock_bound (node_view (l->node).clock, life_boot_us (l));
    int64_t ahead = (int64_t)(reading - w->t), most = ASTRAY_MS * (int64_t)MS;

    if (most < (int64_t)bound)
        most = (int64_t)bound;
    if (reading < l->last_reading)
        sim_check_fail (w->check, "the clock of life %u goes back", (unsigned)l->id);
    l->last_reading = reading;
    life_note_lead (l);
    if (ahead > w->ahead_us + most)
        sim_check_fail (w->check, "the clock of life %u is %lld us ahead of all roots", (unsigned)l->id,
                        (long long)(ahead - w->ahead_us));
}

void life_look (struct life *l)
{
    struct world *w = l->w;
    struct node *n = l->node;
    uint64_t boot = life_boot_us (l);

    life_publish (l);
    life_look_at_ranges (l);
    note_use (l);
    if (!l->asks)
        l->bound_us = 0;
    life_note_bound (l);
    if (node_view (n).clock->known)
        look_at_clock (l);
    if (l->authority && !life_is_replaced (l) && authority_news (l->authority).fenced_by_foreign)
        sim_check_fail (w->check, "the root takes a range that it granted itself for a foreign one");
    uint64_t due = l->authority ? min_u64 (node_deadline (n), authority_deadline (l->authority)) : node_deadline (n);
    if (due == UINT64_MAX || node_view (n).stopped)
        return;
    if (due > boot)
        l->spins = 0;
    else if (l->tick_t > w->t + 1) /* otherwise a tick is planned already, and other events are before it */
        l->spins++;
    if (l->spins > 100)
        sim_check_fail (w->check, "life %u asks for one immediate tick after the other", (unsigned)l->id);
    uint64_t t = w->t + 1 + (due > boot ? due - boot + (due - boot) / 10000 : 0);
    if (t < l->tick_t) {
        l->tick_t = t;
        world_push (w, (struct sim_event){ .t = t, .type = EV_TICK, .life = l->id });
    }
}

uint64_t world_truth_us (const struct world *w)
{
    const struct life *root = w->life[w->current[0]];

    if (!w->gentle_root || !root || !root->alive || root->paused || !node_view (root->node).clock->known)
        return 0;
    return clock_read (node_view (root->node).clock, life_boot_us (root));
}

void world_check_bounds (struct world *w)
{
    uint64_t truth = world_truth_us (w);

    if (truth == 0)
        return;
    for (uint32_t i = 1; i <= w->nlives; i++) {
        struct life *l = w->life[i];

        if (!l->alive || l->paused || !node_view (l->node).sure_of_time)
            continue;
        uint64_t reading = clock_read (node_view (l->node).clock, life_boot_us (l));
        uint64_t off = reading > truth ? reading - truth : truth - reading;
        if (off > clock_bound (node_view (l->node).clock, life_boot_us (l)))
            sim_check_fail (w->check, "the clock of life %u is %llu us off, more than its bound", (unsigned)i,
                            (unsigned long long)off);
    }
}

bool life_is_replaced (const struct life *l)
{
    return l->authority && l->w->standby && l->fence != l->w->fence;
}

/* --- start and end ---------------------------------------------------------------------------------------------- */

/* Start rank 0, with the handover that the previous root left on its broker. */
static void start_root (struct life *l, const void *past, size_t size)
{
    struct world *w = l->w;
    struct authority_config config = { .max_generators = w->max_generators,
                                       .lease_ms = node_view (l->node).config->lease_ms,
                                       .epoch_ms = EPOCH_MS,
                                       .size = w->nranks };
    struct lease_record stored = w->disk;

    if (w->standby) {
        config.reach_max_ms = LEASE_USE_MS (config.lease_ms);
        l->fence = ++w->fence;
        w->serial = 0;
    }

    l->authority = must (authority_create (
        &config, &life_root_ops, l, life_boot_us (l),
        &(struct authority_start){ .wall_us = world_wall_us (w), .stored = &stored, .past = past, .past_size = size }));
    node_start_root (l->node, life_boot_us (l), l->authority);
}

/* Note that a life does not use its generators from 'end_ms' on. */
static void close_at (const struct life *l, uint64_t end_ms)
{
    sim_check_close (l->w->check, l->rank, l->id, end_ms);
    for (uint32_t lane = 0; lane < node_view (l->node).lanes->count; lane++)
        sim_check_close (l->w->check, lanes_generator (node_view (l->node).lanes, lane), l->id, end_ms);
}

/* A life follows 'before' on the same broker: it has the same clock, and gets the handover. Returns the part of the
 * handover that is for the root.
 */
static const void *follow (struct life *l, const struct life *before, const void *past, size_t size, size_t *root_size)
{
    l->boot_offset = before->boot_offset;
    l->boot_ppm = before->boot_ppm;
    l->last_id = before->last_id;
    memcpy (l->client_last_id, before->client_last_id, sizeof (l->client_last_id));
    l->paged_id = before->paged_id;
    if (l->rank == 0) /* the new root knows all that was granted, and continues below its end */
        close_at (before, node_view (before->node).newest_ms + 1);
    else
        l->last_reading = before->last_reading;
    return node_remember (l->node, past, size, root_size);
}

static struct life *start (struct world *w, uint32_t rank, const struct life *before, const void *past, size_t size)
{
    struct node_config config = { .rank = rank,
                                  .max_generators = w->max_generators,
                                  .lanes = w->lanes,
                                  .size = w->nranks,
                                  .lease_ms = w->lease_ms,
                                  .max_backlog_ms = BACKLOG_MS,
                                  .forward_timeout_ms = w->timeout_ms,
                                  .max_waiting = 50 };
    const void *root = NULL;
    size_t root_size = 0;
    struct life *l;

    if (w->lanes > 1 && rank > 0 && world_chance (w, 100)) /* a few brokers have a wrong attribute 'size' */
        config.size = w->max_generators / w->lanes;
    if (w->mixed) { /* brokers differ in their options */
        config.lease_ms = w->lease_ms / 2 + world_below (w, w->lease_ms / 2 + 1);
        config.max_waiting = 20 + (uint32_t)world_below (w, 60);
    }
    if (w->sharing) {
        static const uint32_t shares[] = { NODE_SHARE_OFF, NODE_SHARE_AUTO, NODE_SHARE_AUTO, 16, 32, 128, 512, 512 };

        config.share = shares[world_below (w, 8)];
        config.share_keep = 256 * (uint32_t)world_below (w, 4);
    }
    if (w->nlives + 1 == MAX_LIVES)
        return NULL;
    l = must (calloc (1, sizeof (*l)));
    *l = (struct life){ .alive = true, .rank = rank, .w = w, .id = ++w->nlives, .tick_t = UINT64_MAX };
    l->boot_offset = world_below (w, 1000000000);
    l->boot_ppm = (int64_t)world_below (w, 101) - 50;
    snprintf (l->uuid, sizeof (l->uuid), "%08x-0000-4000-8000-%012x", (unsigned)rank, (unsigned)l->id);
    memcpy (config.incarnation, l->uuid, sizeof (l->uuid));
    l->node = must (node_create (&config, &life_ops, l));
    w->life[l->id] = l;
    w->current[rank] = l->id;
    if (before)
        root = follow (l, before, past, size, &root_size);
    world_say (w, l, "starts");
    if (rank == 0)
        start_root (l, root, root_size);
    else
        world_later (w, world_below (w, 2000), EV_ATTACH, l->id, 0);
    world_later (w, world_below (w, 5000), EV_CLIENT, l->id, 0);
    world_later (w, 1000, EV_HEARTBEAT, l->id, 0);
    if (w->paging)
        pagers_start (l);
    life_look (l);
    return l;
}

struct life *life_start (struct world *w, uint32_t rank)
{
    return start (w, rank, NULL, NULL, 0);
}

void life_drop_asks (struct life *l)
{
    while (l->asks) {
        struct ask *a = l->asks;
        l->asks = a->next;
        free (a);
    }
}

/* A child whose requests are to be canceled, and the life that holds them. */
struct gone {
    struct life *life;
    uint32_t child;
};

static bool gone_cb (void *cookie, void *arg)
{
    struct gone *gone = arg;
    struct ask *a = cookie;

    if (a->client || a->child != gone->child)
        return false;
    ask_destroy (gone->life, a);
    return true;
}

void life_forget_child (struct life *parent, uint32_t child)
{
    if (!parent || !parent->alive || parent->paused)
        return;
    node_cancel (parent->node, life_boot_us (parent), gone_cb, &(struct gone){ parent, child });
    life_look (parent);
}

/* End a life. All links to it break, and each child notices this after a random time. */
static void life_end (struct life *l)
{
    struct world *w = l->w;

    l->alive = false;
    if (l->link != 0)
        life_forget_child (w->life[l->parent], l->id);
    l->link = 0;
    life_drop_asks (l);
    for (size_t i = 0; i < l->nwaiting; i++)
        message_unref (l->waiting[i].msg);
    l->nwaiting = 0;
    for (uint32_t i = 1; i <= w->nlives; i++)
        if (w->life[i]->alive && w->life[i]->link != 0 && w->life[i]->parent == l->id)
            world_later (w, world_below (w, 20 * MS), EV_LOST, i, w->life[i]->link);
    if (w->current[l->rank] == l->id)
        w->current[l->rank] = 0;
}

void life_kill (struct life *l)
{
    world_say (l->w, l, "is killed");
    if (!l->w->standby && l->storing
        && world_chance (l->w, 500)) /* the commit has happened, but the root was not notified */
        l->w->disk = l->record;
    life_end (l);
}

/* A life may receive requests for leases after it has stopped and before it ends. It must grant nothing then
 * (STOP_CLOSES in doc/model).
 */
static void hear_late_wants (struct life *l)
{
    struct world *w = l->w;
    struct sim_event late[8];
    size_t n = 0;

    for (size_t i = 0; i < w->nevents && n < sizeof (late) / sizeof (late[0]); i++)
        if (w->heap[i].type == EV_MESSAGE && w->heap[i].life == l->id && w->heap[i].msg->type == MSG_LEASE)
            late[n++] = w->heap[i];
    for (size_t i = 0; i < n; i++)
        life_event (l, &late[i]);
}

/* Stop cleanly: the node sends its last messages. A root stores its last record, unless the disk fails. */
static void stop (struct life *l, struct lease_record *last, bool *stored)
{
    struct world *w = l->w;

    node_stop (l->node, life_boot_us (l));
    if (l->authority)
        authority_close (l->authority, life_boot_us (l), last);
    life_look (l);
    uint64_t end_ms = node_view (l->node).held->want.end_ms; /* it promised this when it returned what it held */
    if (node_view (l->node).owner)
        close_at (l, end_ms);
    else
        sim_check_return (w->check, l->id, end_ms, 0);
    *stored = l->authority && !life_is_replaced (l) && (w->healing || !world_chance (w, 200));
    if (*stored)
        w->disk = *last;
    hear_late_wants (l);
    life_end (l);
}

void life_stop (struct life *l)
{
    struct lease_record last = { 0 };
    bool stored;

    world_say (l->w, l, "stops");
    stop (l, &last, &stored);
}

static void *unload (struct life *l, size_t *size)
{
    struct lease_record last = { 0 };
    bool stored;

    stop (l, &last, &stored);
    size_t root_size = 0;
    void *root = stored ? authority_leave (l->authority, &last, &root_size) : NULL;
    void *past = must (node_leave (l->node, root, root_size, size));
    free (root);
    return past;
}

void life_reload (struct life *l)
{
    size_t size;

    world_say (l->w, l, "is reloaded");
    void *past = unload (l, &size);
    start (l->w, l->rank, l, past, size);
    free (past);
}

void life_unload (struct life *l)
{
    struct left *left = &l->w->left[l->rank];

    world_say (l->w, l, "is unloaded");
    free (left->past);
    left->past = unload (l, &left->size);
    left->life = l->id;
}

void life_load (struct world *w, uint32_t rank)
{
    struct left *left = &w->left[rank];

    start (w, rank, w->life[left->life], left->past, left->size);
    free (left->past);
    *left = (struct left){ 0 };
}

/* Connect to the nearest living ancestor. The link gets a new number, so messages that are still on the old link are
 * lost.
 */
void life_attach (struct life *l)
{
    struct world *w = l->w;
    uint32_t rank = l->rank;

    while (rank > 0) {
        rank = (rank - 1) / w->kary;
        uint32_t id = w->current[rank];
        if (id != 0 && (w->healing || !world_chance (w, 100))) {
            l->parent = id;
            l->link = ++w->last_link;
            l->told_up = true;
            world_later (w, 1, EV_HEARTBEAT, l->id, 1);
            node_parent (l->node, life_boot_us (l), true);
            return;
        }
    }
    world_later (w, 1 + world_below (w, 20 * MS), EV_ATTACH, l->id, 0);
}

/* The link to the parent breaks. In most cases the broker then fails the requests that the module has sent to the
 * parent.
 */
void life_lose (struct life *l)
{
    struct world *w = l->w;
    uint32_t tag = node_view (l->node).forward_tag[0];

    life_forget_child (w->life[l->parent], l->id);
    l->link = 0;
    if (world_chance (w, 900) && tag != 0)
        node_forward_failed (l->node, life_boot_us (l), tag, EHOSTUNREACH);
    for (unsigned i = l->ntags > NTAGS ? l->ntags - NTAGS : 0; i < l->ntags; i++)
        if (world_chance (w, 900))
            node_lease_failed (l->node, life_boot_us (l), l->tags[i % NTAGS], EHOSTUNREACH);
    l->ntags = 0;
    if (l->told_up)
        node_parent (l->node, life_boot_us (l), false);
    l->told_up = false;
    world_later (w, 1 + world_below (w, 10 * MS), EV_ATTACH, l->id, 0);
}
