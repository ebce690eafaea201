/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sim.c - one history of a tree of nodes, decided by a seed: its random numbers, events, messages and faults
 *
 * Faults happen at random until the world is healed. After that every request must be served, and all brokers stop.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/fluid/lease/clock.h"
#include "sim/world.h"

/* --- random numbers ------------------------------------------------------------------------------------ */

uint64_t world_below (struct world *w, uint64_t n)
{
    return sim_random (&w->random) % n;
}

bool world_chance (struct world *w, unsigned of_1000)
{
    return world_below (w, 1000) < of_1000;
}

/* --- events ---------------------------------------------------------------------------------------------- */

static bool earlier (const struct sim_event *a, const struct sim_event *b)
{
    return a->t != b->t ? a->t < b->t : a->order < b->order;
}

static void swap (struct sim_event *a, struct sim_event *b)
{
    struct sim_event e = *a;

    *a = *b;
    *b = e;
}

void world_push (struct world *w, struct sim_event e)
{
    if (w->nevents == w->heap_size) {
        w->heap_size = w->heap_size ? 2 * w->heap_size : 256;
        w->heap = must (realloc (w->heap, w->heap_size * sizeof (w->heap[0])));
    }
    e.order = ++w->order;
    size_t i = w->nevents++;
    for (w->heap[i] = e; i > 0 && earlier (&w->heap[i], &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap (&w->heap[i], &w->heap[(i - 1) / 2]);
}

static struct sim_event world_pop (struct world *w)
{
    struct sim_event e = w->heap[0];
    size_t i = 0, n = --w->nevents;

    w->heap[0] = w->heap[n];
    for (size_t k; (k = 2 * i + 1) < n; i = k) {
        if (k + 1 < n && earlier (&w->heap[k + 1], &w->heap[k]))
            k++;
        if (!earlier (&w->heap[k], &w->heap[i]))
            break;
        swap (&w->heap[k], &w->heap[i]);
    }
    return e;
}

void world_later (struct world *w, uint64_t us, enum event_type type, uint32_t life, uint64_t n)
{
    world_push (w, (struct sim_event){ .t = w->t + us, .type = type, .life = life, .n = n });
}

void world_say (struct world *w, const struct life *l, const char *what)
{
    if (w->config->verbose)
        printf ("# %9.3f ms: rank %u life %u: %s\n", (double)w->t / 1000, (unsigned)l->rank, (unsigned)l->id, what);
}

/* --- messages --------------------------------------------------------------------------------------------- */

void message_unref (struct message *msg)
{
    if (!msg || --msg->refs > 0)
        return;
    free (msg->run);
    free ((void *)msg->req.want);
    free ((void *)msg->answer.grant);
    free (msg);
}

/* Return the delay of a message: mostly short, but sometimes very long, so that messages overtake each other. */
static uint64_t delay (struct world *w)
{
    uint64_t us = 20 + world_below (w, w->delay_us);

    return !w->healing && world_chance (w, 20) ? us * (1 + world_below (w, 50)) : us;
}

/* Return the delay of a repeated message. It may arrive after its sender, and even the sender's successor, have ended
 * (END_ITS_OWN in doc/model).
 */
static uint64_t repeat_delay (struct world *w)
{
    return delay (w) + (world_chance (w, 300) ? world_below (w, w->lease_ms * MS / 2) : 0);
}

void message_send (struct world *w, const struct message *msg)
{
    struct message *m = must (malloc (sizeof (*m)));
    unsigned copies = w->healing ? 1 : !world_chance (w, w->loss) + world_chance (w, w->repeat);

    *m = *msg;
    m->refs = 1;
    m->run = sim_copy (msg->run, msg->nruns, sizeof (msg->run[0]));
    m->req.want = sim_copy (msg->req.want, msg->req.nwant, sizeof (msg->req.want[0]));
    m->answer.grant = sim_copy (msg->answer.grant, msg->answer.ngrant, sizeof (msg->answer.grant[0]));
    w->result.faults += copies != 1;
    for (unsigned i = 0; i < copies; i++, m->refs++)
        world_push (w, (struct sim_event){ .t = w->t + (i > 0 ? repeat_delay (w) : delay (w)),
                                           .type = EV_MESSAGE,
                                           .life = m->to,
                                           .msg = m });
    message_unref (m);
}

/* --- faults ------------------------------------------------------------------------------------------------------- */

static struct life *some_life (struct world *w)
{
    for (int i = 0; i < 20 && w->nlives > 0; i++) {
        struct life *l = w->life[1 + world_below (w, w->nlives)];
        if (l->alive && !(w->gentle_root && l->rank == 0))
            return l;
    }
    return NULL;
}

static bool root_lives (const struct world *w)
{
    for (uint32_t i = 1; i <= w->nlives; i++)
        if (w->life[i]->alive && w->life[i]->rank == 0)
            return true;
    return false;
}

static void start_later (struct world *w, uint32_t rank)
{
    world_later (w, world_below (w, 2) ? world_below (w, 5 * MS) : world_below (w, 2 * w->lease_ms * MS), EV_START,
                 rank, 0);
}

static void fault_pause (struct world *w, struct life *l)
{
    if (l->paused)
        return;
    world_say (w, l, "is paused");
    l->paused = true;
    l->paused_t = w->t;
    l->misses = world_chance (w, 300);
    world_later (w, world_below (w, 3 * w->lease_ms * MS), EV_RESUME, l->id, 0);
}

/* CLOCK_BOOTTIME of the host jumps ahead. Either time was missed, and the other clocks show it; or CLOCK_MONOTONIC_RAW
 * jumps, too, and no time was missed.
 */
static void fault_jump (struct world *w, struct life *l)
{
    uint64_t us = SEEN_US + world_below (w, 3 * w->lease_ms * MS);
    bool boot = world_chance (w, 500);

    world_say (w, l, boot ? "has a jump of CLOCK_BOOTTIME" : "has a jump of CLOCK_MONOTONIC_RAW");
    life_clocks_went (l, boot ? us : 0, boot ? 0 : us, 0);
}

/* The root crashes many times within a moment. The clock debt that results has a bound. */
static void fault_crash_loop (struct world *w)
{
    struct life *root = w->life[w->current[0]];
    uint64_t most_ms = AHEAD_MAX_MS (w->lease_ms) + w->lease_ms / 6;

    if (w->current[0] == 0 || root->paused)
        return;
    life_kill (root);
    if (most_ms < w->disk.ahead_ms)
        most_ms = w->disk.ahead_ms;
    for (int i = 0; i < 40 && !root_lives (w) && (root = life_start (w, 0)); i++)
        life_kill (root);
    if (w->disk.ahead_ms > most_ms)
        sim_check_fail (w->check, "crashes put the horizon %llu ms ahead, more than the bound",
                        (unsigned long long)w->disk.ahead_ms);
    start_later (w, 0);
}

static void fault_disk (struct world *w)
{
    static const uint64_t delays[] = { 500, 5000, 50000, 500000 };

    w->disk_failing = world_chance (w, 300);
    w->disk_delay_us = delays[world_below (w, 4)];
}

/* The whole instance stops, leaves first, and starts again. Some lives do not stop, and live on without a connection.
 */
static void fault_instance (struct world *w)
{
    for (uint32_t rank = w->nranks; rank > 0; rank--) {
        struct life *l = w->life[w->current[rank - 1]];

        if (w->current[rank - 1] == 0)
            continue;
        if (world_chance (w, 700) && !l->paused)
            life_stop (l);
        else
            life_kill (l);
        start_later (w, rank - 1);
    }
}

static void make_fault (struct world *w)
{
    struct life *l = some_life (w);
    unsigned kind = (unsigned)world_below (w, 100);

    w->result.faults++;
    if (w->standby && world_chance (w, 80))
        start_later (w, 0); /* another root takes over */
    else if (kind < 3 && !w->gentle_root)
        fault_instance (w);
    else if (kind < 4 && !w->gentle_root)
        fault_crash_loop (w);
    else if (kind < 10)
        fault_disk (w);
    else if (kind < 17)
        w->wall_offset_us += (int64_t)world_below (w, 4 * w->lease_ms * MS) - (int64_t)(2 * w->lease_ms * MS);
    else if (!l)
        return;
    else if (kind < 40) {
        life_kill (l);
        start_later (w, l->rank);
    }
    else if (kind < 45 && !l->paused) {
        life_stop (l);
        start_later (w, l->rank);
    }
    else if (kind < 50 && !l->paused && !life_is_replaced (l) && w->nlives + 2 < MAX_LIVES) {
        if (w->current[l->rank] == l->id && world_chance (w, 300)) {
            life_unload (l);
            start_later (w, l->rank);
        }
        else
            life_reload (l);
    }
    else if (kind < 58)
        start_later (w, l->rank); /* a second life claims the rank, and the first does not notice this */
    else if (kind < 78)
        fault_pause (w, l);
    else if (kind < 80 && !l->paused)
        fault_jump (w, l);
    else if (l->link != 0)
        world_later (w, 0, EV_LOST, l->id, l->link);
}

static void on_start (struct world *w, uint32_t rank)
{
    uint32_t lives = 0;

    for (uint32_t i = 1; i <= w->nlives; i++)
        lives += w->life[i]->alive && w->life[i]->rank == rank;
    /* the first root has locked the file, so a second root does not start (ONE_ROOT) */
    if (rank == 0 && root_lives (w) && !w->standby)
        return;
    if (rank == 0 && root_lives (w))
        w->result.takeovers++;
    if (w->healing ? w->current[rank] != 0 : lives >= 3)
        return;
    if (w->left[rank].life && world_chance (w, 400))
        life_load (w, rank);
    else
        life_start (w, rank);
}

/* --- a history ---------------------------------------------------------------------------------------------------- */

static void handle (struct world *w, const struct sim_event *e)
{
    struct life *l = e->type != EV_START && e->type != EV_FAULT ? w->life[e->life] : NULL;

    if (e->type == EV_START)
        on_start (w, e->life);
    else if (e->type == EV_FAULT && !w->healing) {
        make_fault (w);
        world_later (w, world_below (w, w->lease_ms * MS / 2), EV_FAULT, 0, 0);
    }
    else if (e->type == EV_FAULT)
        return;
    else if (e->type == EV_RESUME) {
        if (l->alive && l->paused)
            life_resume (l);
    }
    else if (e->type == EV_COMMIT)
        life_commit (l, e);
    else if (e->type == EV_STORED && !(l->alive && l->paused)) {
        life_stored (l, e);
        if (l->alive)
            life_look (l);
    }
    else if (e->type == EV_PAGE && !(l->paused && l->misses)) /* processes run even if the broker is dead or paused */
        pager_event (l, e->n);
    else if (l->alive && l->paused) {
        life_wait (l, e);
        return; /* life_wait () keeps the message */
    }
    else if (l->alive)
        life_event (l, e);
    message_unref (e->msg);
}

static void run_until (struct world *w, uint64_t t, uint64_t steps)
{
    while (w->nevents > 0 && w->heap[0].t <= t && steps-- > 0 && !sim_check_violation (w->check)) {
        struct sim_event e = world_pop (w);

        w->t = e.t;
        w->result.events++;
        handle (w, &e);
    }
}

/* Leave one life for each rank, and repair all links and disks. From then on every request must be served. */
static void heal (struct world *w)
{
    w->healing = true;
    w->disk_failing = false;
    w->disk_delay_us = 500;
    for (uint32_t i = 1; i <= w->nlives; i++) {
        struct life *l = w->life[i];

        if (l->alive && l->paused)
            life_resume (l);
        if (l->alive && w->current[l->rank] != i)
            life_kill (l);
    }
    for (uint32_t rank = 0; rank < w->nranks; rank++)
        if (w->current[rank] == 0)
            on_start (w, rank);
    /* the slowest commit takes 500 ms */
    run_until (w, w->t + (600 + w->timeout_ms + 5 * w->lease_ms) * MS, UINT64_MAX);
}

/* Whether a lease is much longer than the round trip to the root. If it is not, ranks lose their leases and get new
 * ones all the time.
 */
static bool is_near (const struct world *w)
{
    uint64_t hops = 0;

    for (uint32_t rank = w->nranks - 1; rank > 0; rank = (rank - 1) / w->kary)
        hops++;
    return 8 * hops * w->delay_us < w->lease_ms * MS;
}

/* After some leases without faults, the watermark must be close to the root's time. At the end of time no rank holds a
 * lease, so nothing is checked.
 */
static void sim_check_progress (struct world *w)
{
    struct life *root = w->life[w->current[0]];
    uint64_t now_ms = clock_read (node_view (root->node).clock, life_boot_us (root)) / 1000;

    if (now_ms >= END_MS)
        return;

    life_ask_watermark (root);
    if (is_near (w) && w->watermark_ms + 2 * w->lease_ms + w->timeout_ms < now_ms)
        sim_check_fail (w->check, "the watermark %llu stays behind the time %llu", (unsigned long long)w->watermark_ms,
                        (unsigned long long)now_ms);
}

static void final_requests (struct world *w)
{
    w->healed = true;
    for (uint32_t rank = 0; rank < w->nranks; rank++)
        if (w->current[rank] != 0) {
            life_ask (w->life[w->current[rank]]);
            life_look (w->life[w->current[rank]]);
        }
    run_until (w, w->t + (2 * w->timeout_ms + 5 * w->lease_ms) * MS, UINT64_MAX);
    sim_check_progress (w);
    for (uint32_t i = 1; i <= w->nlives && !sim_check_violation (w->check); i++)
        for (struct ask *a = w->life[i]->asks; a; a = a->next)
            if (w->life[i]->alive && a->client)
                sim_check_fail (w->check, "a request of life %u was never answered", (unsigned)i);
}

static void stop_all (struct world *w)
{
    for (uint32_t rank = w->nranks; rank > 0; rank--)
        if (w->current[rank - 1] != 0)
            life_stop (w->life[w->current[rank - 1]]);
}

static void world_init (struct world *w, const struct sim_config *config)
{
    static const uint64_t leases[] = { 50, 120, 400 };

    *w = (struct world){ .config = config,
                         .random = config->seed,
                         .check = sim_check_create (),
                         .times = sim_check_create (),
                         .ahead_us = INT64_MIN / 2 };
    w->nranks = config->nodes ? config->nodes : 2 + (uint32_t)world_below (w, 15);
    w->kary = 1 + (w->nranks > 16) + (uint32_t)world_below (w, 4);
    w->max_generators = 1 + (uint32_t)world_below (w, w->nranks + 1);
    w->lease_ms = leases[world_below (w, 3)];
    w->timeout_ms = 300 + world_below (w, 250); /* ms: enough for three round trips over 16 hops */
    w->loss = (unsigned)world_below (w, 3) * 30;
    w->repeat = (unsigned)world_below (w, 3) * 30;
    w->delay_us = 50 + world_below (w, 3000);
    w->disk_delay_us = 500;
    w->standby = config->standby;
    w->gentle_root = world_below (w, 4) == 0;
    w->gentle_root = w->gentle_root && !w->standby;
    w->mixed = world_below (w, 4) == 0;
    w->sharing = world_below (w, 4) != 0;
    if (w->sharing && world_below (w, 2) == 0)
        w->max_generators = 1 + (uint32_t)world_below (w, 3);
    w->lanes = config->seed % 8 == 0 ? 3 : 1;
    w->paging = config->seed % 5 < 2;
    if (w->lanes > 1) /* with lanes all ranks own generators */
        w->max_generators = w->lanes * (w->nranks + 1);
    w->t = 1000000;
    w->wall_offset_us = (int64_t)world_below (w, 1000000);
    if (world_below (w, 10) == 0) /* the instance's time ends during the history, or a little later */
        w->wall_offset_us += (int64_t)((END_MS - world_below (w, 10000)) * MS);
    for (uint32_t rank = 0; rank < w->nranks; rank++)
        world_later (w, world_below (w, 3 * MS), EV_START, rank, 0);
    world_later (w, world_below (w, 50 * MS), EV_FAULT, 0, 0);
}

static void world_fini (struct world *w)
{
    for (uint32_t i = 1; i <= w->nlives; i++) {
        struct life *l = w->life[i];

        life_drop_asks (l);
        for (size_t k = 0; k < l->nwaiting; k++)
            message_unref (l->waiting[k].msg);
        free (l->waiting);
        free (l->pager);
        node_destroy (l->node);
        authority_destroy (l->authority);
        free (l);
    }
    for (size_t i = 0; i < w->nevents; i++)
        message_unref (w->heap[i].msg);
    free (w->heap);
    for (uint32_t rank = 0; rank < w->nranks; rank++)
        free (w->left[rank].past);
    for (struct kept_page *kept = w->pages, *next; kept; kept = next) {
        next = kept->next;
        free (kept);
    }
    sim_check_destroy (w->check);
    sim_check_destroy (w->times);
}

static void add (struct sim_result *sum, const struct world *w)
{
    const struct sim_result *r = &w->result;

    for (uint32_t i = 1; i <= w->nlives; i++) {
        const struct node_stats *stats = node_stats (w->life[i]->node);

        sum->ranges += stats->renewals;
        sum->parts += stats->parts_received;
    }
    sum->events += r->events;
    sum->faults += r->faults;
    sum->requests += r->requests;
    sum->answered += r->answered;
    sum->failed += r->failed;
    sum->watermarks += r->watermarks;
    sum->paged += r->paged;
    sum->takeovers += r->takeovers;
    sum->ids += sim_check_ids (w->check);
    sum->lives += w->nlives;
    sum->sim_ms += w->t / 1000;
    if (sim_check_violation (w->check))
        snprintf (sum->violation, sizeof (sum->violation), "%s", sim_check_violation (w->check));
}

void sim_run (const struct sim_config *config, struct sim_result *sum)
{
    struct world *w = must (malloc (sizeof (*w)));

    world_init (w, config);
    run_until (w, UINT64_MAX, config->steps);
    if (!sim_check_violation (w->check))
        heal (w);
    if (!sim_check_violation (w->check))
        final_requests (w);
    if (!sim_check_violation (w->check))
        stop_all (w);
    add (sum, w);
    world_fini (w);
    free (w);
}
