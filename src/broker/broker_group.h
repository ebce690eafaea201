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
    struct process *process;   /* must live longer than the group */
    struct attrs *attrs;       /* attributes of the command line, for all brokers; must live longer than the group */
    struct boot_conf boot;     /* without topology and deadline, which come from 'attrs' */
    const char **config_files; /* the files that 'attrs' were read from, in their order; borrowed */
    size_t nconfig_files;
    const char *tmpdir; /* see struct broker_conf */
    const char *module_path;
    char **command;
    uint64_t files;
    struct role_pg *role; /* see struct broker_conf */
};

/* Copies 'conf'; the strings are borrowed.  NULL with errno ENOMEM. */
struct broker_group *broker_group_create (const struct broker_group_conf *conf);

/* Boot and start all brokers of this process. The caller then calls process_run (), which returns when all brokers have
 * ended. Blocks until the brokers of other processes have booted, except in a configured instance. Returns 0, or -1
 * with errno set and 'errp' filled.
 */
int broker_group_start (struct broker_group *c, idt_error_t *errp);

/* After a failure that was already reported: if a launcher waits for this process, make the launcher end the other
 * processes.
 */
void broker_group_abort (struct broker_group *c, int exit_code);

void broker_group_destroy (struct broker_group *c); /* also destroys the brokers that have not ended; NULL is fine */

/* Stop all brokers like broker_stop (). */
void broker_group_stop (struct broker_group *c, const char *why);

/* Stop all brokers like broker_leave (). */
void broker_group_leave (struct broker_group *c, enum broker_exit exit, const char *why);

/* Whether rank 0 was here, and has ended because the instance was shut down. */
bool broker_group_was_shut_down (const struct broker_group *c);

/* Read the configuration files again (conffile.h). Returns a new reference to a report: {"changed":[name],
 * "later":[name]}. NULL with errno set and 'errp' filled: then nothing has changed. But if errno is ESTALE, brokers
 * that are no longer in the files are stopping.
 */
json_t *broker_group_reload (struct broker_group *c, idt_error_t *errp);

/* Get the status of the broker with the lowest rank in this process; if it has ended, its state is STATE_EXIT.
 * Returns the number of brokers in this process.
 */
uint32_t broker_group_status (const struct broker_group *c, struct broker_status *status);

/* The exit code of the process when all brokers have ended. If rank 0 was here, the exit code of rank 0. Otherwise the
 * exit code of the first broker that failed, or 0.
 */
int broker_group_exit_code (const struct broker_group *c);

#endif /* BROKER_BROKER_GROUP_H */
