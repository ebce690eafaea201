/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* traces.h - variables that launchers of parallel programs set in the environment of a task
 *
 * If several brokers that are started together do not find each other, each is an instance by itself, and all issue the
 * same ids. So a broker that is one of several tasks must find the others or end. Not all launchers set the number of
 * tasks. So a broker also ends if there are traces of a launcher, but no variable says that there is only one task.
 */
#ifndef BROKER_BOOT_TRACES_H
#define BROKER_BOOT_TRACES_H

#include <stdbool.h>
#include <stdint.h>

/* All strings are borrowed from the environment; NULL: not set. */
struct launcher_traces {
    const char *pmi_fd, *pmi_rank, *pmi_size; /* PMI's file descriptor, the rank of this task, the number of tasks */
    const char *pmix_namespace, *pmix_rank;
    const char *many; /* an entry that means several tasks, such as "SLURM_NTASKS=4" */
    const char *cure; /* how the tasks of the launcher of 'many' can find each other */
    const char *task; /* an entry of a launcher with an unknown number of tasks, such as "PMI_ID=0" */
    const char *task_cure;
    bool one; /* a variable says that there is one task, and none says that there are more */
};

void traces_read (struct launcher_traces *t, char *const *env);

/* Whether an entry of the environment, "NAME=VALUE", identifies a task of a launcher. Programs that a task starts must
 * not inherit such entries, because they are not tasks of that launcher.
 */
bool traces_name_task (const char *entry);

#endif /* BROKER_BOOT_TRACES_H */
