/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* nemesis.h - carries out a plan against an instance, then heals it
 *
 * The instance starts, and the steps of the plan follow until there were enough. Then all faults are undone, until
 * every broker is up and every rank has served. Then the clients are asked to end, and the instance is stopped.
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
    uint64_t steps; /* number of steps; 0: as many as begin in duration_us */
    uint64_t duration_us;
    uint64_t heal_us;      /* longer healing is a violation */
    uint64_t lease_max_us; /* the longest lease of a root */
    const char *rogue;     /* path of the program */
    const char *tunedir;   /* folder with the options of each rank */
    bool verbose;          /* print each step to stderr */
};

/* Calls to the owner of the clients, from the reactor. */
struct nemesis_ops {
    void (*start) (void *arg);              /* all brokers are up for the first time */
    bool (*served) (void *arg, bool first); /* has every client got ids since the call with 'first'? */
    void (*drain) (void *arg);              /* end */
    bool (*drained) (void *arg);
};

struct nemesis_report {
    uint64_t steps[FAULT_COUNT]; /* begun steps */
    uint64_t asked;              /* requests to kill, stop, continue or run a broker */
    uint64_t refused;            /* of these: refused because of the broker's state */
    uint64_t twins;              /* started twins */
    uint64_t rogues;             /* started rogues */
    uint64_t limits;             /* limits that were set */
    uint64_t ended;              /* brokers that ended in order after SIGTERM */
    uint64_t starts;             /* of the whole instance */
    uint64_t failed_starts;      /* under faults */
    uint64_t gave_up;            /* brokers that ended by themselves with exit status 1 */
    uint64_t surprises;          /* brokers that crashed, and what could not be healed */
    char surprise[256];          /* the first */
    uint64_t faults_us;          /* time of faults */
    uint64_t begun_us, done_us;  /* the clients ran in between */
};

/* Ends the program if there is no memory. All except 'config' is borrowed. */
struct nemesis *nemesis_create (idt_reactor_t *r, const struct nemesis_config *config,
                                const struct instance_config *instance, struct links *links, struct twin *twin,
                                struct host_page *page, const struct nemesis_ops *ops, void *arg);
void nemesis_destroy (struct nemesis *n);

/* Begin; the reactor is stopped in the end. */
void nemesis_begin (struct nemesis *n);

/* Begin no further steps: heal now. */
void nemesis_finish (struct nemesis *n);

const struct nemesis_report *nemesis_report (const struct nemesis *n);

/* Times in which ranks could not serve, because they were down or unreachable; borrowed. */
const struct window *nemesis_outages (const struct nemesis *n, size_t *count);

/* The first leases of roots: from the request to start one to a lease after it was up; borrowed. */
const struct window *nemesis_roots (const struct nemesis *n, size_t *count);

#endif /* CHAOS_NEMESIS_H */
