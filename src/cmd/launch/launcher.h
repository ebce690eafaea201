/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* launcher.h - an instance of brokers in processes on this host, from its start to its stop */
#ifndef CMD_LAUNCHER_H
#define CMD_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/base/plan.h"

struct launcher_config {
    int size;                   /* brokers */
    uint32_t processes;         /* number of processes to host them */
    struct plan *plan;          /* the plan of these processes */
    const char *dir;            /* the instance's directory; absolute and existing */
    const char *broker;         /* the executable */
    const char *const *args;    /* arguments of each broker, ended by NULL */
    const char *const *command; /* ended by NULL */
    bool interactive;           /* the command is an interactive shell */
    bool progress;              /* stderr is a terminal */
    bool keep_flux_uri;         /* do not change the command's FLUX_URI */
    const char *path;           /* PATH for the command; NULL: unchanged */
    uint64_t files;             /* soft limit of descriptors for the command; 0: unchanged */
    int start_timeout_ms;       /* longest time without progress */
    int stop_timeout_ms;
};

/* Start the brokers, run the command, stop the brokers.  Returns the exit status: the status of the command; 128 + N if
 * signal N ended it or the launcher; if the instance did not come up 1, or 2 if a broker reports a wrong option.
 * reaper_signals () must be blocked.  The caller removes the files that are left in the directory.
 */
int launcher_run (const struct launcher_config *config);

#endif /* CMD_LAUNCHER_H */
