/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* broker_group.h - the brokers of this process, from their boot to their end */
#ifndef BROKER_BROKER_GROUP_H
#define BROKER_BROKER_GROUP_H

#include <jansson.h>

#include "broker/base/attr.h"
#include "broker/boot/boot.h"
#include "broker/broker.h"
#include "broker/process.h"

struct broker_group;

struct broker_group_conf {
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
struct broker_group *broker_group_create (const struct broker_group_conf *conf);

/* Boot and start all brokers of this process: process_run () then runs until they have ended.  Blocks until those of
 * other processes have booted, too.  Returns 0, or -1 with errno set and 'errp' filled.
 */
int broker_group_start (struct broker_group *c, idt_error_t *errp);

/* It did not start, or its brokers gave up, and why was said: have the launcher end the others, if it waits for us. */
void broker_group_abort (struct broker_group *c, int exit_code);

void broker_group_destroy (struct broker_group *c); /* and all brokers that are left, at once; NULL is fine */

/* Tell all brokers to stop, as broker_stop (). */
void broker_group_stop (struct broker_group *c, const char *why);

/* Read the configuration files again (reload.h).  Returns what became of it, a new reference: {"changed":[name],
 * "later":[name]}.  NULL with errno set and 'errp' filled; nothing has changed then, but for ESTALE: brokers that are
 * not in the files any more are told to stop.
 */
json_t *broker_group_reload (struct broker_group *c, idt_error_t *errp);

/* Of the broker here that is nearest to the root; one that has ended is at STATE_EXIT.  Returns how many are here. */
uint32_t broker_group_status (const struct broker_group *c, struct broker_status *status);

/* When all have ended: that of rank 0, if it was here, else of the first that failed; 0: none did. */
int broker_group_exit_code (const struct broker_group *c);

#endif /* BROKER_BROKER_GROUP_H */
