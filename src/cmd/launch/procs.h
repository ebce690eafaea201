/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* procs.h - the processes of an instance and the brokers in them: start, signal, reap
 *
 * A rank is down, starting or up; beside that it may be stopped.  'down' is told how it came.  Each process hosts the
 * ranks that the plan says, and where that is one, what happens to either happens to both.  Each has a process group of
 * its own, no input, the launcher's stderr, and dies with the launcher.
 */
#ifndef CMD_PROCS_H
#define CMD_PROCS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <idtree/error.h>

#include "broker/base/plan.h"

enum proc_state {
    PROC_DOWN,
    PROC_STARTING,
    PROC_UP,
};

struct launched_rank {
    enum proc_state state;
    bool stopped; /* it alone, by an order */
    int sent;     /* signal that was meant for it last, to end it; 0: none */
    int status;   /* wait status of the life that ended last; -1: none did yet */
};

struct launched_process {
    pid_t pid;    /* 0: down */
    bool stopped; /* by SIGSTOP */
    int sent;     /* signal that we sent last, to end it; 0: none */
    int status;   /* wait status of the life that ended last */
    int lost;     /* ranks that ended with that */
    int pmi_fd;   /* our end of its PMI connection; -1: closed */
    bool listens; /* for orders, on that connection */
};

struct procs {
    int size;  /* ranks */
    int count; /* processes */
    int alive; /* processes that are not down */
    int up;    /* ranks */
    const struct plan *plan;
    const char *path; /* of the broker's executable; borrowed */
    bool script;      /* it is one, which may do something else before it becomes a broker */
    char **argv;      /* its name, and what follows it; borrowed texts */
    char **env;       /* what PMI says to a process, and ours; borrowed texts */
    struct launched_rank *rank;
    struct launched_process *process;
    int nursery_fd; /* -1: there is none, and each process is made by itself */
    pid_t nursery;
};

/* Brokers get 'args' (ended by NULL) and the environment as it is now.  Returns 0, or -1 with errno ENOMEM. */
int procs_init (struct procs *procs, const struct plan *plan, int size, const char *path, const char *const *args);
void procs_fini (struct procs *procs); /* closes connections, leaves processes alone */

/* Before many are started together, by a subreaper (keeper.h): have them begin as copies of one that has loaded what
 * they need (broker/boot/zygote.h); that is over with the second call.  Where that cannot be, or the
 * executable is a script, each is made by itself.
 */
void procs_open_nursery (struct procs *procs);
void procs_close_nursery (struct procs *procs);

/* Start a process that is down and whose old connection was closed, and all its ranks; pmi_fd is the new one.  Returns
 * 0, or -1 with errno set (EMFILE, EAGAIN, ...) and the reason in 'errp'.
 */
int procs_start (struct procs *procs, int process, idt_error_t *errp);
void procs_close_pmi (struct procs *procs, int process);

/* What became of a rank; 'status': as wait () tells it. */
void procs_set_starting (struct procs *procs, int rank);
void procs_set_up (struct procs *procs, int rank);
void procs_set_down (struct procs *procs, int rank, int status);

int procs_process (const struct procs *procs, int rank);
pid_t procs_pid (const struct procs *procs, int rank); /* 0: it is down */
bool procs_is_stopped (const struct procs *procs, int rank);
bool procs_is_alone (const struct procs *procs, int rank); /* its process hosts no other */

/* Signal a process that is not down, or all of those.  Returns 0, or -1 with errno ESRCH. */
int procs_kill (struct procs *procs, int process, int sig);
void procs_kill_all (struct procs *procs, int sig);

/* Have those that are stopped go on.  Others get no SIGCONT: it takes a stop away that a tracer waits for, as the one
 * that looks for leaks when a process ends.
 */
void procs_cont_all (struct procs *procs);

/* Take what waitpid () said of 'pid'; the connection of one that ended stays open, and its ranks are down.  Returns the
 * process, or -1 where it is none of ours.
 */
int procs_changed (struct procs *procs, pid_t pid, int status);

/* Is the way in which a rank ended no surprise: by itself in order, or by the signal that was meant for it? */
bool procs_ended_well (const struct procs *procs, int rank);

/* "up", "stopped", "killed by SIGSEGV", ... in 'buf'.  Returns 'buf'. */
const char *procs_state (const struct procs *procs, int rank, char *buf, size_t size);

/* How a broker ended, from its wait status: "exited with status 3", "was killed by SIGSEGV". */
const char *procs_end (int status, char *buf, size_t size);

#endif /* CMD_PROCS_H */
