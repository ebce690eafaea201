/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sim.c - one history of a tree of nodes, decided by a seed
 *
 * A world is a heap of events in order of time.  A 'life' is one process of a broker: it may be one of several that
 * claim its rank.  It has a clock of its own (CLOCK_BOOTTIME: any offset, up to 50 ppm wrong), a node, and a link to a
 * life of an ancestor's rank.  A link has a number; what was sent on a link is lost when that has another one.
 *
 * Time 't' is real time in microseconds.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/fluid/node_private.h"
#include "sim/check.h"
#include "sim/sim.h"

#define MAX_LIVES 4096
#define MAX_RANKS 64
#define MS UINT64_C (1000)
#define EPOCH_MS INT64_C (1767225600000)
#define NTAGS 64

enum event_type {
    EV_TICK,      /* a node's deadline */
    EV_MESSAGE,   /* arrives */
    EV_STORED,    /* the disk has done, or not */
    EV_ATTACH,    /* a life looks for a parent */
    EV_LOST,      /* a life notices that its link is gone */
    EV_HEARTBEAT,
    EV_CLIENT,    /* a client asks */
    EV_RESUME,    /* a life that was paused goes on */
    EV_START,     /* a rank is started */
    EV_FAULT,     /* the next one */
};

enum message_type { MSG_BLOCK, MSG_CANCEL, MSG_IDS, MSG_ERROR, MSG_LEASE, MSG_GRANTS, MSG_PING, MSG_PONG, MSG_REPORT };

struct message {
    enum message_type type;
    uint32_t from, to; /* lives */
    uint64_t link;
    uint32_t tag;
    uint32_t count; /* ids; errnum */
    fluid_t after;
    struct run *run;
    size_t nruns;
    struct lease_request req;
    struct lease_answer answer;
    struct idt_clock_sample sample;
    struct report report;
    unsigned refs; /* a message may arrive twice */
};

struct event {
    uint64_t t;
    uint64_t order;
    enum event_type type;
    uint32_t life; /* or rank */
    uint64_t n;    /* link, horizon, ... */
    struct message *msg;
};

/* A request that a node has: of a client, or of a child. */
struct ask {
    struct ask *next;
    bool client;
    uint32_t life;   /* that was asked */
    uint32_t count;
    fluid_t after;
    int answers;
    bool final; /* asked after everything healed */
    uint32_t child; /* life that asked */
    uint64_t link;
    uint32_t tag;
};

struct life {
    bool alive;
    bool paused;
    uint32_t rank;
    char uuid[IDT_MSG_UUID_LEN + 1];
    struct node *node;
    struct world *w;
    uint32_t id;
    uint64_t boot_offset;
    int64_t boot_ppm;
    uint32_t parent; /* life; 0: none */
    uint64_t link;   /* number of the link to it; 0: none */
    bool told_up;
    unsigned spins;  /* ticks in a row that asked for another one at once */
    uint64_t tick_t; /* next tick that is planned; UINT64_MAX: none */
    uint32_t tags[NTAGS]; /* of lease requests that went up */
    unsigned ntags;
    fluid_t last_id; /* newest that left this node to clients */
    uint64_t last_reading;
    struct event *waiting; /* while paused */
    size_t nwaiting, waiting_size;
    struct ask *asks; /* all that this node was asked and has not answered */
    uint64_t until_us;   /* when it may not use its ranges any more, and its newest timestamp, as last seen */
    uint64_t cursor_ms;
    uint64_t made_ms;    /* what it made up to here may leave late */
    bool storing;
    struct lease_record record; /* a commit that is under way */
};

struct world {
    const struct sim_config *config;
    struct sim_result result;
    struct check *check;
    uint64_t random;
    uint64_t t;
    struct event *heap;
    size_t nevents, heap_size;
    uint64_t order;

    uint32_t nranks, kary, max_generators;
    uint64_t lease_ms, timeout_ms;
    unsigned loss, repeat; /* of 1000 messages */
    uint64_t delay_us;
    bool gentle_root; /* the root lives through: bounds are checked */
    bool healing; /* no more faults */
    bool healed;  /* and what was under way is over */

    struct life *life[MAX_LIVES];
    uint32_t nlives;
    uint32_t current[MAX_RANKS]; /* newest life of a rank; 0: none */
    uint64_t last_link;

    struct lease_record disk; /* durable */
    uint64_t watermark_ms;    /* highest that a root told */
    bool disk_failing;
    uint64_t disk_delay_us;
    int64_t wall_offset_us; /* of the root's host */
};

static void *must (void *p)
{
    if (!p)
        abort ();
    return p;
}

/* --- chance -------------------------------------------------------------------------------------------- */

static uint64_t next_random (struct world *w)
{
    uint64_t z = w->random += UINT64_C (0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C (0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t below (struct world *w, uint64_t n)
{
    return next_random (w) % n;
}

static bool chance (struct world *w, unsigned of_1000)
{
    return below (w, 1000) < of_1000;
}

/* --- events ---------------------------------------------------------------------------------------------- */

static bool earlier (const struct event *a, const struct event *b)
{
    return a->t != b->t ? a->t < b->t : a->order < b->order;
}

static void swap (struct event *a, struct event *b)
{
    struct event e = *a;

    *a = *b;
    *b = e;
}

static void push (struct world *w, struct event e)
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

static struct event pop (struct world *w)
{
    struct event e = w->heap[0];
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

static void later (struct world *w, uint64_t us, enum event_type type, uint32_t life, uint64_t n)
{
    push (w, (struct event){ .t = w->t + us, .type = type, .life = life, .n = n });
}

static void say (struct world *w, const struct life *l, const char *what)
{
    if (w->config->verbose)
        printf ("# %9.3f ms: rank %u life %u: %s\n", (double)w->t / 1000, (unsigned)l->rank, (unsigned)l->id, what);
}

/* --- messages --------------------------------------------------------------------------------------------- */

static void *copy (const void *p, size_t n, size_t size)
{
    void *q = n > 0 ? must (malloc (n * size)) : NULL;

    if (n > 0)
        memcpy (q, p, n * size);
    return q;
}

static void message_unref (struct message *msg)
{
    if (!msg || --msg->refs > 0)
        return;
    free (msg->run);
    free ((void *)msg->req.want);
    free ((void *)msg->req.back);
    free ((void *)msg->answer.grant);
    free (msg);
}

/* Mostly quick, sometimes very late: later ones overtake. */
static uint64_t delay (struct world *w)
{
    uint64_t us = 20 + below (w, w->delay_us);

    return !w->healing && chance (w, 20) ? us * (1 + below (w, 50)) : us;
}

static void send (struct world *w, const struct message *msg)
{
    struct message *m = must (malloc (sizeof (*m)));
    unsigned copies = w->healing ? 1 : !chance (w, w->loss) + chance (w, w->repeat);

    *m = *msg;
    m->refs = 1;
    m->run = copy (msg->run, msg->nruns, sizeof (msg->run[0]));
    m->req.want = copy (msg->req.want, msg->req.nwant, sizeof (msg->req.want[0]));
    m->req.back = copy (msg->req.back, msg->req.nback, sizeof (msg->req.back[0]));
    m->answer.grant = copy (msg->answer.grant, msg->answer.ngrant, sizeof (msg->answer.grant[0]));
    w->result.faults += copies != 1;
    for (unsigned i = 0; i < copies; i++, m->refs++)
        push (w, (struct event){ .t = w->t + delay (w), .type = EV_MESSAGE, .life = m->to, .msg = m });
    message_unref (m);
}

/* --- lives -------------------------------------------------------------------------------------------------- */

static uint64_t boot_us (const struct life *l)
{
    return l->boot_offset + l->w->t + (uint64_t)((int64_t)(l->w->t / 1000) * l->boot_ppm / 1000);
}

static int64_t wall_us (const struct world *w)
{
    return EPOCH_MS * 1000 + (int64_t)w->t + w->wall_offset_us;
}

/* What a node holds now is its alone.  Asked before ids leave it, and after each word with it. */
static void look_at_ranges (struct life *l)
{
    struct world *w = l->w;
    struct node *n = l->node;

    for (unsigned i = 0; n->owner && i < n->holder.nranges; i++) {
        check_hold (w->check, n->gen.generator, l->id, n->holder.range[i].lo_ms, n->holder.range[i].hi_ms);
        if (n->root && n->holder.range[i].hi_ms > w->disk.horizon_ms)
            check_fail (w->check, "the root holds more than is on the disk");
    }
}

/* Who may use his ranges no more is not waited for.  What he made before, for a request that is not complete yet, is on
 * its way.
 */
static void note_use (struct life *l)
{
    const struct node *n = l->node;

    if (boot_us (l) >= l->until_us)
        l->made_ms = l->cursor_ms;
    l->until_us = n->holder.until_us;
    l->cursor_ms = n->cursor_ms;
}

/* Its clock did not go back, what it holds is its alone; when does it want to be called? */
static void look (struct life *l)
{
    struct world *w = l->w;
    struct node *n = l->node;
    uint64_t boot = boot_us (l);

    look_at_ranges (l);
    note_use (l);
    if (n->clock.known) {
        uint64_t reading = clock_read (&n->clock, boot);
        if (reading < l->last_reading)
            check_fail (w->check, "the clock of life %u goes back", (unsigned)l->id);
        l->last_reading = reading;
    }
    if (n->root && lease_is_distrusted (n->table))
        check_fail (w->check, "the root takes a range that it gave itself for another's");
    uint64_t due = node_deadline (n);
    if (due == UINT64_MAX || n->stopped)
        return;
    l->spins = due <= boot ? l->spins + 1 : 0;
    if (l->spins > 100)
        check_fail (w->check, "life %u does not rest", (unsigned)l->id);
    uint64_t t = w->t + 1 + (due > boot ? due - boot + (due - boot) / 10000 : 0);
    if (t < l->tick_t) {
        l->tick_t = t;
        push (w, (struct event){ .t = t, .type = EV_TICK, .life = l->id });
    }
}

/* The root's clock is right; others know theirs as well as they say. */
static void check_bounds (struct world *w)
{
    struct life *root = w->life[w->current[0]];

    if (!w->gentle_root || !root || !root->alive || root->paused)
        return;
    uint64_t truth = clock_read (&root->node->clock, boot_us (root));
    for (uint32_t i = 1; i <= w->nlives; i++) {
        struct life *l = w->life[i];

        if (!l->alive || l->paused || !l->node->clock.known)
            continue;
        uint64_t reading = clock_read (&l->node->clock, boot_us (l));
        uint64_t off = reading > truth ? reading - truth : truth - reading;
        if (off > clock_bound (&l->node->clock, boot_us (l)))
            check_fail (w->check, "the clock of life %u is %llu us off, more than its bound", (unsigned)i,
                        (unsigned long long)off);
    }
}

/* --- requests of clients and children ------------------------------------------------------------------------- */

static struct ask *ask_create (struct life *l, bool client, uint32_t count, fluid_t after)
{
    struct ask *a = must (calloc (1, sizeof (*a)));

    *a = (struct ask){ .next = l->asks, .client = client, .life = l->id, .count = count, .after = after };
    a->final = l->w->healed;
    l->asks = a;
    return a;
}

static void ask_destroy (struct life *l, struct ask *a)
{
    struct ask **link = &l->asks;

    while (*link && *link != a)
        link = &(*link)->next;
    if (!*link) {
        check_fail (l->w->check, "a request of life %u was answered twice", (unsigned)l->id);
        return;
    }
    *link = a->next;
    free (a);
}

static void check_answer (struct world *w, struct life *l, const struct ask *a, const struct run *run, size_t nruns)
{
    uint64_t count = 0;

    if (nruns > 0 && run[0].first <= a->after)
        check_fail (w->check, "an id is not above the one that the request named");
    for (size_t i = 0; i < nruns; i++) {
        check_issue (w->check, &run[i]);
        if (run[i].first <= l->last_id)
            check_fail (w->check, "ids of life %u do not increase", (unsigned)l->id);
        l->last_id = run[i].first + run[i].n - 1;
        count += run[i].n;
    }
    if (count != a->count)
        check_fail (w->check, "a request for %u ids got %llu", (unsigned)a->count, (unsigned long long)count);
    w->result.answered++;
}

/* What was made here leaves now: it must not be below what a root has told. */
static void check_watermark (struct life *l, const struct run *run, size_t nruns)
{
    uint64_t made_ms = boot_us (l) >= l->until_us ? l->cursor_ms : l->made_ms;

    for (size_t i = 0; i < nruns; i++) {
        struct fluid_fields f = fluid_split (run[i].first);

        if (l->node->owner && f.generator == l->node->gen.generator && f.timestamp_ms < l->w->watermark_ms
            && f.timestamp_ms > made_ms)
            check_fail (l->w->check, "life %u makes an id at %llu, below the watermark %llu", (unsigned)l->id,
                        (unsigned long long)f.timestamp_ms, (unsigned long long)l->w->watermark_ms);
    }
}

static void reply_op (void *arg, void *cookie, const struct run *run, size_t nruns)
{
    struct life *l = arg;
    struct ask *a = cookie;

    look_at_ranges (l);
    check_watermark (l, run, nruns);
    if (a->client)
        check_answer (l->w, l, a, run, nruns);
    else
        send (l->w, &(struct message){ .type = MSG_IDS, .from = l->id, .to = a->child, .link = a->link, .tag = a->tag,
                                       .run = (struct run *)run, .nruns = nruns });
    ask_destroy (l, a);
}

static void fail_op (void *arg, void *cookie, int errnum, const char *text)
{
    struct life *l = arg;
    struct ask *a = cookie;

    if (a->client)
        l->w->result.failed++;
    else
        send (l->w, &(struct message){ .type = MSG_ERROR, .from = l->id, .to = a->child, .link = a->link, .tag = a->tag,
                                       .count = (uint32_t)errnum });
    if (a->client && a->final && errnum != EAGAIN)
        check_fail (l->w->check, "life %u of rank %u cannot be served though all is well: %s", (unsigned)l->id,
                    (unsigned)l->rank, text ? text : "");
    ask_destroy (l, a);
}

static int forward_op (void *arg, uint32_t tag, uint32_t count, fluid_t after)
{
    struct life *l = arg;

    if (l->link == 0)
        return -1;
    send (l->w, &(struct message){ .type = MSG_BLOCK, .from = l->id, .to = l->parent, .link = l->link, .tag = tag,
                                   .count = count, .after = after });
    return 0;
}

static void cancel_op (void *arg)
{
    struct life *l = arg;

    if (l->link != 0)
        send (l->w, &(struct message){ .type = MSG_CANCEL, .from = l->id, .to = l->parent, .link = l->link });
}

static int lease_up_op (void *arg, uint32_t tag, const struct lease_request *req)
{
    struct life *l = arg;

    if (l->link == 0)
        return -1;
    if (tag != 0)
        l->tags[l->ntags++ % NTAGS] = tag;
    send (l->w, &(struct message){
                    .type = MSG_LEASE, .from = l->id, .to = l->parent, .link = l->link, .tag = tag, .req = *req });
    return 0;
}

static void lease_reply_op (void *arg, void *cookie, const struct lease_answer *answer)
{
    struct life *l = arg;
    struct ask *a = cookie;

    for (size_t i = 0; i < answer->ngrant; i++)
        if (l->node->root && answer->grant[i].hi_ms > l->w->disk.horizon_ms)
            check_fail (l->w->check, "the root gives more than is on the disk");
    if (a->tag != 0)
        send (l->w, &(struct message){ .type = MSG_GRANTS, .from = l->id, .to = a->child, .link = a->link, .tag = a->tag,
                                       .answer = *answer });
    ask_destroy (l, a);
}

static void store_op (void *arg, const struct lease_record *record)
{
    struct life *l = arg;

    l->storing = true;
    l->record = *record;
    later (l->w, 100 + below (l->w, l->w->disk_delay_us), EV_STORED, l->id, 0);
}

static void report_up_op (void *arg, const struct report *report)
{
    struct life *l = arg;

    if (l->link != 0)
        send (l->w, &(struct message){
                        .type = MSG_REPORT, .from = l->id, .to = l->parent, .link = l->link, .report = *report });
}

static void log_op (void *arg, int level, const char *text)
{
    say (((struct life *)arg)->w, arg, text);
}

static const struct node_ops ops = { reply_op, fail_op, forward_op, cancel_op, lease_up_op, lease_reply_op, store_op, report_up_op, log_op };

/* --- coming and going ------------------------------------------------------------------------------------------- */

static struct life *life_start (struct world *w, uint32_t rank)
{
    struct node_config config = { .rank = rank,
                                  .max_generators = w->max_generators,
                                  .lease_ms = w->lease_ms,
                                  .max_backlog_ms = 100,
                                  .forward_timeout_ms = w->timeout_ms,
                                  .max_waiting = 50 };
    struct life *l;

    if (w->nlives + 1 == MAX_LIVES)
        return NULL;
    l = must (calloc (1, sizeof (*l)));
    *l = (struct life){ .alive = true, .rank = rank, .w = w, .id = ++w->nlives, .tick_t = UINT64_MAX };
    l->boot_offset = below (w, 1000000000);
    l->boot_ppm = (int64_t)below (w, 101) - 50;
    snprintf (l->uuid, sizeof (l->uuid), "%08x-0000-4000-8000-%012x", (unsigned)rank, (unsigned)l->id);
    memcpy (config.incarnation, l->uuid, sizeof (l->uuid));
    l->node = must (node_create (&config, &ops, l));
    w->life[l->id] = l;
    w->current[rank] = l->id;
    say (w, l, "starts");
    if (rank == 0)
        node_start_root (l->node, boot_us (l), wall_us (w), EPOCH_MS, &w->disk);
    else
        later (w, below (w, 2000), EV_ATTACH, l->id, 0);
    later (w, below (w, 5000), EV_CLIENT, l->id, 0);
    later (w, 1000, EV_HEARTBEAT, l->id, 0);
    look (l);
    return l;
}

/* Requests that nobody will answer any more. */
static void drop_asks (struct life *l)
{
    while (l->asks) {
        struct ask *a = l->asks;
        l->asks = a->next;
        free (a);
    }
}

/* What a child asked is not wanted any more. */
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

static void forget_child (struct life *parent, uint32_t child)
{
    if (!parent || !parent->alive || parent->paused)
        return;
    node_cancel (parent->node, boot_us (parent), gone_cb, &(struct gone){ parent, child });
    look (parent);
}

/* Links to it break; each child notices in its time. */
static void life_end (struct life *l)
{
    struct world *w = l->w;

    l->alive = false;
    if (l->link != 0)
        forget_child (w->life[l->parent], l->id);
    l->link = 0;
    drop_asks (l);
    for (size_t i = 0; i < l->nwaiting; i++)
        message_unref (l->waiting[i].msg);
    l->nwaiting = 0;
    for (uint32_t i = 1; i <= w->nlives; i++)
        if (w->life[i]->alive && w->life[i]->link != 0 && w->life[i]->parent == l->id)
            later (w, below (w, 20 * MS), EV_LOST, i, w->life[i]->link);
    if (w->current[l->rank] == l->id)
        w->current[l->rank] = 0;
}

static void life_kill (struct life *l)
{
    say (l->w, l, "is killed");
    if (l->storing && chance (l->w, 500)) /* the disk had it already, and nobody heard of it */
        l->w->disk = l->record;
    life_end (l);
}

/* A clean stop: what it says in its last moments is on its way.  A root stores its last word. */
static void life_stop (struct life *l)
{
    struct world *w = l->w;
    bool root = l->node->root;

    say (w, l, "stops");
    struct lease_record last = { 0 };
    node_stop (l->node, boot_us (l), &last);
    look (l);
    if (l->node->owner)
        check_close (w->check, l->node->gen.generator, l->id, l->node->cursor_ms + 1);
    if (root)
        w->disk = last;
    life_end (l);
}

/* Ask the nearest ancestor that lives.  The link's number changes: what is on the way on an old one is lost. */
static void attach (struct life *l)
{
    struct world *w = l->w;
    uint32_t rank = l->rank;

    while (rank > 0) {
        rank = (rank - 1) / w->kary;
        uint32_t id = w->current[rank];
        if (id != 0 && (w->healing || !chance (w, 100))) {
            l->parent = id;
            l->link = ++w->last_link;
            l->told_up = true;
            later (w, 1, EV_HEARTBEAT, l->id, 1);
            node_parent (l->node, boot_us (l), true);
            return;
        }
    }
    later (w, 1 + below (w, 20 * MS), EV_ATTACH, l->id, 0);
}

/* The broker tells a module of its requests that are lost, mostly. */
static void lose (struct life *l)
{
    struct world *w = l->w;

    forget_child (w->life[l->parent], l->id);
    l->link = 0;
    if (chance (w, 900) && l->node->forward.busy)
        node_forward_failed (l->node, boot_us (l), l->node->forward.tag, EHOSTUNREACH);
    for (unsigned i = l->ntags > NTAGS ? l->ntags - NTAGS : 0; i < l->ntags; i++)
        if (chance (w, 900))
            node_lease_failed (l->node, boot_us (l), l->tags[i % NTAGS]);
    l->ntags = 0;
    if (l->told_up)
        node_parent (l->node, boot_us (l), false);
    l->told_up = false;
    later (w, 1 + below (w, 10 * MS), EV_ATTACH, l->id, 0);
}

/* --- what happens to a life ---------------------------------------------------------------------------------------- */

static void on_block (struct life *l, const struct message *m)
{
    struct ask *a = ask_create (l, false, m->count, m->after);

    a->child = m->from;
    a->link = m->link;
    a->tag = m->tag;
    node_block (l->node, boot_us (l), &(struct node_request){ a, m->count, m->after, true });
}

static void on_lease (struct life *l, const struct message *m)
{
    struct ask *a = ask_create (l, false, 0, 0);

    a->child = m->from;
    a->link = m->link;
    a->tag = m->tag;
    node_lease_request (l->node, boot_us (l), a, &m->req);
}

static void on_ping (struct life *l, const struct message *m)
{
    struct message pong = { .type = MSG_PONG, .from = l->id, .to = m->from, .link = m->link, .sample = m->sample };

    if (!node_clock (l->node, boot_us (l), &pong.sample.peer_received_us, &pong.sample.peer_bound_us))
        return;
    pong.sample.peer_sent_us = pong.sample.peer_received_us;
    send (l->w, &pong);
}

static void on_pong (struct life *l, const struct message *m)
{
    struct idt_clock_sample s = m->sample;

    s.received_us = boot_us (l);
    node_sample (l->node, boot_us (l), &s);
}

/* A message is taken while its link is the one it came on, and both ends live. */
static bool arrives (const struct world *w, const struct message *m)
{
    const struct life *from = w->life[m->from], *to = w->life[m->to];
    bool up = m->type == MSG_BLOCK || m->type == MSG_CANCEL || m->type == MSG_LEASE || m->type == MSG_PING
              || m->type == MSG_REPORT;
    const struct life *child = up ? from : to;

    /* what a child said last may come when it is gone */
    return to->alive && (child->link == m->link || (!from->alive && (m->type == MSG_LEASE || m->type == MSG_REPORT)));
}

static void on_message (struct life *l, const struct message *m)
{
    uint64_t boot = boot_us (l);

    if (!arrives (l->w, m))
        return;
    switch (m->type) {
    case MSG_BLOCK:
        on_block (l, m);
        break;
    case MSG_CANCEL:
        forget_child (l, m->from);
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
        node_lease_answered (l->node, boot, m->tag, &m->answer);
        break;
    }
}

static uint32_t some_count (struct world *w)
{
    switch (below (w, 8)) {
    case 0:
        return 1 + (uint32_t)below (w, 5000);
    case 1:
        return 1024;
    default:
        return 1 + (uint32_t)below (w, 20);
    }
}

static void on_client (struct life *l)
{
    struct world *w = l->w;
    uint32_t count = some_count (w);
    fluid_t after = chance (w, 300) ? l->last_id : 0;

    if (chance (w, 20) && w->nlives > 1) { /* an id that came from elsewhere */
        fluid_t other = w->life[1 + below (w, w->nlives)]->last_id;
        after = other > after ? other : after;
    }
    w->result.requests++;
    node_block (l->node, boot_us (l), &(struct node_request){ ask_create (l, true, count, after), count, after, false });
    if (!w->healing)
        later (w, 200 + below (w, chance (w, 300) ? 300 : 8 * MS), EV_CLIENT, l->id, 0);
}

/* A root after a crash may know of an older one. */
static void ask_watermark (struct life *l)
{
    struct world *w = l->w;
    uint64_t ms;

    if (!node_watermark (l->node, boot_us (l), &ms))
        check_fail (w->check, "the root cannot tell a watermark");
    else if (ms > w->disk.horizon_ms)
        check_fail (w->check, "the watermark is above what is on the disk");
    else if (ms > w->watermark_ms) {
        w->watermark_ms = ms;
        w->result.watermarks++;
    }
}

static void on_heartbeat (struct life *l, bool once)
{
    struct world *w = l->w;

    if (l->node->root) {
        node_wall (l->node, boot_us (l), wall_us (w));
        ask_watermark (l);
    }
    else if (l->link != 0)
        send (w, &(struct message){ .type = MSG_PING, .from = l->id, .to = l->parent, .link = l->link,
                                    .sample = { .sent_us = boot_us (l) } });
    if (!once)
        later (w, 30 * MS, EV_HEARTBEAT, l->id, 0);
    check_bounds (w);
}

/* A commit: the disk has it, then the root hears of it.  Either may be missing. */
static void on_stored (struct life *l)
{
    struct world *w = l->w;

    if (!l->alive)
        return;
    l->storing = false;
    if (!w->disk_failing || chance (w, 300))
        w->disk = l->record;
    if (w->disk_failing)
        node_store_failed (l->node, boot_us (l));
    else
        node_stored (l->node, boot_us (l), l->record.horizon_ms);
}

static void wait_for_resume (struct life *l, const struct event *e)
{
    if (l->nwaiting == l->waiting_size) {
        l->waiting_size = l->waiting_size ? 2 * l->waiting_size : 16;
        l->waiting = must (realloc (l->waiting, l->waiting_size * sizeof (l->waiting[0])));
    }
    l->waiting[l->nwaiting++] = *e;
}

static void resume (struct life *l)
{
    l->paused = false;
    say (l->w, l, "goes on");
    for (size_t i = 0; i < l->nwaiting; i++) { /* all at once, in order */
        l->waiting[i].t = l->w->t;
        push (l->w, l->waiting[i]);
    }
    l->nwaiting = 0;
}

static void on_life_event (struct life *l, const struct event *e)
{
    switch (e->type) {
    case EV_TICK:
        if (e->t >= l->tick_t)
            l->tick_t = UINT64_MAX;
        node_tick (l->node, boot_us (l));
        break;
    case EV_MESSAGE:
        on_message (l, e->msg);
        break;
    case EV_ATTACH:
        if (l->link == 0)
            attach (l);
        break;
    case EV_LOST:
        if (l->link == e->n)
            lose (l);
        break;
    case EV_HEARTBEAT:
        on_heartbeat (l, e->n != 0);
        break;
    case EV_CLIENT:
        on_client (l);
        break;
    default:
        assert (false);
    }
    look (l);
}

/* --- faults ----------------------------------------------------------------------------------------------------------- */

static struct life *some_life (struct world *w)
{
    for (int i = 0; i < 20 && w->nlives > 0; i++) {
        struct life *l = w->life[1 + below (w, w->nlives)];
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
    later (w, below (w, 2) ? below (w, 5 * MS) : below (w, 2 * w->lease_ms * MS), EV_START, rank, 0);
}

static void fault_pause (struct world *w, struct life *l)
{
    if (l->paused)
        return;
    say (w, l, "is paused");
    l->paused = true;
    later (w, below (w, 3 * w->lease_ms * MS), EV_RESUME, l->id, 0);
}

static void fault_disk (struct world *w)
{
    static const uint64_t delays[] = { 500, 5000, 50000, 500000 };

    w->disk_failing = chance (w, 300);
    w->disk_delay_us = delays[below (w, 4)];
}

/* The whole instance stops, leaves first, and starts again: who is killed instead may live on where nobody hears him. */
static void fault_instance (struct world *w)
{
    for (uint32_t rank = w->nranks; rank > 0; rank--) {
        struct life *l = w->life[w->current[rank - 1]];

        if (w->current[rank - 1] == 0)
            continue;
        if (chance (w, 700) && !l->paused)
            life_stop (l);
        else
            life_kill (l);
        start_later (w, rank - 1);
    }
}

static void make_fault (struct world *w)
{
    struct life *l = some_life (w);
    unsigned kind = (unsigned)below (w, 100);

    w->result.faults++;
    if (kind < 3 && !w->gentle_root)
        fault_instance (w);
    else if (kind < 10)
        fault_disk (w);
    else if (kind < 17)
        w->wall_offset_us += (int64_t)below (w, 4 * w->lease_ms * MS) - (int64_t)(2 * w->lease_ms * MS);
    else if (!l)
        return;
    else if (kind < 40) {
        life_kill (l);
        start_later (w, l->rank);
    }
    else if (kind < 50 && !l->paused) {
        life_stop (l);
        start_later (w, l->rank);
    }
    else if (kind < 58)
        start_later (w, l->rank); /* a second one that claims the rank: the first knows nothing of it */
    else if (kind < 80)
        fault_pause (w, l);
    else if (l->link != 0)
        later (w, 0, EV_LOST, l->id, l->link);
}

static void on_start (struct world *w, uint32_t rank)
{
    uint32_t lives = 0;

    for (uint32_t i = 1; i <= w->nlives; i++)
        lives += w->life[i]->alive && w->life[i]->rank == rank;
    if (rank == 0 && root_lives (w)) /* the file is locked: a second root does not start (B_TWO) */
        return;
    if (w->healing ? w->current[rank] == 0 : lives < 3)
        life_start (w, rank);
}

/* --- a history ----------------------------------------------------------------------------------------------------------- */

static void handle (struct world *w, const struct event *e)
{
    struct life *l = e->type != EV_START && e->type != EV_FAULT ? w->life[e->life] : NULL;

    if (e->type == EV_START)
        on_start (w, e->life);
    else if (e->type == EV_FAULT && !w->healing) {
        make_fault (w);
        later (w, below (w, w->lease_ms * MS / 2), EV_FAULT, 0, 0);
    }
    else if (e->type == EV_FAULT)
        return;
    else if (e->type == EV_RESUME) {
        if (l->alive && l->paused)
            resume (l);
    }
    else if (e->type == EV_STORED && !(l->alive && l->paused)) {
        on_stored (l);
        if (l->alive)
            look (l);
    }
    else if (l->alive && l->paused) {
        wait_for_resume (l, e);
        return; /* the message stays */
    }
    else if (l->alive)
        on_life_event (l, e);
    message_unref (e->msg);
}

static void run_until (struct world *w, uint64_t t, uint64_t steps)
{
    while (w->nevents > 0 && w->heap[0].t <= t && steps-- > 0 && !check_violation (w->check)) {
        struct event e = pop (w);

        w->t = e.t;
        w->result.events++;
        handle (w, &e);
    }
}

/* One life a rank, all links and disks well: then everyone is served. */
static void heal (struct world *w)
{
    w->healing = true;
    w->disk_failing = false;
    w->disk_delay_us = 500;
    for (uint32_t i = 1; i <= w->nlives; i++) {
        struct life *l = w->life[i];

        if (l->alive && l->paused)
            resume (l);
        if (l->alive && w->current[l->rank] != i)
            life_kill (l);
    }
    for (uint32_t rank = 0; rank < w->nranks; rank++)
        if (w->current[rank] == 0)
            on_start (w, rank);
    run_until (w, w->t + (600 + w->timeout_ms + 5 * w->lease_ms) * MS, UINT64_MAX); /* the slowest commit: 500 ms */
}

/* Whether a lease is much longer than the way to the root and back.  Else holders come and go all the time. */
static bool is_near (const struct world *w)
{
    uint64_t hops = 0;

    for (uint32_t rank = w->nranks - 1; rank > 0; rank = (rank - 1) / w->kary)
        hops++;
    return 8 * hops * w->delay_us < w->lease_ms * MS;
}

/* All is well for some leases: the watermark is as old as the reports are. */
static void check_progress (struct world *w)
{
    struct life *root = w->life[w->current[0]];
    uint64_t now_ms = clock_read (&root->node->clock, boot_us (root)) / 1000;

    ask_watermark (root);
    if (is_near (w) && w->watermark_ms + 2 * w->lease_ms + w->timeout_ms < now_ms)
        check_fail (w->check, "the watermark %llu stays behind the time %llu", (unsigned long long)w->watermark_ms,
                    (unsigned long long)now_ms);
}

static void final_requests (struct world *w)
{
    w->healed = true;
    for (uint32_t rank = 0; rank < w->nranks; rank++)
        if (w->current[rank] != 0) {
            on_client (w->life[w->current[rank]]);
            look (w->life[w->current[rank]]);
        }
    run_until (w, w->t + (2 * w->timeout_ms + 5 * w->lease_ms) * MS, UINT64_MAX);
    check_progress (w);
    for (uint32_t i = 1; i <= w->nlives && !check_violation (w->check); i++)
        for (struct ask *a = w->life[i]->asks; a; a = a->next)
            if (w->life[i]->alive && a->client)
                check_fail (w->check, "a request of life %u was never answered", (unsigned)i);
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

    *w = (struct world){ .config = config, .random = config->seed, .check = check_create () };
    w->nranks = config->nodes ? config->nodes : 2 + (uint32_t)below (w, 15);
    w->kary = 1 + (w->nranks > 16) + (uint32_t)below (w, 4);
    w->max_generators = 1 + (uint32_t)below (w, w->nranks + 1);
    w->lease_ms = leases[below (w, 3)];
    w->timeout_ms = 250 + below (w, 250); /* there is time for sixteen hops, there and back, twice */
    w->loss = (unsigned)below (w, 3) * 30;
    w->repeat = (unsigned)below (w, 3) * 30;
    w->delay_us = 50 + below (w, 3000);
    w->disk_delay_us = 500;
    w->gentle_root = below (w, 4) == 0;
    w->t = 1000000;
    w->wall_offset_us = (int64_t)below (w, 1000000);
    for (uint32_t rank = 0; rank < w->nranks; rank++)
        later (w, below (w, 3 * MS), EV_START, rank, 0);
    later (w, below (w, 50 * MS), EV_FAULT, 0, 0);
}

static void world_fini (struct world *w)
{
    for (uint32_t i = 1; i <= w->nlives; i++) {
        struct life *l = w->life[i];

        drop_asks (l);
        for (size_t k = 0; k < l->nwaiting; k++)
            message_unref (l->waiting[k].msg);
        free (l->waiting);
        node_destroy (l->node);
        free (l);
    }
    for (size_t i = 0; i < w->nevents; i++)
        message_unref (w->heap[i].msg);
    free (w->heap);
    check_destroy (w->check);
}

struct sim_result sim_run (const struct sim_config *config)
{
    struct world *w = must (malloc (sizeof (*w)));
    struct sim_result result;

    world_init (w, config);
    run_until (w, UINT64_MAX, config->steps);
    if (!check_violation (w->check))
        heal (w);
    if (!check_violation (w->check))
        final_requests (w);
    if (!check_violation (w->check))
        stop_all (w);
    for (uint32_t i = 1; i <= w->nlives; i++)
        w->result.ranges += w->life[i]->node->stats.renewals;
    result = w->result;
    result.ids = check_ids (w->check);
    result.lives = w->nlives;
    result.sim_ms = w->t / 1000;
    if (check_violation (w->check))
        snprintf (result.violation, sizeof (result.violation), "%s", check_violation (w->check));
    world_fini (w);
    free (w);
    return result;
}
