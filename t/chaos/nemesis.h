/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* nemesis.h - carries out a plan against an instance, then heals the instance
 *
 * The instance starts. The steps of the plan follow until there were enough of them. Then all faults are undone, and
 * the nemesis waits until every broker is up and every rank has served. Then the clients must end, and the instance is
 * stopped.
 */
#ifndef CHAOS_NEMESIS_H
#define CHAOS_NEMESIS_H

#include <stdbool.h>
#include <stdint.h>

#include "checker.h"
#include "host.h"
#include "instance.h"
#include "links.h"
#include "plan.h"
#include "twin.h"

struct nemesis;

struct nemesis_config {
    struct plan plan;
    uint64_t steps; /* number of steps; 0: all steps that begin within duration_us */
    uint64_t duration_us;
    uint64_t heal_us;      /* if healing takes longer, it is a violation */
    uint64_t lease_max_us; /* the longest lease of any root */
    const char *rogue;     /* path of the program rogue */
    const char *tunedir;   /* folder with a file of options for each rank */
    bool verbose;          /* print each step to stderr */
};

/* Functions of the owner of the clients, called from the reactor. */
struct nemesis_ops {
    void (*start) (void *arg);              /* all brokers are up for the first time: start the clients */
    bool (*served) (void *arg, bool first); /* whether each client got ids since the call with 'first' */
    void (*drain) (void *arg);              /* let the clients end */
    bool (*drained) (void *arg);
};

struct nemesis_report {
    uint64_t steps[FAULT_COUNT]; /* steps that have begun, by fault */
    uint64_t asked;              /* requests to kill, stop, continue or run a broker */
    uint64_t refused;            /* requests of these that were refused because of the broker's state */
    uint64_t twins;              /* number of twins that were started */
    uint64_t rogues;             /* number of rogues that were started */
    uint64_t limits;             /* number of limits that were set */
    uint64_t ended;              /* brokers that ended in order after SIGTERM */
    uint64_t starts;             /* starts of the whole instance */
    uint64_t failed_starts;      /* starts of the whole instance that failed under faults */
    uint64_t gave_up;            /* brokers that ended by themselves with exit status 1 */
    uint64_t surprises;          /* brokers that crashed, and faults that could not be healed */
    char surprise[256];          /* the first surprise */
    uint64_t faults_us;          /* how long there were faults */
    uint64_t begun_us, done_us;  /* the clients ran between these times */
};

/* Make a nemesis. Ends the program if memory is short. All pointers are borrowed; 'config' itself is copied. */
struct nemesis *nemesis_create (idt_reactor_t *r, const struct nemesis_config *config,
                                const struct instance_config *instance, struct links *links, struct twin *twin,
                                struct host_page *page, const struct nemesis_ops *ops, void *arg);
void nemesis_destroy (struct nemesis *n);

/* Start the instance and the faults. The reactor is stopped when all is done. */
void nemesis_begin (struct nemesis *n);

/* Begin no further steps, and heal now. */
void nemesis_finish (struct nemesis *n);

const struct nemesis_report *nemesis_report (const struct nemesis *n);

/* Return the times in which ranks could not serve, because they were down or unreachable; borrowed. */
const struct window *nemesis_outages (const struct nemesis *n, size_t *count);

/* Return the first leases of roots: from the request to start a root until a lease after it was up; borrowed. */
const struct window *nemesis_roots (const struct nemesis *n, size_t *count);

#endif /* CHAOS_NEMESIS_H */
