/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* nemesis_private.h - the nemesis from inside: nemesis.c decides when, nemesis_faults.c does it, nemesis_rogues.c has
 * it done by others
 */
#ifndef CHAOS_NEMESIS_PRIVATE_H
#define CHAOS_NEMESIS_PRIVATE_H

#include <sys/queue.h>

#include "nemesis.h"
#include "worker.h"

enum phase { PHASE_START, PHASE_FAULTS, PHASE_HEAL, PHASE_DRAIN, PHASE_STOP };

/* A step that is held. */
struct hold {
    struct nemesis *n;
    struct step step;
    idt_watcher_t *w;
    LIST_ENTRY (hold) entry;
};

/* A program that does a step's harm (rogue.c); at the step's end it is told to end. */
struct rogue {
    struct worker *w;
    uint32_t rank;
    enum fault fault;
    bool ending;
    LIST_ENTRY (rogue) entry;
};

struct rank {
    uint32_t kills, stops, links; /* steps that hold it */
    uint32_t limits[2];           /* of its open files, of its memory */
    bool limited;                 /* it had such a limit since it was run: it may have died of it */
    bool ends;                    /* it was told to end in order */
    bool ends_anew;               /* the process that is being run was */
    pid_t pid;                    /* 0: not known */
    uint64_t stopped_us;          /* since when this process is stopped; 0: it is not, as far as is known */
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
    LIST_HEAD (, rogue) rogues;
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

/* --- nemesis_faults.c --------------------------------------------------------------------------- */

void nemesis_init_faults (struct nemesis *n);
void nemesis_fini_faults (struct nemesis *n);

/* Do what a step says to what it names, and undo it.  Never blocks. */
void nemesis_begin_step (struct nemesis *n, const struct step *step);
void nemesis_end_step (struct nemesis *n, const struct step *step);

bool nemesis_is_free (const struct nemesis *n, uint32_t rank); /* no step holds it, and nothing is on its way */
void nemesis_set_down (struct nemesis *n, uint32_t rank, bool down);
void nemesis_run (struct nemesis *n, uint32_t rank); /* if it is free */
void nemesis_cont (struct nemesis *n, uint32_t rank);

void nemesis_start_instance (struct nemesis *n); /* if there is none, and no step holds it */
void nemesis_set_up (struct nemesis *n, bool up);
void nemesis_add_root (struct nemesis *n); /* a start of the root has ended, well or not: it may have served */

/* --- nemesis_rogues.c --------------------------------------------------------------------------- */

void nemesis_begin_rogue (struct nemesis *n, uint32_t rank, enum fault fault);
void nemesis_end_rogue (struct nemesis *n, uint32_t rank, enum fault fault);

/* Forget those that have ended.  Returns how many there are still. */
size_t nemesis_reap_rogues (struct nemesis *n);

/* Give a broker no more files, or memory, than it has (fault: FILES, MEMORY); give it what its host has. */
void nemesis_begin_limit (struct nemesis *n, uint32_t rank, enum fault fault);
void nemesis_end_limit (struct nemesis *n, uint32_t rank, enum fault fault);
void nemesis_set_limits (struct nemesis *n, uint32_t rank); /* those that it is to have: its process is another one */

/* The next time that a rank is run it has the options of set 'tune'. */
void nemesis_tune (struct nemesis *n, uint32_t rank, int32_t tune);

#endif /* CHAOS_NEMESIS_PRIVATE_H */
