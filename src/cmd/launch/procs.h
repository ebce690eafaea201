/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* procs.h - the processes of an instance and the brokers in them: start, signal, reap, serve idtree startctl
 *
 * A rank is down, starting or up; it may also be stopped.  A rank that is down has the wait status of its end.  Each
 * process hosts the ranks of the plan; a process with one rank has the state of its rank.  Each process has its own
 * process group, no input, the launcher's stderr, and dies with the launcher.
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
    bool stopped; /* only this rank, by a command */
    int sent;     /* last signal sent to end it; 0: none */
    int status;   /* wait status of its last life; -1: has not ended yet */
};

struct launched_process {
    pid_t pid;    /* 0: down */
    bool stopped; /* by SIGSTOP */
    int sent;     /* last signal sent to end it; 0: none */
    int status;   /* wait status of its last life */
    int lost;     /* number of ranks that ended with it */
    int pmi_fd;   /* the launcher's end of its PMI connection; -1: closed */
    bool listens; /* takes commands on this connection */
};

/* Functions of the launcher, for requests of idtree startctl. */
struct procs_ops {
    /* Start a process that is down, and the brokers in it.  Returns 0, or -1 with the reason in 'errp'. */
    int (*start) (void *arg, int process, idt_error_t *errp);
    /* Send a command for a rank, one of several in its process, to this process (broker/launcher_orders.h). */
    void (*order) (void *arg, int rank, const char *order, int signum);
};

struct procs {
    int size;  /* ranks */
    int count; /* processes */
    int alive; /* processes that are not down */
    int up;    /* ranks */
    const struct plan *plan;
    const char *path; /* path of the broker's executable; borrowed */
    bool script;      /* the executable is a script, which may do more than become a broker */
    char **argv;      /* its name and arguments; borrowed texts */
    char **env;       /* variables of PMI, then the environment; borrowed texts */
    struct launched_rank *rank;
    struct launched_process *process;
    int zygote_fd; /* -1: no zygote, each process is executed */
    pid_t zygote;
    bool stopping; /* the instance is stopping: requests are refused; set by the launcher, as are: */
    const struct procs_ops *ops;
    void *arg; /* of 'ops' */
};

/* Brokers get 'args' (ended by NULL) and the current environment.  Returns 0, or -1 with errno ENOMEM. */
int procs_init (struct procs *procs, const struct plan *plan, int size, const char *path, const char *const *args);
void procs_fini (struct procs *procs); /* closes connections, does not end processes */

/* Start a zygote (broker/boot/zygote.h), before many processes are started together by a subreaper
 * (libreaper/reaper.h): they are then forked from a process that has loaded all libraries.  The second function ends
 * it.  If it cannot be started, or the executable is a script, each process is executed.
 */
void procs_open_zygote (struct procs *procs);
void procs_close_zygote (struct procs *procs);

/* Start a process that is down and whose old connection was closed, with all its ranks; pmi_fd is the new connection.
 * Returns 0, or -1 with errno set (EMFILE, EAGAIN, ...) and the reason in 'errp'.
 */
int procs_start (struct procs *procs, int process, idt_error_t *errp);
void procs_close_pmi (struct procs *procs, int process);

/* Set the state of a rank; 'status' is a wait status. */
void procs_set_starting (struct procs *procs, int rank);
void procs_set_up (struct procs *procs, int rank);
void procs_set_down (struct procs *procs, int rank, int status);

int procs_process (const struct procs *procs, int rank);
pid_t procs_pid (const struct procs *procs, int rank);     /* 0: it is down */
bool procs_is_alone (const struct procs *procs, int rank); /* its process hosts no other rank */

/* Signal a process that is not down, or all of them.  Returns 0, or -1 with errno ESRCH. */
int procs_kill (struct procs *procs, int process, int sig);
void procs_kill_all (struct procs *procs, int sig);

/* Continue all stopped processes.  Others get no SIGCONT: it would cancel a stop that a tracer waits for, such as the
 * leak checker at the end of a process.
 */
void procs_cont_all (struct procs *procs);

/* Process a result of waitpid ().  If the process ended its ranks become down, and its connection stays open.  Returns
 * the process, or -1 if 'pid' is unknown.
 */
int procs_changed (struct procs *procs, pid_t pid, int status);

/* Whether a rank ended as expected: in order by itself, or by the signal that was sent to end it. */
bool procs_ended_well (const struct procs *procs, int rank);

/* How a broker ended, from its wait status: "exited with status 3", "was killed by SIGSEGV". */
const char *procs_end (int status, char *buf, size_t size);

/* Serve the requests of idtree startctl: get the states of brokers, and change one.  'arg': the struct procs. */
extern const struct control_ops procs_control_ops;

#endif /* CMD_PROCS_H */
