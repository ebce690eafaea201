/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* node.c - one rank of the id service
 *
 * The main rule is: forward if generation is impossible. node_may_generate () decides at each reservation whether it is
 * possible, by the time and the boxes that are held. ids.c handles requests for ids, lease.c handles leases; this file
 * connects them. Each entry point ends in node_tick (), which does everything that has become possible or due.
 *
 * doc/model/README.md lists the rules that make ids unique and that make sure that each request is served, and the
 * functions that keep them.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "modules/fluid/node/node.h"
#include "libutil/errprintf.h"
#include "modules/fluid/lease/clock.h"
#include "modules/fluid/node/private.h"

/* --- state ------------------------------------------------------------------------------------ */

static enum node_state state_now (struct node *n, uint64_t now_us)
{
    uint64_t now_ms;
    bool makes = node_may_generate (n, now_us, &now_ms);

    if (!n->owner)
        return makes ? NODE_SHARING : NODE_IDLE;
    return makes ? NODE_ACTIVE : NODE_FENCED;
}

const char *node_state_name (enum node_state state)
{
    static const char *const names[] = {
        [NODE_IDLE] = "idle", [NODE_FENCED] = "fenced", [NODE_ACTIVE] = "active", [NODE_SHARING] = "sharing"
    };

    return names[state];
}

static void note_state (struct node *n, uint64_t now_us)
{
    enum node_state state = state_now (n, now_us);

    if (state != n->state)
        node_log (n, LOG_DEBUG, "generator %u is %s", (unsigned)n->gen.generator, node_state_name (state));
    n->state = state;
    if (n->cur.box.range.hi_ms > 0) { /* to notice the end of the box */
        node_wake_ms (n, now_us, n->cur.box.range.hi_ms);
        node_wake (n, n->cur.until_us);
    }
    for (unsigned i = 0; state == NODE_FENCED && i < n->held.count; i++)
        if (n->held.lease[i].box.range.lo_ms > node_now_ms (n, now_us)) /* to notice the begin of the box */
            node_wake_ms (n, now_us, n->held.lease[i].box.range.lo_ms);
}

void node_tick (struct node *n, uint64_t now_us)
{
    n->deadline_us = NEVER;
    if (n->stopped)
        return;
    node_source_hear (n, now_us);
    grants_look (&n->parts, now_us);
    node_lease_work (n, now_us);
    node_ids_work (n, now_us);
    node_watermark_work (n, now_us);
    node_page_work (n, now_us);
    note_state (n, now_us);
}

uint64_t node_deadline (const struct node *n)
{
    return n->deadline_us;
}

/* --- time and place ---------------------------------------------------------------------------- */

void node_parent (struct node *n, uint64_t now_us, bool up)
{
    if (n->stopped)
        return;
    n->parent_up = up;
    node_forward_parent (n, now_us);
    if (up)
        held_moved (&n->held, now_us);
    node_tick (n, now_us);
}

void node_sample (struct node *n, uint64_t now_us, const struct idt_clock_sample *sample)
{
    if (n->stopped)
        return;
    node_time (n, now_us, sample);
    node_tick (n, now_us);
}

/* --- what comes in ------------------------------------------------------------------------------ */

bool node_block (struct node *n, uint64_t now_us, const struct node_request *req)
{
    enum node_taken taken = node_ids_request (n, now_us, req);

    if (taken == NODE_WAITS)
        node_tick (n, now_us);
    return taken != NODE_REFUSED;
}

void node_cancel (struct node *n, uint64_t now_us, bool (*gone) (void *cookie, void *arg), void *arg)
{
    waiting_cancel (&n->waiting, gone, arg);
    node_tick (n, now_us);
}

void node_forwarded (struct node *n, uint64_t now_us, uint32_t tag, const struct id_run *run, size_t nruns)
{
    if (node_forward_take (n, now_us, tag, run, nruns))
        node_tick (n, now_us);
}

void node_forward_failed (struct node *n, uint64_t now_us, uint32_t tag, int errnum)
{
    if (node_forward_miss (n, now_us, tag, errnum))
        node_tick (n, now_us);
}

void node_lease_answered (struct node *n, uint64_t now_us, uint32_t tag, const struct lease_answer *answer)
{
    if (n->stopped)
        return;
    node_lease_take (n, now_us, tag, answer);
    node_tick (n, now_us);
}

void node_lease_failed (struct node *n, uint64_t now_us, uint32_t tag, int errnum)
{
    if (n->stopped)
        return;
    node_lease_miss (n, now_us, tag, errnum);
    node_tick (n, now_us);
}

void node_report (struct node *n, uint64_t now_us, const struct report *report)
{
    if (n->stopped)
        return;
    node_watermark_take (n, now_us, report);
    node_tick (n, now_us);
}

/* --- the time ---------------------------------------------------------------------------------- */

void node_lost_time (struct node *n, uint64_t now_us, int64_t off_us)
{
    char text[CLOCK_CHECK_TEXT_MAX];

    if (n->stopped || off_us == 0)
        return;
    n->doubt.since_us = now_us;
    node_lease_lost_time (n, now_us, off_us);
    node_look_anew (n);
    if (!n->clock->known)
        return;
    node_log (n, LOG_WARNING, "%s: this rank makes no ids until the parent's time is known",
              clock_check_describe (off_us, text));
    clock_lost_time (n->clock, now_us, off_us);
    n->doubt.now = true;
    node_tick (n, now_us);
}

/* --- life ------------------------------------------------------------------------------------- */

/* Whether max_generators suffices for all lanes of all ranks. */
static bool has_lanes (const struct node_config *c)
{
    return c->lanes <= 1 || (c->rank < c->size && (uint64_t)c->lanes * c->size <= c->max_generators);
}

static bool valid (const struct node_config *c)
{
    return has_lanes (c) && c->max_generators >= 1 && c->max_generators <= FLUID_GENERATOR_MAX + 1
           && c->lease_ms >= LEASE_MIN_MS && c->lease_ms <= LEASE_MAX_MS && c->max_backlog_ms <= FLUID_TIMESTAMP_MAX / 4
           && c->forward_timeout_ms <= FLUID_TIMESTAMP_MAX / 4 && strlen (c->incarnation) == IDT_MSG_UUID_LEN
           && (c->share <= NODE_SHARE_AUTO || box_is_part_size (c->share)) && c->share_keep <= FLUID_PER_MS;
}

void node_destroy (struct node *n)
{
    if (!n)
        return;
    free (n->reports.children.entry);
    grants_fini (&n->parts);
    grants_fini (&n->time);
    lease_relay_fini (&n->relay);
    waiting_fini (&n->waiting);
    free (n);
}

struct node *node_create (const struct node_config *config, const struct node_ops *ops, void *arg)
{
    struct node *n;

    if (!valid (config))
        return errset_null (EINVAL);
    if (!(n = calloc (1, sizeof (*n))))
        return NULL;
    if (grants_init (&n->time, 1, 1) < 0) {
        free (n);
        return NULL;
    }
    n->config = *config;
    n->ops = ops;
    n->arg = arg;
    n->clock = &n->own_clock;
    n->deadline_us = NEVER;
    waiting_init (&n->waiting, ops->reply, ops->fail, arg, &n->stats.waiting);
    TAILQ_INIT (&n->up.all.shares);
    TAILQ_INIT (&n->up.newcomers.shares);
    n->owner = config->rank < config->max_generators;
    n->state = n->owner ? NODE_FENCED : NODE_IDLE;
    if (n->owner) {
        page_gen_init (&n->gen, config->rank);
        if (config->lanes > 1)
            lanes_init (&n->lanes, config->rank + config->size, config->size, config->lanes - 1);
    }
    n->root_lease_ms = config->lease_ms;
    held_init (&n->held, config->rank, config->incarnation, n->owner, 1);
    grants_init (&n->parts, 1, 0); /* cannot fail: a table of parts is allocated when it is needed */
    node_lease_term (n);
    lease_relay_init (&n->relay, config->lease_ms, node_relay_reply_cb, n);
    n->reports.children.keep_us = node_report_keep_us (n);
    return n;
}

/* If the authority has taken over the table of leases, the node continues in the unused part of its last box. That part
 * may begin below the end of the time that was granted to modules. This is harmless, because such time is for ids
 * of another kind, and the next grant of time begins at that end.
 */
void node_start_root (struct node *n, uint64_t now_us, struct authority *a)
{
    struct authority_status status;

    authority_status (a, now_us, &status);
    n->source = (struct source){ .authority = a, .heard = authority_news (a) };
    n->source.heard.jumped_us = 0; /* node_tick () then applies all jumps to the restored grants */
    n->clock = authority_clock (a);
    n->doubt.now = false;
    n->epoch.known = true;
    n->epoch.ms = status.epoch_ms;
    if (!authority_reopen (a, n->config.rank, n->cursor_ms + 1))
        grants_reopen (&n->time, 0, 0);
    node_tick (n, now_us);
}

void node_stop (struct node *n, uint64_t now_us)
{
    assert (!n->stopped);
    n->stopped = true;
    node_ids_stop (n);
    node_page_close (n, now_us);
    node_make_nothing (n); /* rule NEVER_USE_RETURNED: close before anything is returned */
    n->deadline_us = NEVER;
    node_watermark_stop (n);
    node_lease_stop (n, now_us);
}

/* --- status --------------------------------------------------------------------------------------- */

void node_status (const struct node *n, uint64_t now_us, struct node_status *status)
{
    *status = (struct node_status){ .state = n->owner ? NODE_FENCED : NODE_IDLE,
                                    .owns_generator = n->owner,
                                    .generator = n->config.rank,
                                    .time_known = n->clock->known,
                                    .timestamp_ms = node_now_ms (n, now_us),
                                    .has_epoch = n->epoch.known,
                                    .epoch_ms = n->epoch.ms,
                                    .parent_up = n->parent_up,
                                    .waiting = n->waiting.length,
                                    .holds_until_ms = held_end (&n->held) };

    status->grants = grants_count (&n->parts, status->timestamp_ms, &status->granted_per_ms);
    if (n->clock->known && !n->doubt.now && held_find (&n->held, now_us, status->timestamp_ms, &status->lease)) {
        status->state = n->owner ? NODE_ACTIVE : NODE_SHARING;
        status->lease_age_us = n->renewed_us > 0 ? now_us - n->renewed_us : 0;
    }
    if (n->clock->known)
        status->bound_us = clock_bound (n->clock, now_us);
}

size_t node_granted_to (const struct node *n, uint64_t now_us, uint32_t ranks[GRANTS_MAX])
{
    return grants_ranks (&n->parts, node_now_ms (n, now_us), ranks);
}

struct node_stats *node_stats (struct node *n)
{
    return &n->stats;
}

/* --- the handover from a node to the next one on its broker -------------------------------------- */

/* 'last_id' and the clock keep the ids of this rank in order across a reload.
 */

static const char magic[8] = "fluid/9";

struct node_handover {
    char magic[8];
    size_t size; /* size of this struct, because the next load may have another version */
    fluid_t last_id;
    struct clock clock;
    bool has_epoch;
    int64_t epoch_ms;
    uint64_t end_ms;    /* the node made no id at or above this time, but clients of a spoilt page may have made some */
    uint64_t spoilt_ms; /* below this time */
    uint64_t floor_ms;  /* of the parts */
    uint64_t time_number; /* the table of time has no higher one, and takes only a higher one */
    size_t parts_size, time_size;
    /* followed by the tables of parts and of time, then by the owner's data */
};

static char *put (char *to, const void *data, size_t size)
{
    if (size > 0)
        memcpy (to, data, size);
    return to + size;
}

void *node_leave (const struct node *n, const void *more, size_t more_size, size_t *size)
{
    size_t parts_size, time_size;
    const void *parts = grants_table (&n->parts, &parts_size), *time = grants_table (&n->time, &time_size);
    struct node_handover *p = calloc (1, sizeof (*p) + parts_size + time_size + more_size);

    if (!p)
        return NULL;
    *p = (struct node_handover){ .size = sizeof (*p),
                                 .last_id = n->last_id,
                                 .clock = *n->clock,
                                 .has_epoch = n->epoch.known,
                                 .epoch_ms = n->epoch.ms,
                                 .end_ms = n->cursor_ms + 1,
                                 .spoilt_ms = n->spoilt.end_ms,
                                 .floor_ms = n->parts.floor_ms,
                                 .time_number = n->time_number,
                                 .parts_size = parts_size,
                                 .time_size = time_size };
    memcpy (p->magic, magic, sizeof (magic));
    char *end = put (put (put ((char *)(p + 1), parts, parts_size), time, time_size), more, more_size);
    *size = (size_t)(end - (char *)p);
    return p;
}

static bool is_ours (const struct node_handover *p, size_t size)
{
    return size >= sizeof (*p) && memcmp (p->magic, magic, sizeof (magic)) == 0 && p->size == sizeof (*p)
           && p->parts_size <= size - sizeof (*p) && p->time_size <= size - sizeof (*p) - p->parts_size;
}

/* At rank 0, node_start_root () replaces the clock and the epoch by the authority's. */
const void *node_remember (struct node *n, const void *data, size_t size, size_t *more_size)
{
    const struct node_handover *p = data;

    *more_size = 0;
    if (!p || !is_ours (p, size))
        return NULL;
    n->last_id = p->last_id;
    n->cursor_ms = p->end_ms - 1; /* handed over again if this node makes no id */
    page_gen_advance (&n->gen, fluid_split (p->last_id).timestamp_ms + 1);
    lanes_advance (&n->lanes, fluid_split (p->last_id).timestamp_ms + 1);
    n->spoilt.end_ms = p->spoilt_ms;
    n->own_clock = p->clock;
    n->epoch.known = p->has_epoch;
    n->epoch.ms = p->epoch_ms;
    n->time_number = p->time_number;
    const char *parts = (const char *)(p + 1), *time = parts + p->parts_size, *more = time + p->time_size;

    if (!grants_restore (&n->parts, p->floor_ms, parts, p->parts_size)
        || !grants_restore (&n->time, 0, time, p->time_size))
        return NULL; /* without these tables, the old lease must not be used */
    *more_size = size - (size_t)(more - (const char *)p);
    return *more_size > 0 ? more : NULL;
}

/* --- read access to a node's state for the simulators -------------------------------------------- */

struct node_view node_view (const struct node *n)
{
    return (struct node_view){ .config = &n->config,
                               .state = n->state,
                               .stopped = n->stopped,
                               .owner = n->owner,
                               .held = &n->held,
                               .lanes = &n->lanes,
                               .parts = &n->parts,
                               .clock = n->clock,
                               .sure_of_time = n->clock->known && !n->doubt.now,
                               .newest_ms = n->cursor_ms,
                               .forward_tag = { n->up.all.busy ? n->up.all.tag : 0,
                                                n->up.newcomers.busy ? n->up.newcomers.tag : 0 } };
}
