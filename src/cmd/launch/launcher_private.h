/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* launcher_private.h - what launcher.c (the phases of an instance) and launcher_ctl.c (startctl) share */
#ifndef CMD_LAUNCHER_PRIVATE_H
#define CMD_LAUNCHER_PRIVATE_H

#include <sys/types.h>

#include <idtree/reactor.h>

#include "cmd/launch/control.h"
#include "cmd/launch/launcher.h"
#include "cmd/launch/procs.h"
#include "libpmi/pmi_server.h"

enum phase {
    PHASE_BOOT,
    PHASE_RUN,
    PHASE_QUIT,
    PHASE_STOP,
};

enum stop_step {
    STOP_ROOT,
    STOP_ALL,
    STOP_KILL,
};

struct pmi_link {
    struct launcher *l;
    idt_watcher_t *w;
};

struct launcher {
    const struct launcher_config *config;
    enum phase phase;
    enum stop_step step;
    bool first_is_sound; /* the options of rank 0 are valid as far as it has started */
    bool boot_failed;    /* the failure was reported: later ends have the same cause, or were killed */
    int status;          /* the launcher's exit status */
    pid_t command;
    struct procs procs;
    struct pmi_link *links; /* one for each process */
    struct pmi_server *pmi;
    struct control *control;
    idt_reactor_t *r;
    int signal_fd;
    idt_watcher_t *signal_w;
    idt_watcher_t *timer;
};

/* Start a process that is down, and the brokers in it.  Returns 0, or -1 with the reason in 'errp'. */
int launcher_start_process (struct launcher *l, int process, idt_error_t *errp);

/* Send a command for a rank, one of several in its process, to this process (broker/launcher_orders.h). */
void launcher_order (struct launcher *l, int rank, const char *order, int signum);

extern const struct control_ops launcher_control_ops; /* 'arg': the launcher */

#endif /* CMD_LAUNCHER_PRIVATE_H */
