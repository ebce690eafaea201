/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* procs.c - the broker processes of an instance */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/launch/procs.h"
#include "libutil/errprintf.h"

/* --- start ------------------------------------------------------------------------------------ */

#define NPMI 3 /* variables that differ from rank to rank */

static size_t length (char *const *list)
{
    size_t n = 0;

    while (list[n])
        n++;
    return n;
}

/* Room for the variables of PMI, then ours without those. */
static char **make_env (void)
{
    char **env = calloc (NPMI + length (environ) + 1, sizeof (env[0]));

    for (size_t i = 0, n = NPMI; env && environ[i]; i++)
        if (strncmp (environ[i], "PMI_", 4) != 0)
            env[n++] = environ[i];
    return env;
}

static char **make_argv (const char *const *args)
{
    size_t n = length ((char *const *)args);
    char **argv = calloc (n + 2, sizeof (argv[0]));

    if (argv) {
        argv[0] = "idtree-broker";
        memcpy (argv + 1, args, n * sizeof (argv[0]));
    }
    return argv;
}

/* Become a broker.  Memory is the launcher's until then, and nothing of it may change. */
static void exec_broker (const struct procs *procs, int pmi_fd, pid_t launcher)
{
    sigset_t none;

    prctl (PR_SET_PDEATHSIG, SIGKILL);
    if (getppid () != launcher)
        _exit (1);
    setpgid (0, 0);
    int null = open ("/dev/null", O_RDONLY);
    dup2 (null, STDIN_FILENO);
    dup2 (STDERR_FILENO, STDOUT_FILENO);
    if (null > STDERR_FILENO)
        close (null);
    fcntl (pmi_fd, F_SETFD, 0);
    signal (SIGPIPE, SIG_DFL);
    sigemptyset (&none);
    sigprocmask (SIG_SETMASK, &none, NULL);
    execve (procs->path, procs->argv, procs->env);
    dprintf (STDERR_FILENO, "idtree start: cannot run %s: %s\n", procs->path, strerror (errno));
    _exit (127);
}

/* By vfork (): to copy the launcher's tables of pages for each broker would cost more than all else here. */
static pid_t spawn (struct procs *procs, int rank, int pmi_fd)
{
    char var[NPMI][32];
    pid_t launcher = getpid ();

    snprintf (var[0], sizeof (var[0]), "PMI_FD=%d", pmi_fd);
    snprintf (var[1], sizeof (var[1]), "PMI_RANK=%d", rank);
    snprintf (var[2], sizeof (var[2]), "PMI_SIZE=%d", procs->size);
    for (int i = 0; i < NPMI; i++)
        procs->env[i] = var[i];
    pid_t pid = vfork ();
    if (pid == 0)
        exec_broker (procs, pmi_fd, launcher);
    return pid;
}

int procs_init (struct procs *procs, int size, const char *path, const char *const *args)
{
    memset (procs, 0, sizeof (*procs));
    procs->rank = calloc (size, sizeof (procs->rank[0]));
    procs->argv = make_argv (args);
    procs->env = make_env ();
    if (!procs->rank || !procs->argv || !procs->env)
        return -1;
    procs->size = size;
    procs->path = path;
    for (int i = 0; i < size; i++) {
        procs->rank[i].status = -1;
        procs->rank[i].pmi_fd = -1;
    }
    return 0;
}

void procs_fini (struct procs *procs)
{
    for (int i = 0; i < procs->size; i++)
        procs_close_pmi (procs, i);
    free (procs->argv);
    free (procs->env);
    free (procs->rank);
}

int procs_start (struct procs *procs, int rank, idt_error_t *errp)
{
    struct proc *p = &procs->rank[rank];
    int fds[2];

    assert (p->state == PROC_DOWN && p->pmi_fd < 0);
    if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return errprintf (errp, "broker %d: cannot make a socket: %s", rank, strerror (errno));
    pid_t pid = spawn (procs, rank, fds[1]);
    close (fds[1]);
    if (pid < 0) {
        close (fds[0]);
        return errprintf (errp, "broker %d: cannot make a process: %s", rank, strerror (errno));
    }
    fcntl (fds[0], F_SETFL, O_NONBLOCK);
    p->state = PROC_STARTING;
    p->stopped = false;
    p->sent = 0;
    p->pid = pid;
    p->pmi_fd = fds[0];
    procs->alive++;
    return 0;
}

/* --- change ----------------------------------------------------------------------------------- */

void procs_set_up (struct procs *procs, int rank)
{
    if (procs->rank[rank].state == PROC_STARTING) {
        procs->rank[rank].state = PROC_UP;
        procs->up++;
    }
}

void procs_close_pmi (struct procs *procs, int rank)
{
    if (procs->rank[rank].pmi_fd >= 0)
        close (procs->rank[rank].pmi_fd);
    procs->rank[rank].pmi_fd = -1;
}

int procs_kill (struct procs *procs, int rank, int sig)
{
    struct proc *p = &procs->rank[rank];

    if (p->state == PROC_DOWN)
        return errset (ESRCH);
    if (sig != SIGSTOP && sig != SIGCONT)
        p->sent = sig;
    return kill (p->pid, sig);
}

void procs_kill_all (struct procs *procs, int sig)
{
    for (int i = 0; i < procs->size; i++)
        procs_kill (procs, i, sig);
}

static void set_down (struct procs *procs, int rank, int status)
{
    struct proc *p = &procs->rank[rank];

    procs->alive--;
    if (p->state == PROC_UP)
        procs->up--;
    p->state = PROC_DOWN;
    p->stopped = false;
    p->pid = 0;
    p->status = status;
}

static int find (const struct procs *procs, pid_t pid)
{
    for (int i = 0; i < procs->size; i++)
        if (procs->rank[i].pid == pid)
            return i;
    return -1;
}

int procs_changed (struct procs *procs, pid_t pid, int status)
{
    int rank = find (procs, pid);

    if (rank < 0)
        return -1;
    if (WIFSTOPPED (status))
        procs->rank[rank].stopped = true;
    else if (WIFCONTINUED (status))
        procs->rank[rank].stopped = false;
    else
        set_down (procs, rank, status);
    return rank;
}

bool procs_ended_well (const struct procs *procs, int rank)
{
    const struct proc *p = &procs->rank[rank];

    return p->status == 0 || (WIFSIGNALED (p->status) && WTERMSIG (p->status) == p->sent);
}

/* --- text ------------------------------------------------------------------------------------- */

const char *procs_end (int status, char *buf, size_t size)
{
    const char *name;

    if (!WIFSIGNALED (status))
        snprintf (buf, size, "exited with status %d", WEXITSTATUS (status));
    else if ((name = sigabbrev_np (WTERMSIG (status))))
        snprintf (buf, size, "was killed by SIG%s", name);
    else
        snprintf (buf, size, "was killed by signal %d", WTERMSIG (status));
    return buf;
}

const char *procs_state (const struct procs *procs, int rank, char *buf, size_t size)
{
    const struct proc *p = &procs->rank[rank];
    char end[64];

    if (p->stopped)
        snprintf (buf, size, "stopped");
    else if (p->state != PROC_DOWN)
        snprintf (buf, size, "%s", p->state == PROC_UP ? "up" : "starting");
    else if (p->status == -1)
        snprintf (buf, size, "not started");
    else {
        procs_end (p->status, end, sizeof (end));
        snprintf (buf, size, "%s", !strncmp (end, "was ", 4) ? end + 4 : end);
    }
    return buf;
}
