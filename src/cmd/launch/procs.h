/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* procs.h - the broker processes of an instance: start, signal, reap
 *
 * A rank is down, starting or up; beside that its process may be stopped.  'down' is told how it
 * came.  Each broker has a process group of its own, no input, the launcher's stderr, and dies
 * with the launcher.
 */
#ifndef CMD_PROCS_H
#define CMD_PROCS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <idtree/error.h>

enum proc_state {
    PROC_DOWN,
    PROC_STARTING,
    PROC_UP,
};

struct proc {
    enum proc_state state;
    bool stopped; /* by SIGSTOP */
    int sent;     /* signal that we sent last, to end it; 0: none */
    pid_t pid;    /* 0: down */
    int status;   /* wait status of the process that ran last; -1: none ran yet */
    int pmi_fd;   /* our end of its PMI connection; -1: closed */
};

struct procs {
    int size;
    int alive; /* not down */
    int up;
    const char *path; /* of the broker's executable; borrowed */
    char **argv;      /* its name, and what follows it; borrowed texts */
    char **env;       /* what PMI says to a rank, and ours; borrowed texts */
    struct proc *rank;
};

/* Brokers get 'args' (ended by NULL) and the environment as it is now.  Returns 0, or -1 with errno ENOMEM. */
int procs_init (struct procs *procs, int size, const char *path, const char *const *args);
void procs_fini (struct procs *procs); /* closes connections, leaves processes alone */

/* Start the broker of a rank that is down and whose old connection was closed; pmi_fd is the new
 * one.  Returns 0, or -1 with errno set (EMFILE, EAGAIN, ...) and the reason in 'errp'.
 */
int procs_start (struct procs *procs, int rank, idt_error_t *errp);

void procs_set_up (struct procs *procs, int rank);
void procs_close_pmi (struct procs *procs, int rank);

/* Signal a rank that is not down, or all of those.  Returns 0, or -1 with errno ESRCH. */
int procs_kill (struct procs *procs, int rank, int sig);
void procs_kill_all (struct procs *procs, int sig);

/* Take what waitpid () said of 'pid'; the connection of one that ended stays open.  Returns the
 * rank, or -1 where it is no broker.
 */
int procs_changed (struct procs *procs, pid_t pid, int status);

/* Is the way in which a rank ended no surprise: by itself in order, or by the signal that we sent? */
bool procs_ended_well (const struct procs *procs, int rank);

/* "up", "stopped", "killed by SIGSEGV", ... in 'buf'.  Returns 'buf'. */
const char *procs_state (const struct procs *procs, int rank, char *buf, size_t size);

/* How a process ended, from its wait status: "exited with status 3", "was killed by SIGSEGV". */
const char *procs_end (int status, char *buf, size_t size);

#endif /* CMD_PROCS_H */
