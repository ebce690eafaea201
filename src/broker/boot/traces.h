/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* traces.h - what launchers of parallel programs leave in the environment of a task
 *
 * Each of several brokers that does not notice the others is an instance by itself, and all give the same ids.  So a
 * broker that is one of several tasks finds the others, or ends.  The number of tasks is not in the environment of each
 * launcher: a broker ends, too, where it sees a launcher and nothing says that there is one task alone.
 */
#ifndef BROKER_BOOT_TRACES_H
#define BROKER_BOOT_TRACES_H

#include <stdbool.h>
#include <stdint.h>

/* All strings are borrowed from the environment; NULL: it is not there. */
struct launcher_traces {
    const char *pmi_fd, *pmi_rank, *pmi_size; /* ways to the others, and who this task is */
    const char *pmix_namespace, *pmix_rank;
    const char *many; /* an entry, as "SLURM_NTASKS=4", that says that there are several tasks */
    const char *cure; /* how such a launcher lets them find each other */
    const char *task; /* an entry, as "PMI_ID=0", that says that a launcher started this, and not how many others */
    const char *task_cure;
    bool one; /* another says that there is one task, and none says more */
};

void traces_read (struct launcher_traces *t, char *const *env);

/* Whether an entry of the environment, "NAME=VALUE", tells a task of a launcher who it is.  What a task starts is no
 * task of that launcher, and must not see it.
 */
bool traces_name_task (const char *entry);

#endif /* BROKER_BOOT_TRACES_H */
