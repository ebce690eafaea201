/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* traces.h - what launchers of parallel programs leave in the environment of a task
 *
 * A broker that was started many times over, and does not see it, is many instances, which give the same ids.  So who
 * finds that it is one of several tasks goes to the others, or nowhere.
 */
#ifndef BROKER_BOOT_TRACES_H
#define BROKER_BOOT_TRACES_H

#include <stdbool.h>
#include <stdint.h>

/* All strings are borrowed from the environment; NULL: it is not there. */
struct traces {
    const char *pmi_fd, *pmi_rank, *pmi_size; /* ways to the others, and who this task is */
    const char *pmix_namespace, *pmix_rank;
    const char *many; /* an entry, as "SLURM_NTASKS=4", that says that there are several tasks */
    const char *cure; /* how such a launcher lets them find each other */
    bool one;         /* another says that there is one task, and none says more */
};

void traces_read (struct traces *t, char *const *env);

/* Whether an entry of the environment, "NAME=VALUE", tells a task of a launcher who it is.  What a task starts is no
 * task of that launcher, and must not see it.
 */
bool traces_name_task (const char *entry);

#endif /* BROKER_BOOT_TRACES_H */
