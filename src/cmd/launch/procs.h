/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* procs.h - the processes of an instance and the brokers in them: start, signal, reap, serve idtree startctl
 *
 * A rank is down, starting or up.  It may also be stopped.  A rank that is down has the wait status of its end.  Each
 * process hosts the ranks that the plan gives it; a process with one rank has the state of its rank.  Each process has
 * its own process group and the launcher's stderr, gets no input, and is killed when the launcher ends.
 */
#ifndef CMD_PROCS_H
#define CMD_PROCS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "broker/base/plan.h"
#include "cmd/launch/control.h"

enum proc_state {
    PROC_DOWN,
    PROC_STARTING,
    PROC_UP,
};

struct launched_rank {
    enum proc_state state;
    bool stopped; /* a command stopped this rank, but not its process */
    int sent;     /* last signal that was sent to end the rank; 0: none */
    int status;   /* wait status of its last end; -1: it has not ended yet */
};

struct launched_process {
    pid_t pid;    /* 0: the process is down */
    bool stopped; /* SIGSTOP stopped the process */
    int sent;     /* last signal that was sent to end the process; 0: none */
    int status;   /* wait status of its last end */
    int lost;     /* number of ranks that ended when the process ended */
    int pmi_fd;   /* the launcher's end of its PMI connection; -1: closed */
    bool listens; /* the process takes commands on this connection */
};

/* Functions of the launcher that requests of idtree startctl need. */
struct procs_ops {
    /* Start a process that is down, and the brokers in it.  Returns 0, or -1 with the reason in 'errp'. */
    int (*start) (void *arg, int process, idt_error_t *errp);
    /* Send a command for one rank to the process that hosts this rank and others (broker/launcher_orders.h). */
    void (*order) (void *arg, int rank, const char *order, int signum);
};

struct procs {
    int size;  /* number of ranks */
    int count; /* number of processes */
    int alive; /* number of processes that are not down */
    int up;    /* number of ranks that are up */
    const struct plan *plan;
    const char *path; /* path of the broker's executable; borrowed */
    bool script;      /* the executable is a script, which may do more than execute a broker */
    char **argv;      /* its name and arguments; borrowed texts */
    char **env;       /* variables of PMI, then the environment; borrowed texts */
    struct launched_rank *rank;
    struct launched_process *process;
    int zygote_fd; /* -1: no zygote runs, so each process is executed */
    pid_t zygote;
    bool stopping; /* requests are refused; set by the launcher, like 'ops' and 'arg' */
    const struct procs_ops *ops;
    void *arg; /* argument of the functions in 'ops' */
};

/* Prepare the processes.  Brokers get 'args' (ended by NULL) and the current environment.  Returns 0, or -1 with errno
 * ENOMEM.
 */
int procs_init (struct procs *procs, const struct plan *plan, int size, const char *path, const char *const *args);
void procs_fini (struct procs *procs); /* closes connections, but does not end processes */

/* Start a zygote (broker/boot/zygote.h), before a subreaper (libreaper/reaper.h) starts many processes.  The processes
 * are then forked from the zygote, which has loaded all libraries.  If the zygote cannot be started, or the executable
 * is a script, each process is executed instead.  procs_close_zygote () ends the zygote.
 */
void procs_open_zygote (struct procs *procs);
void procs_close_zygote (struct procs *procs);

/* Start a process that is down, with all its ranks.  Its old connection must be closed; the new one is pmi_fd.  Returns
 * 0, or -1 with errno set (EMFILE, EAGAIN, ...) and the reason in 'errp'.
 */
int procs_start (struct procs *procs, int process, idt_error_t *errp);
void procs_close_pmi (struct procs *procs, int process);

/* Set the state of a rank; 'status' is a wait status. */
void procs_set_starting (struct procs *procs, int rank);
void procs_set_up (struct procs *procs, int rank);
void procs_set_down (struct procs *procs, int rank, int status);

int procs_process (const struct procs *procs, int rank);
pid_t procs_pid (const struct procs *procs, int rank);     /* 0: the rank is down */
bool procs_is_alone (const struct procs *procs, int rank); /* the process of the rank hosts no other rank */

/* Send a signal to a process, or to all processes that are not down.  Returns 0, or -1 with errno ESRCH if the process
 * is down.
 */
int procs_kill (struct procs *procs, int process, int sig);
void procs_kill_all (struct procs *procs, int sig);

/* Continue all stopped processes.  Other processes get no SIGCONT, because it would cancel a stop that a tracer waits
 * for, such as the leak checker at the end of a process.
 */
void procs_cont_all (struct procs *procs);

/* Process a result of waitpid ().  If the process has ended, its ranks become down; its connection stays open.  Returns
 * the process, or -1 if 'pid' is unknown.
 */
int procs_changed (struct procs *procs, pid_t pid, int status);

/* Whether a rank ended as expected: with status 0, or by the signal that was sent to end it. */
bool procs_ended_well (const struct procs *procs, int rank);

/* Write how a broker ended into 'buf': "exited with status 3", "was killed by SIGSEGV".  Returns 'buf'. */
const char *procs_end (int status, char *buf, size_t size);

/* The functions that serve idtree startctl: report the states of brokers, and change the state of a broker.  'arg' is
 * the struct procs.
 */
extern const struct control_ops procs_control_ops;

#endif /* CMD_PROCS_H */
