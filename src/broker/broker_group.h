/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* broker_group.h - the brokers of this process, from boot to end */
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
    struct attrs *attrs;       /* attributes of the command line, for all brokers; must live longer */
    struct boot_conf boot;     /* without topology and deadline: 'attrs' give these */
    const char **config_files; /* the files that set some of 'attrs', in their order; borrowed */
    size_t nconfig_files;
    const char *tmpdir; /* see struct broker_conf */
    const char *module_path;
    char **command;
    uint64_t files;
};

/* Copies 'conf'; its strings are borrowed.  NULL with errno ENOMEM. */
struct broker_group *broker_group_create (const struct broker_group_conf *conf);

/* Boot and start all brokers of this process; the caller then runs process_run () until they have ended. Blocks until
 * the brokers of other processes have booted, except in a configured instance. Returns 0, or -1 with errno set and
 * 'errp' filled.
 */
int broker_group_start (struct broker_group *c, idt_error_t *errp);

/* After a failure that was already reported: make the launcher, if it waits for this process, end the other processes.
 */
void broker_group_abort (struct broker_group *c, int exit_code);

void broker_group_destroy (struct broker_group *c); /* destroys the brokers that are left, too; NULL is fine */

/* Stop all brokers, as broker_stop (). */
void broker_group_stop (struct broker_group *c, const char *why);

/* Read the configuration files again (conffile.h). Returns a new reference to a report: {"changed":[name],
 * "later":[name]}. NULL with errno set and 'errp' filled: then nothing has changed, except after ESTALE, when brokers
 * that are no longer in the files are stopping.
 */
json_t *broker_group_reload (struct broker_group *c, idt_error_t *errp);

/* Get the status of the broker with the lowest rank in this process; if it has ended, its state is STATE_EXIT.
 * Returns the number of brokers in this process.
 */
uint32_t broker_group_status (const struct broker_group *c, struct broker_status *status);

/* The exit code of the process when all brokers have ended: the code of rank 0 if it was here, else of the first broker
 * that failed, else 0.
 */
int broker_group_exit_code (const struct broker_group *c);

#endif /* BROKER_BROKER_GROUP_H */
