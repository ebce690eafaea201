/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* nemesis_faults.c - the effects of steps on brokers, links, clocks, the disk and the instance
 *
 * Each target counts the steps that hold it. When the last of these steps ends, the fault is undone. While a rank
 * cannot serve because of a fault, it is excused: that time is recorded for the checker.
 */
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client.h"
#include "die.h"
#include "nemesis_private.h"

#define REAP_MS 20

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

/* A start of the root has ended. Even if it failed, the root may have served. */
void nemesis_add_root (struct nemesis *n)
{
    add_window (&n->roots, n->root_us, client_now_us () + n->config.lease_max_us, 1);
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

/* Note that a rank is down or up. Without the root no rank is expected to serve. Without another broker only that rank
 * is excused, because its subtree attaches elsewhere.
 */
void nemesis_set_down (struct nemesis *n, uint32_t rank, bool down)
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

bool nemesis_is_free (const struct nemesis *n, uint32_t rank)
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

/* The launcher answers a "term" when the broker has ended. */
static void term_cb (void *arg, uint32_t rank, const char *error, const char *answer)
{
    struct nemesis *n = arg;

    count_cb (arg, rank, error, answer);
    n->report.ended += error == NULL;
}

static void stop_cb (void *arg, uint32_t rank, const char *error, const char *answer)
{
    struct nemesis *n = arg;

    count_cb (arg, rank, error, answer);
    if (!error && n->rank[rank].stopped_us == 0)
        n->rank[rank].stopped_us = client_now_us ();
}

/* The broker has a new process now. */
static void forget_process (struct rank *r)
{
    r->pid = 0;
    r->stopped_us = 0;
    r->ends = r->limited = false;
}

static void run_cb (void *arg, uint32_t rank, const char *error, const char *answer)
{
    struct nemesis *n = arg;

    count_cb (arg, rank, error, answer);
    n->rank[rank].running = false;
    if (rank == 0)
        nemesis_add_root (n);
    if (!error)
        forget_process (&n->rank[rank]);
    n->rank[rank].ends |= n->rank[rank].ends_anew;
    n->rank[rank].ends_anew = false;
    if (!error && nemesis_is_free (n, rank))
        nemesis_set_down (n, rank, false);
}

static void cont_cb (void *arg, uint32_t rank, const char *error, const char *answer)
{
    struct nemesis *n = arg;

    count_cb (arg, rank, error, answer);
    if (!error && nemesis_is_free (n, rank))
        nemesis_set_down (n, rank, false);
}

void nemesis_run (struct nemesis *n, uint32_t rank)
{
    if (!nemesis_is_free (n, rank))
        return;
    n->rank[rank].running = true;
    if (rank == 0)
        n->root_us = client_now_us ();
    nemesis_set_down (n, rank, true);
    instance_ask (n->instance, "run", rank, run_cb, n);
}

void nemesis_cont (struct nemesis *n, uint32_t rank)
{
    instance_ask (n->instance, "cont", rank, cont_cb, n);
}

static void begin_kill (struct nemesis *n, uint32_t rank, const char *verb, instance_f cb)
{
    n->rank[rank].kills++;
    nemesis_set_down (n, rank, true);
    instance_ask (n->instance, verb, rank, cb, n);
}

static void begin_stop (struct nemesis *n, uint32_t rank)
{
    n->rank[rank].stops++;
    nemesis_set_down (n, rank, true);
    instance_ask (n->instance, "stop", rank, stop_cb, n);
}

static void end_kill (struct nemesis *n, uint32_t rank)
{
    if (--n->rank[rank].kills == 0)
        nemesis_run (n, rank);
}

static void end_stop (struct nemesis *n, uint32_t rank)
{
    if (--n->rank[rank].stops > 0)
        return;
    n->rank[rank].stopped_us = 0;
    nemesis_cont (n, rank);
}

/* --- links, clocks, disk ------------------------------------------------------------------------------ */

static void begin_link (struct nemesis *n, uint32_t rank, const struct step *step)
{
    enum link_mode mode = step->fault == FAULT_CUT       ? (enum link_mode)step->amount
                          : step->fault == FAULT_CORRUPT ? LINK_CORRUPT
                          : step->fault == FAULT_SLOW    ? LINK_SLOW
                                                         : LINK_RESET;

    n->rank[rank].links++;
    excuse (n, plan_subtree (&n->plan, rank));
    links_set (n->links, rank, mode, step->amount);
}

static void end_link (struct nemesis *n, uint32_t rank)
{
    unexcuse (n, plan_subtree (&n->plan, rank));
    if (--n->rank[rank].links == 0)
        links_set (n->links, rank, LINK_GOOD, 0);
}

/* Start a twin. There is only one twin at a time. It needs the PMI conversation of its rank. */
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

/* The disk is good again. If the root is killed before it could store its state, the next root has only the stored
 * horizon.
 */
static void end_disk (struct nemesis *n, bool kill_root)
{
    if (!kill_root) {
        mend_disk (n);
        return;
    }
    n->rank[0].kills++;
    nemesis_set_down (n, 0, true);
    instance_ask (n->instance, "kill", 0, root_killed_cb, n);
}

/* --- the instance --------------------------------------------------------------------------------------- */

void nemesis_set_up (struct nemesis *n, bool up)
{
    if (up == n->up)
        return;
    n->up = up;
    if (up)
        unexcuse (n, all_ranks (n));
    else
        excuse (n, all_ranks (n));
}

void nemesis_start_instance (struct nemesis *n)
{
    if (n->process || n->instance_holds > 0)
        return;
    n->process = true;
    for (uint32_t rank = 0; rank < n->plan.size; rank++)
        forget_process (&n->rank[rank]);
    n->root_us = client_now_us ();
    n->report.starts++;
    instance_start (n->instance);
}

static void begin_instance (struct nemesis *n, enum fault fault)
{
    nemesis_set_up (n, false);
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
        nemesis_start_instance (n);
}

/* --- steps -------------------------------------------------------------------------------------------------- */

/* Note that brokers from 'top' down got SIGTERM: a broker that gets SIGTERM waits until the brokers below it have
 * ended.
 */
static void expect_ends (struct nemesis *n, uint32_t top)
{
    uint64_t ranks = plan_subtree (&n->plan, top);

    for (uint32_t rank = 0; rank < n->plan.size; rank++)
        if (ranks >> rank & 1) {
            n->rank[rank].ends = true;
            n->rank[rank].ends_anew |= n->rank[rank].running;
        }
}

/* The effect of a step on one rank, and a function that undoes the effect (NULL: it is not undone). */
static void begin_kill_step (struct nemesis *n, uint32_t rank, const struct step *step)
{
    if (step->fault == FAULT_TUNE)
        nemesis_tune (n, rank, step->amount);
    begin_kill (n, rank, "kill", count_cb);
}

static void begin_term_step (struct nemesis *n, uint32_t rank, const struct step *step)
{
    expect_ends (n, rank);
    begin_kill (n, rank, "term", term_cb);
}

static void end_kill_step (struct nemesis *n, uint32_t rank, const struct step *step)
{
    end_kill (n, rank);
}

static void begin_stop_step (struct nemesis *n, uint32_t rank, const struct step *step)
{
    begin_stop (n, rank);
}

/* Let CLOCK_BOOTTIME miss the pause: at most the time for which the process was stopped, so that the clock does not go
 * back.
 */
static void miss_pause (struct nemesis *n, uint32_t rank, const struct step *step)
{
    uint64_t since_us = n->rank[rank].stopped_us, now_us = client_now_us ();
    int64_t us = step->hold_ms * INT64_C (1000);

    if (since_us == 0)
        return;
    if ((uint64_t)us > now_us - since_us)
        us = (int64_t)(now_us - since_us);
    atomic_fetch_sub (&n->page->boot_us[rank], us);
}

static void end_stop_step (struct nemesis *n, uint32_t rank, const struct step *step)
{
    if (step->fault == FAULT_PAUSE)
        miss_pause (n, rank, step);
    end_stop (n, rank);
}

static void step_clock (struct nemesis *n, uint32_t rank, const struct step *step)
{
    atomic_store (&n->page->wall_us[rank], step->amount * INT64_C (1000));
}

static void step_boot (struct nemesis *n, uint32_t rank, const struct step *step)
{
    atomic_fetch_add (&n->page->boot_us[rank], step->amount * INT64_C (1000));
}

/* A rank with a rogue is expected to serve. It is excused only while a rogue stops it. */
static void begin_rogue_step (struct nemesis *n, uint32_t rank, const struct step *step)
{
    if (step->fault == FAULT_STARVE)
        excuse (n, plan_subtree (&n->plan, rank));
    nemesis_begin_rogue (n, rank, step->fault);
}

static void end_rogue_step (struct nemesis *n, uint32_t rank, const struct step *step)
{
    if (step->fault == FAULT_STARVE)
        unexcuse (n, plan_subtree (&n->plan, rank));
    nemesis_end_rogue (n, rank, step->fault);
}

static void begin_limit_step (struct nemesis *n, uint32_t rank, const struct step *step)
{
    excuse (n, plan_subtree (&n->plan, rank));
    nemesis_begin_limit (n, rank, step->fault);
}

static void end_limit_step (struct nemesis *n, uint32_t rank, const struct step *step)
{
    unexcuse (n, plan_subtree (&n->plan, rank));
    nemesis_end_limit (n, rank, step->fault);
}

static void end_link_step (struct nemesis *n, uint32_t rank, const struct step *step)
{
    end_link (n, rank);
}

typedef void (*deed_f) (struct nemesis *n, uint32_t rank, const struct step *step);

static const struct {
    deed_f begin, end;
} deeds[FAULT_FULL] = {
    [FAULT_KILL] = { begin_kill_step, end_kill_step },
    [FAULT_TERM] = { begin_term_step, end_kill_step },
    [FAULT_TUNE] = { begin_kill_step, end_kill_step },
    [FAULT_STOP] = { begin_stop_step, end_stop_step },
    [FAULT_STARVE] = { begin_rogue_step, end_rogue_step },
    [FAULT_PAUSE] = { begin_stop_step, end_stop_step },
    [FAULT_CUT] = { begin_link, end_link_step },
    [FAULT_RESET] = { begin_link, end_link_step },
    [FAULT_CORRUPT] = { begin_link, end_link_step },
    [FAULT_SLOW] = { begin_link, end_link_step },
    [FAULT_CLOCK] = { step_clock, NULL },
    [FAULT_BOOT] = { step_boot, NULL },
    [FAULT_FILES] = { begin_limit_step, end_limit_step },
    [FAULT_MEMORY] = { begin_limit_step, end_limit_step },
    [FAULT_RELOAD] = { begin_rogue_step, end_rogue_step },
    [FAULT_LIAR] = { begin_rogue_step, end_rogue_step },
    [FAULT_GREEDY] = { begin_rogue_step, end_rogue_step },
    [FAULT_DEAF] = { begin_rogue_step, end_rogue_step },
    [FAULT_FLOOD] = { begin_rogue_step, end_rogue_step },
    [FAULT_TWIN] = { begin_twin, end_twin },
};

static void do_ranks (struct nemesis *n, deed_f deed, const struct step *step)
{
    for (uint32_t rank = 0; deed && rank < n->plan.size; rank++)
        if (step->ranks >> rank & 1)
            deed (n, rank, step);
}

void nemesis_begin_step (struct nemesis *n, const struct step *step)
{
    if (step->fault >= FAULT_CRASH)
        begin_instance (n, step->fault);
    else if (step->fault >= FAULT_FULL)
        begin_disk (n, step->fault);
    else
        do_ranks (n, deeds[step->fault].begin, step);
}

void nemesis_end_step (struct nemesis *n, const struct step *step)
{
    if (step->fault >= FAULT_CRASH)
        end_instance (n);
    else if (step->fault >= FAULT_FULL)
        end_disk (n, step->amount);
    else
        do_ranks (n, deeds[step->fault].end, step);
}

/* Until the first start no rank can serve. */
void nemesis_init_faults (struct nemesis *n)
{
    excuse (n, all_ranks (n));
}

void nemesis_fini_faults (struct nemesis *n)
{
    for (uint32_t rank = 0; rank < n->plan.size; rank++)
        for (int fault = FAULT_KILL; fault < FAULT_COUNT; fault++)
            nemesis_end_rogue (n, rank, fault);
    while (nemesis_reap_rogues (n) > 0)
        poll (NULL, 0, REAP_MS);
}
