/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* nemesis_rogues.c - faults that are caused through other programs, limits of the kernel, and options
 *
 * A rogue is a program that undoes its fault and ends when its standard input ends (rogue.c). A limit is a resource
 * limit. It is set on the process that the launcher reported last, from outside of that process.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "die.h"
#include "nemesis_private.h"

#define FILES_LEFT 16            /* limit of descriptors: all lower ones are in use, so new files are refused */
#define MEMORY_LEFT (1 << 20)    /* bytes of address space that are left */
#define ROGUE_LIMIT_US 120000000 /* us; a rogue that has not ended after this time is killed */

/* --- rogues ---------------------------------------------------------------------------------------- */

static void start_rogue (struct nemesis *n, uint32_t rank, enum fault fault, const char *whom)
{
    struct rogue *rogue = must (calloc (1, sizeof (*rogue)));

    rogue->rank = rank;
    rogue->fault = fault;
    rogue->w = worker_start ((const char *const[]){ n->config.rogue, fault_name (fault), whom, NULL });
    LIST_INSERT_HEAD (&n->rogues, rogue, entry);
    n->report.rogues++;
}

void nemesis_begin_rogue (struct nemesis *n, uint32_t rank, enum fault fault)
{
    pid_t pid = n->rank[rank].pid;
    char whom[300];

    if (fault == FAULT_STARVE)
        snprintf (whom, sizeof (whom), "%d", (int)pid);
    else
        snprintf (whom, sizeof (whom), "local://%s/local-%u", instance_rundir (n->instance), rank);
    if (fault != FAULT_STARVE || pid > 0)
        start_rogue (n, rank, fault, whom);
}

void nemesis_end_rogue (struct nemesis *n, uint32_t rank, enum fault fault)
{
    struct rogue *rogue;

    LIST_FOREACH (rogue, &n->rogues, entry)
        if (rogue->rank == rank && rogue->fault == fault && !rogue->ending) {
            rogue->ending = true;
            worker_finish (rogue->w, ROGUE_LIMIT_US);
            return;
        }
}

size_t nemesis_reap_rogues (struct nemesis *n)
{
    struct rogue *rogue, *next;
    size_t left = 0;

    for (rogue = LIST_FIRST (&n->rogues); rogue; rogue = next) {
        next = LIST_NEXT (rogue, entry);
        if (!worker_ended (rogue->w)) {
            left++;
            continue;
        }
        LIST_REMOVE (rogue, entry);
        worker_destroy (rogue->w);
        free (rogue);
    }
    return left;
}

/* --- limits ---------------------------------------------------------------------------------------- */

/* Return the bytes of address space of a process; 0: the process does not exist. */
static rlim_t resolver_space (pid_t pid)
{
    char path[64];
    unsigned long pages = 0;
    FILE *f;

    snprintf (path, sizeof (path), "/proc/%d/statm", (int)pid);
    if (!(f = fopen (path, "re")))
        return 0;
    if (fscanf (f, "%lu", &pages) != 1)
        pages = 0;
    fclose (f);
    return pages * (rlim_t)sysconf (_SC_PAGESIZE);
}

/* Whether the brokers have a sanitizer. A sanitizer ends a program that has no memory, so memory is not limited then.
 */
static bool is_sanitized (void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#else
    return false;
#endif
}

/* Set or remove a limit. Only the soft limit is changed, so that it can be restored. */
static bool set_limit (pid_t pid, enum fault fault, bool on)
{
    __rlimit_resource_t what = fault == FAULT_FILES ? RLIMIT_NOFILE : RLIMIT_AS;
    struct rlimit limit;

    if (pid <= 0 || (fault == FAULT_MEMORY && is_sanitized ()) || prlimit (pid, what, NULL, &limit) < 0)
        return false;
    if (!on)
        limit.rlim_cur = limit.rlim_max;
    else if (fault == FAULT_FILES)
        limit.rlim_cur = FILES_LEFT;
    else
        limit.rlim_cur = resolver_space (pid) + MEMORY_LEFT;
    return prlimit (pid, what, &limit, NULL) == 0;
}

static void begin_limit (struct nemesis *n, struct rank *r, enum fault fault)
{
    if (set_limit (r->pid, fault, true)) {
        r->limited = true;
        n->report.limits++;
    }
}

void nemesis_set_limits (struct nemesis *n, uint32_t rank)
{
    for (enum fault fault = FAULT_FILES; fault <= FAULT_MEMORY; fault++)
        if (n->rank[rank].limits[fault - FAULT_FILES] > 0)
            begin_limit (n, &n->rank[rank], fault);
}

void nemesis_begin_limit (struct nemesis *n, uint32_t rank, enum fault fault)
{
    n->rank[rank].limits[fault - FAULT_FILES]++;
    begin_limit (n, &n->rank[rank], fault);
}

void nemesis_end_limit (struct nemesis *n, uint32_t rank, enum fault fault)
{
    struct rank *r = &n->rank[rank];

    if (--r->limits[fault - FAULT_FILES] == 0)
        set_limit (r->pid, fault, false);
}

/* --- options --------------------------------------------------------------------------------------- */

/* The sets of options. Leases are in percent of the lease of the other ranks. Some limits are reached immediately, some
 * never.
 */
static const struct {
    unsigned lease;
    const char *more;
} tunes[PLAN_TUNES] = {
    { 100, "" },
    { 50, "-o fluid.max-waiting=4 -o fluid.max-backlog=50ms" },
    { 200, "-o fluid.forward-timeout=200ms" },
    { 100, "-o fluid.max-waiting=1 -o fluid.forward-timeout=10s" },
    { 25, "-o event.replay=1 -o tbon.timeout=700ms" },
    { 150, "-o fluid.max-backlog=1s -o log-level=3" },
};

void nemesis_tune (struct nemesis *n, uint32_t rank, int32_t tune)
{
    char path[300];
    FILE *f;

    snprintf (path, sizeof (path), "%s/%u", n->config.tunedir, rank);
    if (!(f = fopen (path, "we")))
        die (path);
    uint32_t lease_ms = n->plan.lease_ms * tunes[tune].lease / 100;
    fprintf (f, "-o fluid.lease=%ums %s\n", lease_ms < 100 ? 100 : lease_ms, tunes[tune].more);
    if (fclose (f) != 0)
        die (path);
}
