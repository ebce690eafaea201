/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* launcher.h - an instance of brokers in processes on this host, from its start to its stop */
#ifndef CMD_LAUNCHER_H
#define CMD_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/base/plan.h"

struct launcher_config {
    int size;                   /* number of brokers */
    uint32_t processes;         /* number of processes that host the brokers */
    struct plan *plan;          /* which process hosts which ranks */
    const char *dir;            /* the instance's directory, an absolute path; it must exist */
    const char *broker;         /* path of the broker's executable */
    const char *const *args;    /* arguments of each broker, ended by NULL */
    const char *const *command; /* ended by NULL */
    bool interactive;           /* the command is an interactive shell */
    bool progress;              /* stderr is a terminal, so show progress there */
    bool keep_flux_uri;         /* leave FLUX_URI of the command unchanged */
    const char *path;           /* PATH of the command; NULL: unchanged */
    uint64_t files;             /* the command's soft limit of descriptors; 0: unchanged */
    int start_timeout_ms;       /* longest time in which no broker reports that it is up */
    int stop_timeout_ms;
};

/* Start the brokers, run the command, stop the brokers.  Returns the exit status of the command, or 128 + N if signal N
 * ended the command or the launcher.  If the instance did not come up, returns 1, or 2 if a broker reported a wrong
 * option.  The caller must have blocked reaper_signals (), and removes the files that are left in the directory.
 */
int launcher_run (const struct launcher_config *config);

#endif /* CMD_LAUNCHER_H */
