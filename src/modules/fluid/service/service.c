/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* service.c - the clocks, the next deadline, the log, the check of the rank that a request names, the file in which a
 * rank remembers its instance
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>

#include "libstate/statefile.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "libutil/worker.h"
#include "modules/fluid/service/service.h"
#include "modules/fluid/service/ticks.h"

#define MAX_READINGS 10 /* attempts to read all clocks without an interruption */

/* Read all clocks. Returns false if this took a quarter of CLOCK_CHECK_GRAIN_US or more, because the thread was then
 * interrupted between two readings.
 */
static bool read_together (const struct service *sv, struct clock_check_reading *r)
{
    r->boot_us = clock_us (CLOCK_BOOTTIME);
    r->raw_us = clock_us (CLOCK_MONOTONIC_RAW);
    r->wall_us = clock_us (CLOCK_REALTIME);
    r->ticks = sv->has_ticks ? processor_ticks () : 0;
    return clock_us (CLOCK_BOOTTIME) - r->boot_us < CLOCK_CHECK_GRAIN_US / 4;
}

/* If all attempts to read the clocks were interrupted, the clocks are not compared. A later call then detects the time
 * that a clock missed.
 */
uint64_t service_look (struct service *sv, int64_t *off_us, int64_t *sure_us)
{
    struct clock_check_reading now;
    bool together = false;

    for (int i = 0; i < MAX_READINGS && !together; i++)
        together = read_together (sv, &now);
    *sure_us = 0;
    *off_us = together ? clock_check_look (&sv->clock_check, &now, sure_us) : 0;
    return now.boot_us;
}

uint64_t service_now_us (struct service *sv)
{
    int64_t off_us, sure_us;
    uint64_t now_us = service_look (sv, &off_us, &sure_us);

    if (off_us != 0 && sv->authority) {
        authority_lost_time (sv->authority, now_us, off_us, sure_us);
        node_tick (sv->node, now_us);
    }
    else if (off_us != 0)
        node_lost_time (sv->node, now_us, off_us);
    return now_us;
}

/* The timer is only ever moved to an earlier time. If the deadline has moved to a later time, the timer fires too
 * early, which is harmless. Each request that waits sets a deadline, but few deadlines are reached, so this saves most
 * of the system calls. clock_moment () rounds the time, so that the ranks of a process wake up together.
 */
void service_set_timer (struct service *sv)
{
    if (sv->page)
        page_door_publish (sv->page);
    uint64_t at_us = node_deadline (sv->node);

    if (sv->authority)
        at_us = min_u64 (at_us, authority_deadline (sv->authority));
    if (at_us >= sv->armed_us)
        return;
    sv->armed_us = clock_moment (clock_us (CLOCK_BOOTTIME), at_us);
    idt_alarm_watcher_reset (sv->timer, sv->armed_us);
}

void service_log_cb (void *arg, int level, const char *text)
{
    struct service *sv = arg;

    idt_log (sv->h, level, "%s", text);
}

int service_check_rank (idt_t *h, const idt_msg_t *msg, uint32_t rank, idt_error_t *errp)
{
    if ((idt_msg_cred (msg).rolemask & IDT_ROLE_LOCAL) || !idt_overlay_covers (h, msg, rank))
        return errsetf (errp, EPERM, "rank %u is neither the broker that sent the request nor a descendant of it",
                        (unsigned)rank);
    return 0;
}

/* --- each rank but rank 0 writes down what is needed to recover an instance whose rank 0 lost its state --- */

/* Rank 0 grants nothing above its stored horizon, which is at most two leases ahead of its time. A rank renews its
 * lease as long as rank 0 is alive, so rank 0 did not live longer than until the end of this rank's last lease.
 * Therefore no rank made an id later than two leases after the end of this rank's last lease, and that time is written.
 *
 * A thread writes the file and ends after the write, so a disk that hangs blocks only this thread. A lease that arrives
 * during a write is not written, because the next lease follows soon. At the end of the module a thread that takes too
 * long is abandoned. That is harmless, because the thread uses only its own memory.
 */

#define END_MS 1000 /* how long the end of the module waits for the disk */

/* A write under way. The thread uses only 'rank' and the members that follow it. */
struct memory {
    struct service *service;
    struct worker *worker;
    idt_watcher_t *watcher;
    uint32_t rank;
    struct statefile state;
    char dir[];
};

static uint64_t last_end (const struct lease_answer *a)
{
    uint64_t hi_ms = 0;

    for (size_t i = 0; i < a->ngrant; i++)
        hi_ms = max_u64 (hi_ms, a->grant[i].box.range.hi_ms);
    return hi_ms;
}

/* Log the first failure, such as a full disk or a statedir that is not writable. Nothing depends on the file while rank
 * 0 keeps its state.
 */
static void log_once (struct service *sv, const char *why)
{
    if (!sv->logged_memory)
        idt_log (sv->h, LOG_NOTICE, "this rank cannot store what it knows of its instance: %s", why);
    sv->logged_memory = true;
}

static void memory_destroy (struct memory *m)
{
    if (!m)
        return;
    idt_watcher_destroy (m->watcher);
    worker_destroy (m->worker);
    free (m);
}

void service_forget (struct service *sv)
{
    struct memory *m = sv->memory;
    char path[PATH_MAX];

    if (!m)
        return;
    sv->memory = NULL;
    idt_watcher_destroy (m->watcher);
    snprintf (path, sizeof (path), "%s/memory-%u", m->dir, (unsigned)m->rank);
    if (worker_leave (m->worker, END_MS, free))
        free (m);
    else
        idt_log (sv->h, LOG_WARNING, "%s: its disk hangs: the file is not written yet, and the module ends without it",
                 path);
}

/* Runs in the thread. */
static int write_memory (void *arg, idt_error_t *errp)
{
    const struct memory *m = arg;

    return state_remember (m->dir, m->rank, &m->state, errp);
}

static void written_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct memory *m = arg;
    struct service *sv = m->service;
    idt_error_t err;
    int rc = worker_result (m->worker, &err);

    if (rc == 0)
        return;
    if (rc < 0)
        log_once (sv, err.text);
    memory_destroy (m);
    sv->memory = NULL;
}

static void begin (struct service *sv, const char *dir, const struct statefile *state)
{
    struct memory *m = calloc (1, sizeof (*m) + strlen (dir) + 1);

    if (m) {
        *m = (struct memory){ .service = sv, .rank = sv->options.node.rank, .state = *state };
        strcpy (m->dir, dir);
        m->worker = worker_create (write_memory, m);
    }
    if (m && m->worker)
        m->watcher = idt_fd_watcher_create (idt_get_reactor (sv->h), worker_fd (m->worker), IDT_POLLIN, written_cb, m);
    if (!m || !m->watcher) {
        log_once (sv, strerror (errno));
        memory_destroy (m);
        return;
    }
    idt_watcher_start (m->watcher);
    worker_begin (m->worker);
    sv->memory = m;
}

void service_remember (struct service *sv, const struct lease_answer *a)
{
    const char *dir = idt_attr_get (sv->h, "statedir"), *uuid = idt_attr_get (sv->h, "instance.uuid");
    const char *name = idt_attr_get (sv->h, "instance.name");
    uint64_t hi_ms = last_end (a);
    struct statefile s = { .has_epoch = true, .epoch_ms = a->epoch_ms, .created_ms = (int64_t)time (NULL) * 1000 };

    if (sv->memory || sv->options.node.rank == 0 || !dir || !*dir || !uuid || !name || !a->has_epoch || hi_ms == 0)
        return;
    snprintf (s.uuid, sizeof (s.uuid), "%s", uuid);
    snprintf (s.name, sizeof (s.name), "%s", name);
    s.below_ms = a->epoch_ms + (int64_t)(hi_ms + 2 * a->lease_ms);
    begin (sv, dir, &s);
}
