/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* traces.h - variables that launchers of parallel programs set in the environment of a task
 *
 * If several brokers started together do not find each other, each is an instance by itself, and all issue the same
 * ids. So a broker that is one of several tasks must find the others or end. Not all launchers set the number of tasks.
 * A broker therefore ends, too, if it sees traces of a launcher and no variable says that there is only one task.
 */
#ifndef BROKER_BOOT_TRACES_H
#define BROKER_BOOT_TRACES_H

#include <stdbool.h>
#include <stdint.h>

/* All strings are borrowed from the environment; NULL: not set. */
struct launcher_traces {
    const char *pmi_fd, *pmi_rank, *pmi_size; /* the connections to a launcher, and the rank of this task */
    const char *pmix_namespace, *pmix_rank;
    const char *many; /* an entry, as "SLURM_NTASKS=4", which means several tasks */
    const char *cure; /* how tasks of such a launcher can find each other */
    const char *task; /* an entry, as "PMI_ID=0", of a launcher with an unknown number of tasks */
    const char *task_cure;
    bool one; /* a variable gives one task, and none gives more */
};

void traces_read (struct launcher_traces *t, char *const *env);

/* Whether an entry of the environment, "NAME=VALUE", identifies a task of a launcher. Programs that a task starts must
 * not get it: they are not tasks of that launcher.
 */
bool traces_name_task (const char *entry);

#endif /* BROKER_BOOT_TRACES_H */
