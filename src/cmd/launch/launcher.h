/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* launcher.h - an instance of brokers in processes on this host, from first start to last stop */
#ifndef CMD_LAUNCHER_H
#define CMD_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/base/plan.h"

struct launcher_config {
    int size;                   /* brokers */
    uint32_t processes;         /* that were asked for, to host them */
    struct plan *plan;          /* of those */
    const char *dir;            /* the instance's directory, absolute, exists */
    const char *broker;         /* the executable */
    const char *const *args;    /* of each broker, ended by NULL */
    const char *const *command; /* ended by NULL */
    bool interactive;           /* the command is a shell that somebody types at */
    bool progress;              /* stderr is a terminal */
    bool keep_flux_uri;         /* the command's FLUX_URI is ours */
    const char *path;           /* PATH for the command; NULL: as it is */
    uint64_t files;             /* soft limit of descriptors for the command; 0: as it is */
    int start_timeout_ms;       /* without progress */
    int stop_timeout_ms;
};

/* Start the brokers, run the command, stop the brokers.  Returns the exit status: the command's;
 * 128 + N where signal N ended it or us; where the instance did not come up 1, or 2 if a broker says so of its options.
 * reaper_signals () must be blocked.  What is left in the directory is the caller's to remove.
 */
int launcher_run (const struct launcher_config *config);

#endif /* CMD_LAUNCHER_H */
