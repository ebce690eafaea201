/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* nemesis.c - carries out a plan against an instance, then heals it
 *
 * Steps overlap, so one may meet a broker in a state that another step brought it to: what the launcher then refuses
 * is counted and otherwise nothing.  Each step that is held counts at what it holds; what no step holds any more is
 * made good at once, and by the next look where that failed: brokers and instance are looked at twice a second.
 *
 *     START --up--> FAULTS --enough--> HEAL --all up, all served--> DRAIN --clients ended--> STOP --> reactor stops
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client.h"
#include "nemesis.h"

#define LOOK_MS 500.
#define LOOK_HEALING_MS 50.

enum phase { PHASE_START, PHASE_FAULTS, PHASE_HEAL, PHASE_DRAIN, PHASE_STOP };

/* A step that is held. */
struct hold {
    struct nemesis *n;
    struct step step;
    idt_watcher_t *w;
    LIST_ENTRY (hold) entry;
};

struct rank {
    uint32_t kills, stops, links; /* steps that hold it */
    bool running;                 /* a request to run it is under way */
    bool down;                    /* killed or stopped, and not known to be up again */
    uint32_t excuses;             /* reasons why it cannot serve */
    uint64_t since_us;
};

struct windows {
    struct window *w;
    size_t n, size;
};

struct nemesis {
    idt_reactor_t *r;
    struct nemesis_config config;
    const struct nemesis_ops *ops;
    void *arg;
    struct links *links;
    struct twin *twin;
    struct host_page *page;
    struct instance *instance;
    struct nemesis_report report;

    enum phase phase;
    bool process; /* there is an instance: starting, up or stopping */
    bool up;
    uint32_t instance_holds, disk_holds;
    struct rank rank[HOST_RANKS_MAX];
    LIST_HEAD (, hold) holds;
    struct plan plan;
    struct step next;
    uint64_t steps;
    uint64_t heal_us;
    bool finish; /* no more steps */
    bool was_whole;
    bool looking;
    idt_watcher_t *step_w, *look_w;

    struct windows outages, roots;
    uint64_t root_us; /* when a root was last told to start */
};

static void die (const char *what)
{
    fprintf (stderr, "chaos: %s: %s\n", what, strerror (errno));
    exit (1);
}

static void say (struct nemesis *n, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

static void say (struct nemesis *n, const char *fmt, ...)
{
    va_list ap;

    if (!n->config.verbose)
        return;
    fprintf (stderr, "# %10" PRIu64 " us: ", client_now_us ());
    va_start (ap, fmt);
    vfprintf (stderr, fmt, ap);
    va_end (ap);
    fputc ('\n', stderr);
}

static void surprise (struct nemesis *n, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

static void surprise (struct nemesis *n, const char *fmt, ...)
{
    char text[sizeof (n->report.surprise)];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (text, sizeof (text), fmt, ap);
    va_end (ap);
    if (n->report.surprises++ == 0)
        memcpy (n->report.surprise, text, sizeof (text));
    say (n, "surprise: %s", text);
}

/* --- excuses -------------------------------------------------------------------------------------- */

static uint64_t all_ranks (const struct nemesis *n)
{
    return UINT64_MAX >> (64 - n->plan.size);
}

static void add_window (struct windows *all, uint64_t from_us, uint64_t to_us, uint64_t ranks)
{
    if (all->n == all->size) {
        all->size = all->size ? 2 * all->size : 256;
        if (!(all->w = realloc (all->w, all->size * sizeof (all->w[0]))))
            die ("windows");
    }
    all->w[all->n++] = (struct window){ from_us, to_us, ranks };
}

/* A start of the root has ended, well or not: it may have served. */
static void add_root (struct nemesis *n)
{
    add_window (&n->roots, n->root_us, client_now_us () + n->plan.lease_ms * UINT64_C (1000), 1);
}

static void excuse (struct nemesis *n, uint64_t ranks)
{
    for (uint32_t rank = 0; rank < n->plan.size; rank++)
        if ((ranks >> rank & 1) && n->rank[rank].excuses++ == 0)
            n->rank[rank].since_us = client_now_us ();
}

static void unexcuse (struct nemesis *n, uint64_t ranks)
{
    for (uint32_t rank = 0; rank < n->plan.size; rank++)
        if ((ranks >> rank & 1) && --n->rank[rank].excuses == 0)
            add_window (&n->outages, n->rank[rank].since_us, client_now_us (), UINT64_C (1) << rank);
}

/* Without the root nobody can be counted on; without another broker its subtree attaches elsewhere. */
static void set_down (struct nemesis *n, uint32_t rank, bool down)
{
    uint64_t ranks = rank == 0 ? all_ranks (n) : UINT64_C (1) << rank;

    if (down == n->rank[rank].down)
        return;
    n->rank[rank].down = down;
    if (down)
        excuse (n, ranks);
    else
        unexcuse (n, ranks);
}

static bool is_free (const struct nemesis *n, uint32_t rank)
{
    const struct rank *r = &n->rank[rank];

    return n->up && r->kills == 0 && r->stops == 0 && !r->running;
}

/* --- brokers --------------------------------------------------------------------------------------- */

static void count_cb (void *arg, uint32_t rank, const char *error, const char *answer)
{
    struct nemesis *n = arg;

    n->report.asked++;
    n->report.refused += error != NULL;
}

static void run_cb (void *arg, uint32_t rank, const char *error, const char *answer)
{
    struct nemesis *n = arg;

    count_cb (arg, rank, error, answer);
    n->rank[rank].running = false;
    if (rank == 0)
        add_root (n);
    if (!error && is_free (n, rank))
        set_down (n, rank, false);
}

static void cont_cb (void *arg, uint32_t rank, const char *error, const char *answer)
{
    struct nemesis *n = arg;

    count_cb (arg, rank, error, answer);
    if (!error && is_free (n, rank))
        set_down (n, rank, false);
}

static void run_broker (struct nemesis *n, uint32_t rank)
{
    if (!is_free (n, rank))
        return;
    n->rank[rank].running = true;
    if (rank == 0)
        n->root_us = client_now_us ();
    set_down (n, rank, true);
    instance_ask (n->instance, "run", rank, run_cb, n);
}

static void begin_kill (struct nemesis *n, uint32_t rank)
{
    n->rank[rank].kills++;
    set_down (n, rank, true);
    instance_ask (n->instance, "kill", rank, count_cb, n);
}

static void begin_stop (struct nemesis *n, uint32_t rank)
{
    n->rank[rank].stops++;
    set_down (n, rank, true);
    instance_ask (n->instance, "stop", rank, count_cb, n);
}

static void end_kill (struct nemesis *n, uint32_t rank)
{
    if (--n->rank[rank].kills == 0)
        run_broker (n, rank);
}

static void end_stop (struct nemesis *n, uint32_t rank)
{
    if (--n->rank[rank].stops == 0)
        instance_ask (n->instance, "cont", rank, cont_cb, n);
}

/* --- links, clocks, disk ------------------------------------------------------------------------------ */

static uint64_t subtree (const struct nemesis *n, uint32_t top)
{
    uint64_t ranks = UINT64_C (1) << top;

    for (uint32_t r = top + 1; r < n->plan.size; r++)
        if (ranks >> ((r - 1) / n->plan.fanout) & 1)
            ranks |= UINT64_C (1) << r;
    return ranks;
}

static void begin_link (struct nemesis *n, uint32_t rank, const struct step *step)
{
    enum link_mode mode = step->fault == FAULT_CUT       ? (enum link_mode)step->amount
                          : step->fault == FAULT_CORRUPT ? LINK_CORRUPT
                                                         : LINK_RESET;

    n->rank[rank].links++;
    excuse (n, subtree (n, rank));
    links_set (n->links, rank, mode, step->amount);
}

static void end_link (struct nemesis *n, uint32_t rank)
{
    unexcuse (n, subtree (n, rank));
    if (--n->rank[rank].links == 0)
        links_set (n->links, rank, LINK_GOOD, 0);
}

/* There is one twin at a time; without its rank's PMI conversation it cannot be. */
static void begin_twin (struct nemesis *n, uint32_t rank, const struct step *step)
{
    if (step->amount)
        begin_link (n, rank, step);
    if (twin_start (n->twin, rank))
        n->report.twins++;
}

static void end_twin (struct nemesis *n, uint32_t rank, const struct step *step)
{
    twin_kill (n->twin, rank);
    if (step->amount)
        end_link (n, rank);
}

static void step_clock (struct nemesis *n, uint32_t rank, int32_t ms)
{
    atomic_store (&n->page->wall_us[rank], ms * INT64_C (1000));
}

static void set_disk (struct nemesis *n, enum host_disk disk)
{
    atomic_store (&n->page->disk, disk);
    syscall (SYS_futex, &n->page->disk, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void begin_disk (struct nemesis *n, enum fault fault)
{
    n->disk_holds++;
    excuse (n, all_ranks (n));
    set_disk (n, fault == FAULT_FULL ? HOST_DISK_FULL : fault == FAULT_BROKEN ? HOST_DISK_BROKEN : HOST_DISK_FROZEN);
}

static void mend_disk (struct nemesis *n)
{
    unexcuse (n, all_ranks (n));
    if (--n->disk_holds == 0)
        set_disk (n, HOST_DISK_GOOD);
}

static void root_killed_cb (void *arg, uint32_t rank, const char *error, const char *answer)
{
    count_cb (arg, rank, error, answer);
    mend_disk (arg);
    end_kill (arg, rank);
}

/* A root that is killed before it could catch up has only its horizon to go by. */
static void end_disk (struct nemesis *n, bool kill_root)
{
    if (!kill_root) {
        mend_disk (n);
        return;
    }
    n->rank[0].kills++;
    set_down (n, 0, true);
    instance_ask (n->instance, "kill", 0, root_killed_cb, n);
}

/* --- the instance --------------------------------------------------------------------------------------- */

static void set_up (struct nemesis *n, bool up)
{
    if (up == n->up)
        return;
    n->up = up;
    if (up)
        unexcuse (n, all_ranks (n));
    else
        excuse (n, all_ranks (n));
}

static void start_instance (struct nemesis *n)
{
    if (n->process || n->instance_holds > 0)
        return;
    n->process = true;
    n->root_us = client_now_us ();
    n->report.starts++;
    instance_start (n->instance);
}

static void begin_instance (struct nemesis *n, enum fault fault)
{
    set_up (n, false);
    if (n->instance_holds++ > 0)
        return;
    if (fault == FAULT_CRASH)
        instance_crash (n->instance);
    else
        instance_stop (n->instance);
}

static void end_instance (struct nemesis *n)
{
    if (--n->instance_holds == 0)
        start_instance (n);
}

/* --- steps -------------------------------------------------------------------------------------------------- */

static void begin_ranks (struct nemesis *n, uint32_t rank, const struct step *step)
{
    switch (step->fault) {
    case FAULT_KILL:
        begin_kill (n, rank);
        break;
    case FAULT_STOP:
        begin_stop (n, rank);
        break;
    case FAULT_CLOCK:
        step_clock (n, rank, step->amount);
        break;
    case FAULT_TWIN:
        begin_twin (n, rank, step);
        break;
    default:
        begin_link (n, rank, step);
        break;
    }
}

static void end_ranks (struct nemesis *n, uint32_t rank, const struct step *step)
{
    switch (step->fault) {
    case FAULT_KILL:
        end_kill (n, rank);
        break;
    case FAULT_STOP:
        end_stop (n, rank);
        break;
    case FAULT_CLOCK:
        break;
    case FAULT_TWIN:
        end_twin (n, rank, step);
        break;
    default:
        end_link (n, rank);
        break;
    }
}

static void begin (struct nemesis *n, const struct step *step)
{
    if (step->fault >= FAULT_CRASH)
        begin_instance (n, step->fault);
    else if (step->fault >= FAULT_FULL)
        begin_disk (n, step->fault);
    else
        for (uint32_t rank = 0; rank < n->plan.size; rank++)
            if (step->ranks >> rank & 1)
                begin_ranks (n, rank, step);
}

static void end (struct nemesis *n, const struct step *step)
{
    if (step->fault >= FAULT_CRASH)
        end_instance (n);
    else if (step->fault >= FAULT_FULL)
        end_disk (n, step->amount);
    else
        for (uint32_t rank = 0; rank < n->plan.size; rank++)
            if (step->ranks >> rank & 1)
                end_ranks (n, rank, step);
}

static void end_hold (struct hold *h)
{
    struct nemesis *n = h->n;

    LIST_REMOVE (h, entry);
    idt_watcher_destroy (h->w);
    end (n, &h->step);
    free (h);
}

static void hold_cb (idt_watcher_t *w, int revents, void *arg)
{
    end_hold (arg);
}

static void hold (struct nemesis *n, const struct step *step)
{
    struct hold *h = calloc (1, sizeof (*h));

    if (!h || !(h->w = idt_timer_watcher_create (n->r, step->hold_ms, 0, hold_cb, h)))
        die ("a step");
    h->n = n;
    h->step = *step;
    LIST_INSERT_HEAD (&n->holds, h, entry);
    idt_watcher_start (h->w);
}

static bool is_enough (const struct nemesis *n)
{
    if (n->finish)
        return true;
    if (n->config.steps > 0)
        return n->steps == n->config.steps;
    return client_now_us () - n->report.begun_us >= n->config.duration_us;
}

static void heal (struct nemesis *n)
{
    say (n, "healing");
    n->phase = PHASE_HEAL;
    n->heal_us = client_now_us ();
    n->report.faults_us = n->heal_us - n->report.begun_us;
    idt_watcher_stop (n->step_w);
    while (!LIST_EMPTY (&n->holds))
        end_hold (LIST_FIRST (&n->holds));
    idt_timer_watcher_reset (n->look_w, LOOK_HEALING_MS, LOOK_HEALING_MS);
}

static void plan_step (struct nemesis *n)
{
    if (is_enough (n)) {
        heal (n);
        return;
    }
    plan_next (&n->plan, &n->next);
    idt_timer_watcher_reset (n->step_w, n->next.gap_ms, 0);
    idt_watcher_start (n->step_w);
}

static void step_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct nemesis *n = arg;
    char text[256];

    step_print (&n->next, text, sizeof (text));
    say (n, "%s", text);
    n->steps++;
    n->report.steps[n->next.fault]++;
    begin (n, &n->next);
    hold (n, &n->next);
    plan_step (n);
}

/* --- looks --------------------------------------------------------------------------------------------------- */

/* Returns true if the broker is up, or was already asked to be. */
static bool look_at (struct nemesis *n, uint32_t rank, const char *state)
{
    bool exited = !strncmp (state, "exited", 6);

    if (!is_free (n, rank))
        return false;
    if (!strcmp (state, "up")) {
        set_down (n, rank, false);
        return true;
    }
    if (!strcmp (state, "starting"))
        return false;
    if (!strcmp (state, "stopped")) {
        instance_ask (n->instance, "cont", rank, cont_cb, n);
        return false;
    }
    say (n, "broker %u: %s", rank, state);
    if (exited && !strcmp (state, "exited with status 1"))
        n->report.gave_up++;
    else if (strcmp (state, "killed by SIGKILL") != 0)
        surprise (n, "broker %u %s", rank, state);
    run_broker (n, rank);
    return false;
}

static void drain (struct nemesis *n)
{
    say (n, "draining");
    n->phase = PHASE_DRAIN;
    n->report.done_us = client_now_us ();
    n->ops->drain (n->arg);
}

static void heal_on (struct nemesis *n, bool whole)
{
    if (client_now_us () - n->heal_us > n->config.heal_us) {
        surprise (n, n->was_whole ? "all brokers are up, but not every rank serves" : "not every broker came up");
        instance_crash (n->instance); /* so that no client is left waiting */
        drain (n);
    } else if (whole && n->ops->served (n->arg, !n->was_whole))
        drain (n);
    n->was_whole |= whole;
}

static void status_cb (void *arg, uint32_t unused, const char *error, const char *answer)
{
    struct nemesis *n = arg;
    json_t *o = error ? NULL : json_loads (answer, 0, NULL), *brokers = json_object_get (o, "brokers");
    size_t whole = 0;

    n->looking = false;
    for (size_t i = 0; i < json_array_size (brokers) && i < n->plan.size; i++)
        whole += look_at (n, i, json_string_value (json_object_get (json_array_get (brokers, i), "state")));
    json_decref (o);
    if (n->phase == PHASE_HEAL)
        heal_on (n, whole == n->plan.size);
}

static void look_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct nemesis *n = arg;

    if (n->phase == PHASE_DRAIN && n->ops->drained (n->arg)) {
        n->phase = PHASE_STOP;
        instance_stop (n->instance);
        if (!n->process)
            idt_reactor_stop (n->r);
    }
    if (n->phase >= PHASE_DRAIN || n->looking)
        return;
    start_instance (n);
    n->looking = true;
    instance_ask (n->instance, "status", 0, status_cb, n);
}

static void up_cb (void *arg)
{
    struct nemesis *n = arg;

    say (n, "the instance is up");
    add_root (n);
    if (n->instance_holds == 0)
        set_up (n, true);
    if (n->phase == PHASE_START) {
        n->phase = PHASE_FAULTS;
        n->report.begun_us = client_now_us ();
        n->ops->start (n->arg);
        idt_watcher_start (n->look_w);
        plan_step (n);
    }
}

static void down_cb (void *arg, int status)
{
    struct nemesis *n = arg;
    bool was_up = n->up;

    add_root (n);
    say (n, "the instance is down, wait status %#x", (unsigned)status);
    n->process = false;
    set_up (n, false);
    if (n->phase == PHASE_STOP || n->phase == PHASE_START) {
        if (n->phase == PHASE_START || (status != 0 && n->report.surprises == 0))
            surprise (n, "idtree start ended with wait status %#x", (unsigned)status);
        idt_reactor_stop (n->r);
    } else if (n->phase == PHASE_DRAIN)
        return;
    else if (was_up)
        surprise (n, "the instance ended by itself, with wait status %#x", (unsigned)status);
    else if (n->instance_holds == 0)
        n->report.failed_starts += status != 0;
}

static const struct instance_ops instance_ops = { .up = up_cb, .down = down_cb };

/* --- life ------------------------------------------------------------------------------------------------------ */

struct nemesis *nemesis_create (idt_reactor_t *r, const struct nemesis_config *config,
                                const struct instance_config *instance, struct links *links, struct twin *twin,
                                struct host_page *page,                                const struct nemesis_ops *ops, void *arg)
{
    struct nemesis *n = calloc (1, sizeof (*n));

    if (!n || !(n->step_w = idt_timer_watcher_create (r, 0, 0, step_cb, n))
        || !(n->look_w = idt_timer_watcher_create (r, LOOK_MS, LOOK_MS, look_cb, n)))
        die ("the nemesis");
    n->r = r;
    n->config = *config;
    n->plan = config->plan;
    n->ops = ops;
    n->arg = arg;
    n->links = links;
    n->twin = twin;
    n->page = page;
    n->instance = instance_create (r, instance, &instance_ops, n);
    LIST_INIT (&n->holds);
    excuse (n, all_ranks (n));
    return n;
}

void nemesis_destroy (struct nemesis *n)
{
    if (!n)
        return;
    instance_destroy (n->instance);
    idt_watcher_destroy (n->step_w);
    idt_watcher_destroy (n->look_w);
    free (n->outages.w);
    free (n->roots.w);
    free (n);
}

void nemesis_begin (struct nemesis *n)
{
    start_instance (n);
}

void nemesis_finish (struct nemesis *n)
{
    n->finish = true;
    if (n->phase == PHASE_FAULTS)
        heal (n);
}

const struct nemesis_report *nemesis_report (const struct nemesis *n)
{
    return &n->report;
}

const struct window *nemesis_outages (const struct nemesis *n, size_t *count)
{
    *count = n->outages.n;
    return n->outages.w;
}

const struct window *nemesis_roots (const struct nemesis *n, size_t *count)
{
    *count = n->roots.n;
    return n->roots.w;
}
