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
    bool first_is_sound; /* its options are, as far as it has come */
    bool boot_failed;    /* that was said; who ends now ends for the same reason, or because it is killed */
    int status;          /* our exit status */
    pid_t command;
    struct procs procs;
    struct pmi_link *links; /* one a process */
    struct pmi_server *pmi;
    struct control *control;
    idt_reactor_t *r;
    int signal_fd;
    idt_watcher_t *signal_w;
    idt_watcher_t *timer;
};

/* Start a process that is down, and the brokers in it.  Returns 0, or -1 with the reason in 'errp'. */
int launcher_start_process (struct launcher *l, int process, idt_error_t *errp);

/* Tell the process of a rank, one of several there, what to do with it (broker/launcher_orders.h). */
void launcher_order (struct launcher *l, int rank, const char *order, int signum);

extern const struct control_ops launcher_control_ops; /* 'arg': the launcher */

#endif /* CMD_LAUNCHER_PRIVATE_H */
