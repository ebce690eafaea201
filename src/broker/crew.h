/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* crew.h - the brokers of this process, from their boot to their end */
#ifndef BROKER_CREW_H
#define BROKER_CREW_H

#include <jansson.h>

#include "broker/base/attr.h"
#include "broker/boot/boot.h"
#include "broker/broker.h"
#include "broker/process.h"

struct crew;

struct crew_conf {
    struct process *process;   /* must live longer */
    struct attrs *attrs;       /* what the command line gave to all; must live longer */
    struct boot_conf boot;     /* but for the topology and the deadline, which 'attrs' give */
    const char **config_files; /* that gave some of them, in their order; borrowed */
    size_t nconfig_files;
    const char *tmpdir; /* see struct broker_conf */
    const char *module_path;
    char **command;
    uint64_t files;
};

/* Copies 'conf'; its strings are borrowed.  NULL with errno ENOMEM. */
struct crew *crew_create (const struct crew_conf *conf);

/* Boot and start all brokers of this process: process_run () then runs until they have ended.  Blocks until those of
 * other processes have booted, too.  Returns 0, or -1 with errno set and 'errp' filled.
 */
int crew_start (struct crew *c, idt_error_t *errp);

/* It did not start, or its brokers gave up, and why was said: have the launcher end the others, if it waits for us. */
void crew_abort (struct crew *c, int exit_code);

void crew_destroy (struct crew *c); /* and all brokers that are left, at once; NULL is fine */

/* Tell all brokers to stop, as broker_stop (). */
void crew_stop (struct crew *c, const char *why);

/* Read the configuration files again (reload.h).  Returns what became of it, a new reference: {"changed":[name],
 * "later":[name]}.  NULL with errno set and 'errp' filled; nothing has changed then, but for ESTALE: brokers that are
 * not in the files any more are told to stop.
 */
json_t *crew_reload (struct crew *c, idt_error_t *errp);

/* Of the broker here that is nearest to the root; one that has ended is at STATE_EXIT.  Returns how many are here. */
uint32_t crew_status (const struct crew *c, struct broker_status *status);

/* When all have ended: that of rank 0, if it was here, else of the first that failed; 0: none did. */
int crew_exit_code (const struct crew *c);

#endif /* BROKER_CREW_H */
