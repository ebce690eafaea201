/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* place.c - start and end: a broker starts, connects to a parent, loses it, is killed
 *
 * Like in broker/overlay/parent.c and hello.c, a broker tries its parent first, then the other ancestors in turn. If
 * brokers are not its children, an ancestor accepts only a few of them a second.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scale/private.h"

#define RETRY_MS 20. /* pause between two ancestors; doubled after each round through all ancestors, up to: */
#define LAST_RETRY_MS 500.
#define HELLO_MS 400. /* timeout of the answer to a hello */
#define PROBE_MS 1000.
#define SHARE_KEEP 128 /* fluid.share-keep */
#define PATIENCE 4     /* a new broker tries its parent this often before other ancestors */

static uint64_t jittered_ns (struct scale *s, double ms)
{
    return (uint64_t)(ms * 1e6 * (0.5 + scale_fraction (s)));
}

bool rank_is_below (const struct scale *s, uint32_t number, uint32_t top)
{
    return number == top || topo_child_toward (s->topo, top, number) != TOPO_NONE;
}

/* --- a parent --------------------------------------------------------------------------------------------- */

static double pause_ms (const struct scale_rank *r)
{
    double ms = RETRY_MS;

    for (unsigned i = 0; i < r->rounds && ms < LAST_RETRY_MS; i++)
        ms *= 2;
    return ms < LAST_RETRY_MS ? ms : LAST_RETRY_MS;
}

static bool may_climb (const struct scale_rank *r)
{
    return r->has_joined || r->rounds >= PATIENCE;
}

/* Return the ancestor to try next. After the last ancestor it is the parent again. */
static uint32_t next_ancestor (struct scale_rank *r)
{
    uint32_t a = topo_parent (r->s->topo, rank_number (r));

    for (unsigned i = 0; i < r->tries && a != TOPO_NONE; i++)
        a = topo_parent (r->s->topo, a);
    if (a != TOPO_NONE && (r->tries == 0 || may_climb (r)))
        return a;
    r->tries = 0;
    r->rounds++;
    return topo_parent (r->s->topo, rank_number (r));
}

static void seek (struct scale_rank *r)
{
    struct scale *s = r->s;
    uint32_t ancestor = next_ancestor (r);
    bool alive = s->rank[ancestor].node != NULL;
    bool waits = !alive && r->tries == 0 && r->rounds > 0;

    r->place = PLACE_SEEKS;
    r->parent = ancestor;
    r->link++;
    r->up = r->down = (struct scale_way){ 0 };
    if (alive)
        scale_link_send (r, &(struct scale_message){
                                .type = MSG_HELLO, .to = ancestor, .sample = { .sent_us = rank_boot_us (r) } });
    scale_at (s, r->busy_ns + (alive ? (uint64_t)(HELLO_MS * 1e6) : jittered_ns (s, waits ? pause_ms (r) : RETRY_MS)),
              EV_RETRY, rank_number (r), r->link);
}

/* --- start --------------------------------------------------------------------------------------------- */

static struct node *make_node (struct scale_rank *r)
{
    const struct scale_config *c = &r->s->config;
    struct node_config config = { .rank = rank_number (r),
                                  .max_generators = c->max_generators,
                                  .lease_ms = c->lease_ms,
                                  .max_backlog_ms = c->backlog_ms,
                                  .forward_timeout_ms = c->timeout_ms,
                                  .max_waiting = c->max_waiting,
                                  .share = c->share,
                                  .share_keep = SHARE_KEEP };

    snprintf (config.incarnation, sizeof (config.incarnation), "%08x-0000-4000-8000-%012x", (unsigned)config.rank,
              (unsigned)r->life);
    return must (node_create (&config, &rank_ops, r));
}

static int64_t wall_us (const struct scale_rank *r)
{
    return EPOCH_MS * 1000 + (int64_t)(r->busy_ns / 1000);
}

static void start_root (struct scale_rank *r)
{
    struct scale *s = r->s;
    struct authority_config config = { s->config.max_generators, s->config.lease_ms, EPOCH_MS, 0, 0 };
    struct authority_start start = { .wall_us = wall_us (r), .stored = &s->disk };

    s->authority = must (authority_create (&config, &root_ops, r, rank_boot_us (r), &start));
    node_start_root (r->node, rank_boot_us (r), s->authority);
    r->place = PLACE_UP;
    s->nup++;
    scale_at (s, r->busy_ns + SECOND_NS, EV_WALL, 0, r->life);
}

/* Whether a broker waits for its parent, as in broker/broker_group.c: a process makes its brokers one after the other,
 * then waits until the other processes have done so. From then on each broker waits until its parent is up, if the
 * parent is in the same process.
 */
static bool waits_for (const struct scale *s, uint32_t number, uint32_t parent)
{
    return s->rank[number].waits && scale_link_is_inside (s, number, parent);
}

static void join_children (struct scale *s, uint32_t number, uint64_t t_ns)
{
    uint32_t count = s->plan ? topo_child_count (s->topo, number) : 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t child = topo_child (s->topo, number, i);

        if (waits_for (s, child, number))
            scale_at (s, t_ns, EV_JOIN, child, 0);
    }
}

static void all_are_made (struct scale *s, uint64_t t_ns)
{
    for (uint32_t i = 1; i < s->config.size; i++)
        if (!scale_link_is_inside (s, i, topo_parent (s->topo, i)))
            scale_at (s, t_ns, EV_JOIN, i, 0);
    join_children (s, 0, t_ns);
}

static void make_next (struct scale *s, const struct scale_rank *r, uint32_t i)
{
    uint32_t process = plan_process (s->plan, rank_number (r));

    if (i < plan_count (s->plan, process))
        scale_at (s, r->busy_ns, EV_START, plan_rank (s->plan, process, i), i + 1);
    if (++s->made == s->config.size)
        all_are_made (s, r->busy_ns);
}

void rank_join (struct scale_rank *r)
{
    r->waits = false;
    seek (r);
    rank_look (r);
}

void rank_start (struct scale *s, const struct scale_event *e)
{
    uint32_t number = e->rank;
    struct scale_rank *r = &s->rank[number];

    if (r->busy_ns < s->t_ns)
        r->busy_ns = s->t_ns;
    if (s->plan)
        rank_spend (r, s->config.costs.start_us);
    r->life++;
    r->node = make_node (r);
    r->tick_ns = UINT64_MAX;
    r->has_joined = r->activated = r->waits = false;
    if (number == 0)
        start_root (r);
    else if (e->with.n > 0)
        r->waits = true;
    else
        seek (r);
    rank_look (r);
    if (e->with.n > 0)
        make_next (s, r, (uint32_t)e->with.n);
    scale_look_at_start (s);
}

void rank_stored (struct scale_rank *r)
{
    struct scale *s = r->s;

    s->disk = s->storing;
    authority_stored (s->authority, rank_boot_us (r), s->disk.horizon_ms);
    node_tick (r->node, rank_boot_us (r));
    rank_look (r);
}

void rank_wall (struct scale_rank *r)
{
    authority_wall (r->s->authority, rank_boot_us (r), wall_us (r));
    node_tick (r->node, rank_boot_us (r));
    scale_at (r->s, r->busy_ns + SECOND_NS, EV_WALL, 0, r->life);
    rank_look (r);
}

/* --- answers of a parent --------------------------------------------------------------------------------- */

void rank_retry (struct scale_rank *r, uint64_t link)
{
    if (r->place != PLACE_SEEKS || r->link != link)
        return;
    r->tries++;
    seek (r);
}

void rank_hello (struct scale_rank *r, const struct scale_message *m)
{
    struct scale_message joined = { .type = MSG_JOINED, .to = m->from, .sample = m->sample };

    if (node_clock (r->node, rank_boot_us (r), &joined.sample.peer_received_us, &joined.sample.peer_bound_us))
        joined.sample.peer_sent_us = joined.sample.peer_received_us;
    scale_link_send (r, &joined);
}

static void note_joined (struct scale_rank *r)
{
    struct scale *s = r->s;

    s->nup++;
    if (s->nup == s->config.size && s->result.joined_ns == 0)
        s->result.joined_ns = r->busy_ns;
    if (s->phase == PHASE_COLD)
        samples_add (&s->joined, r->busy_ns);
    if (s->kill_ns > 0) {
        samples_add (&s->joined_again, r->busy_ns - s->kill_ns);
        s->last_joined_ns = r->busy_ns;
    }
}

void rank_joined (struct scale_rank *r, const struct scale_message *m)
{
    struct idt_clock_sample sample = m->sample;

    if (r->place != PLACE_SEEKS)
        return;
    r->place = PLACE_UP;
    r->has_joined = true;
    r->tries = r->rounds = 0;
    note_joined (r);
    join_children (r->s, rank_number (r), r->busy_ns);
    sample.received_us = rank_boot_us (r);
    if (sample.peer_received_us > 0)
        node_sample (r->node, rank_boot_us (r), &sample);
    node_parent (r->node, rank_boot_us (r), true);
    if (r->parent != topo_parent (r->s->topo, rank_number (r)))
        scale_at (r->s, r->busy_ns + jittered_ns (r->s, PROBE_MS), EV_PROBE, rank_number (r), r->link);
    scale_look_at_start (r->s);
}

/* --- loss --------------------------------------------------------------------------------------------------- */

/* The link breaks: messages that are on it are lost, and the node is notified. */
static void part (struct scale_rank *r)
{
    struct scale_rank *parent = &r->s->rank[r->parent];
    const struct node_view view = node_view (r->node);

    r->place = PLACE_SEEKS;
    r->link++;
    r->s->nup--;
    r->under_way = 0;
    if (parent->node)
        rank_cancel_child (parent, rank_number (r), false);
    for (int i = 0; i < NODE_FORWARDS_MAX; i++)
        if (view.forward_tag[i] != 0)
            node_forward_failed (r->node, rank_boot_us (r), view.forward_tag[i], EHOSTUNREACH);
    while (r->tags.count > 0)
        node_lease_failed (r->node, rank_boot_us (r), r->tags.tag[--r->tags.count], EHOSTUNREACH);
    node_parent (r->node, rank_boot_us (r), false);
}

void rank_lost (struct scale_rank *r, uint64_t link)
{
    if (r->place != PLACE_UP || r->link != link)
        return;
    part (r);
    r->tries = UINT16_MAX; /* the next attempt is then at the parent */
    scale_at (r->s, r->busy_ns + jittered_ns (r->s, RETRY_MS), EV_RETRY, rank_number (r), r->link);
    rank_look (r);
}

void rank_probe (struct scale_rank *r)
{
    uint32_t own = topo_parent (r->s->topo, rank_number (r));

    if (r->place != PLACE_UP || r->parent == own)
        return;
    if (!r->s->rank[own].node) {
        scale_at (r->s, r->busy_ns + jittered_ns (r->s, PROBE_MS), EV_PROBE, rank_number (r), 0);
        return;
    }
    part (r);
    r->tries = 0;
    seek (r);
    rank_look (r);
}

void rank_end (struct scale_rank *r)
{
    struct scale_ask *a, *next;

    node_destroy (r->node);
    r->node = NULL;
    for (a = r->asks; a; a = next) {
        next = a->next;
        if (a->at_node && a->client)
            load_drop (r->s, a);
        else if (a->at_node)
            ask_free (r->s, a);
    }
    free (r->tags.tag);
    r->tags = (struct tags){ 0 };
    if (rank_number (r) == 0) {
        authority_destroy (r->s->authority);
        r->s->authority = NULL;
    }
}

static void break_links (struct scale *s, uint32_t number)
{
    uint64_t lost_ns = s->t_ns + (uint64_t)(s->config.costs.lost_ms * 1e6);

    for (uint32_t i = 1; i < s->config.size; i++)
        if (s->rank[i].place == PLACE_UP && s->rank[i].parent == number)
            scale_at (s, lost_ns, EV_LOST, i, s->rank[i].link);
}

void rank_kill (struct scale *s, uint32_t number)
{
    struct scale_rank *r = &s->rank[number], *parent = &s->rank[r->parent];

    if (!r->node)
        return;
    s->kill_ns = s->t_ns;
    if (number > 0 && r->place == PLACE_UP && parent->node)
        rank_cancel_child (parent, number, false);
    s->nup -= r->place == PLACE_UP;
    s->nactive -= r->activated;
    rank_end (r);
    r->place = PLACE_DOWN;
    r->tick_ns = UINT64_MAX;
    r->under_way = 0;
    r->link++;
    break_links (s, number);
    if (s->config.fault.restart_ms != UINT64_MAX)
        scale_at (s, s->t_ns + s->config.fault.restart_ms * MS_NS, EV_START, number, 0);
    load_probe (s, number);
}
