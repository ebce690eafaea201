/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* memory.c - a rank below rank 0 remembers what that would have to be told, if it lost its state
 *
 * The root gives nothing above a horizon that it has stored, two leases ahead of its time.  A rank that asked for its last
 * lease while the root was there asked at most a lease before it was gone: so two leases above the end of its own, no id
 * of anybody was made.
 *
 * It is written by a thread, that lives no longer than it takes: a disk that hangs holds up nothing but this.  What comes
 * meanwhile is left out; the next lease is soon there.  At the end of the module the thread is left to itself, where that takes
 * long: all that it uses is its own.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>

#include "libstate/statefile.h"
#include "libutil/minmax.h"
#include "libutil/worker.h"
#include "modules/fluid/service/service.h"

#define END_MS 1000 /* that the end of the module waits for the disk */

/* One that is being written.  The thread uses what is behind 'rank', and that. */
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
        hi_ms = max_u64 (hi_ms, a->grant[i].hi_ms);
    return hi_ms;
}

/* It is the wrong place, or full: nothing depends on it. */
static void tell_once (struct service *sv, const char *why)
{
    if (!sv->told_memory)
        idt_log (sv->h, LOG_NOTICE, "this rank remembers nothing of its instance: %s", why);
    sv->told_memory = true;
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
        idt_log (sv->h, LOG_WARNING, "%s: its disk hangs: it is not written yet, and not waited for any more", path);
}

/* In the thread. */
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
        tell_once (sv, err.text);
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
        tell_once (sv, strerror (errno));
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
