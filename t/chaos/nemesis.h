/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* nemesis.h - carries out a plan against an instance, then heals it
 *
 * The instance starts, and the steps of the plan follow until there were enough.  Then all is healed, until every
 * broker is up and every rank has served.  Then the clients are told to end, and the instance is stopped.
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
    uint64_t steps; /* that many; 0: as many as begin in duration_us */
    uint64_t duration_us;
    uint64_t heal_us;      /* healing that takes longer is a violation */
    uint64_t lease_max_us; /* the longest that a root may have */
    const char *rogue;     /* path of the program */
    const char *tunedir;   /* where a broker finds the options of its rank */
    bool verbose;          /* tell each step on stderr */
};

/* What the nemesis asks and tells of the clients; from the reactor. */
struct nemesis_ops {
    void (*start) (void *arg);              /* all brokers are up for the first time */
    bool (*served) (void *arg, bool first); /* has every client got ids since it was asked with 'first'? */
    void (*drain) (void *arg);              /* end */
    bool (*drained) (void *arg);
};

struct nemesis_report {
    uint64_t steps[FAULT_COUNT]; /* that were begun */
    uint64_t asked;              /* times that a broker was to be killed, stopped, continued, run */
    uint64_t refused;            /* of these: it was in no state for it */
    uint64_t twins;              /* that were started */
    uint64_t rogues;             /* that were started */
    uint64_t limits;             /* that were set */
    uint64_t ended;              /* brokers that ended in order when they were told to */
    uint64_t starts;             /* of the whole instance */
    uint64_t failed_starts;      /* under faults */
    uint64_t gave_up;            /* brokers that ended by themselves with exit status 1 */
    uint64_t surprises;          /* brokers that crashed, and what could not be healed */
    char surprise[256];          /* the first */
    uint64_t faults_us;          /* time of faults */
    uint64_t begun_us, done_us;  /* clients were at work */
};

/* Ends the program where there is no memory.  All but 'config' is borrowed. */
struct nemesis *nemesis_create (idt_reactor_t *r, const struct nemesis_config *config,
                                const struct instance_config *instance, struct links *links, struct twin *twin,
                                struct host_page *page, const struct nemesis_ops *ops, void *arg);
void nemesis_destroy (struct nemesis *n);

/* Begin; the reactor is stopped when all is over. */
void nemesis_begin (struct nemesis *n);

/* No more steps: heal now. */
void nemesis_finish (struct nemesis *n);

const struct nemesis_report *nemesis_report (const struct nemesis *n);

/* When ranks could not serve: they were down, or nothing could reach them; borrowed. */
const struct window *nemesis_outages (const struct nemesis *n, size_t *count);

/* The first leases of roots: from the order to start one to a lease after it was up; borrowed. */
const struct window *nemesis_roots (const struct nemesis *n, size_t *count);

#endif /* CHAOS_NEMESIS_H */
