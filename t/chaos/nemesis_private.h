/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* nemesis_private.h - private declarations of the nemesis: nemesis.c decides when to act, nemesis_faults.c acts,
 * nemesis_rogues.c acts through other programs
 */
#ifndef CHAOS_NEMESIS_PRIVATE_H
#define CHAOS_NEMESIS_PRIVATE_H

#include <sys/queue.h>

#include "nemesis.h"
#include "worker.h"

enum phase { PHASE_START, PHASE_FAULTS, PHASE_HEAL, PHASE_DRAIN, PHASE_STOP };

/* A step that has begun, and not ended yet. */
struct hold {
    struct nemesis *n;
    struct step step;
    idt_watcher_t *w;
    LIST_ENTRY (hold) entry;
};

/* A program that causes the fault of a step (rogue.c). Its standard input is closed when the step ends, so that it
 * ends, too.
 */
struct rogue {
    struct worker *w;
    uint32_t rank;
    enum fault fault;
    bool ending;
    LIST_ENTRY (rogue) entry;
};

struct rank {
    uint32_t kills, stops, links; /* number of steps that hold the rank */
    uint32_t limits[2];           /* number of steps that limit its open files, and its memory */
    bool limited;                 /* it had a limit since it was started, which may have ended it */
    bool ends;                    /* it got SIGTERM */
    bool ends_anew;               /* the process that is being started got SIGTERM */
    pid_t pid;                    /* 0: not known */
    uint64_t stopped_us;          /* when this process was stopped; 0: it is not stopped, as far as known */
    bool running;                 /* a request to run it is pending */
    bool down;                    /* it was killed or stopped, and is not known to be up again */
    uint32_t excuses;             /* number of reasons why it cannot serve */
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
    bool process; /* the instance is starting, up or stopping */
    bool up;
    uint32_t instance_holds, disk_holds;
    struct rank rank[HOST_RANKS_MAX];
    LIST_HEAD (, hold) holds;
    LIST_HEAD (, rogue) rogues;
    struct plan plan;
    struct step next;
    uint64_t steps;
    uint64_t heal_us;
    bool finish; /* no further step will begin */
    bool was_whole;
    bool looking;
    idt_watcher_t *step_w, *look_w;

    struct windows outages, roots;
    uint64_t root_us; /* when a root was last started */
};

/* --- nemesis_faults.c --------------------------------------------------------------------------- */

void nemesis_init_faults (struct nemesis *n);
void nemesis_fini_faults (struct nemesis *n);

/* Begin or end the fault of a step on its targets. Never blocks. */
void nemesis_begin_step (struct nemesis *n, const struct step *step);
void nemesis_end_step (struct nemesis *n, const struct step *step);

bool nemesis_is_free (const struct nemesis *n,
                      uint32_t rank); /* whether no step holds the rank, and no request is pending */
void nemesis_set_down (struct nemesis *n, uint32_t rank, bool down);
void nemesis_run (struct nemesis *n, uint32_t rank); /* runs the rank if it is free */
void nemesis_cont (struct nemesis *n, uint32_t rank);

void nemesis_start_instance (struct nemesis *n); /* starts the instance if it is down, and no step prevents it */
void nemesis_set_up (struct nemesis *n, bool up);
void nemesis_add_root (struct nemesis *n); /* a start of the root has ended; it may have served */

/* --- nemesis_rogues.c --------------------------------------------------------------------------- */

void nemesis_begin_rogue (struct nemesis *n, uint32_t rank, enum fault fault);
void nemesis_end_rogue (struct nemesis *n, uint32_t rank, enum fault fault);

/* Free the rogues that have ended. Returns the number of rogues that are left. */
size_t nemesis_reap_rogues (struct nemesis *n);

/* Limit the files or the memory of a broker (fault: FILES, MEMORY) to what it uses now; remove the limit. */
void nemesis_begin_limit (struct nemesis *n, uint32_t rank, enum fault fault);
void nemesis_end_limit (struct nemesis *n, uint32_t rank, enum fault fault);
void nemesis_set_limits (struct nemesis *n, uint32_t rank); /* sets the limits of a rank for its new process */

/* Use option set 'tune' when the rank is started the next time. */
void nemesis_tune (struct nemesis *n, uint32_t rank, int32_t tune);

#endif /* CHAOS_NEMESIS_PRIVATE_H */
