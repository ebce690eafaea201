/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* command.c - the program that rank 0 runs; the instance ends when the program ends */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/boot/traces.h"
#include "broker/command.h"
#include "libutil/errprintf.h"
#include "libutil/inherited.h"
#include "libutil/worker.h"

struct rank_command {
    pid_t pid;             /* 0: the program has ended */
    int pidfd;             /* readable when the program has ended; -1: 'waiter' is used in its place */
    struct worker *waiter; /* a thread that waits for the end of the program; NULL: 'pidfd' is used */
    idt_watcher_t *w;
    command_f cb;
    void *arg;
};

/* --- its end -------------------------------------------------------------------------------------- */

/* Linux has pidfd_open since 5.3, but a seccomp profile may refuse it. */
static int open_pidfd (pid_t pid)
{
#ifdef SYS_pidfd_open
    return (int)syscall (SYS_pidfd_open, pid, 0);
#else
    return errset (ENOSYS);
#endif
}

/* Runs in the thread. WNOWAIT keeps the exit status for reap (). */
static int wait_for_end (void *arg, idt_error_t *errp)
{
    struct rank_command *c = arg;
    siginfo_t info;

    while (waitid (P_PID, c->pid, &info, WEXITED | WNOWAIT) < 0)
        if (errno != EINTR)
            return -1;
    return 0;
}

/* Returns a descriptor that is readable when the program has ended, or -1 with errno set. */
static int watch_end (struct rank_command *c)
{
    if ((c->pidfd = open_pidfd (c->pid)) >= 0)
        return c->pidfd;
    if (!(c->waiter = worker_create (wait_for_end, c)))
        return -1;
    worker_begin (c->waiter);
    return worker_fd (c->waiter);
}

static int reap (struct rank_command *c)
{
    int status = 0;

    while (waitpid (c->pid, &status, 0) < 0 && errno == EINTR)
        ;
    c->pid = 0;
    return WIFSIGNALED (status) ? 128 + WTERMSIG (status) : WEXITSTATUS (status);
}

static void ended_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct rank_command *c = arg;

    if (c->waiter && worker_result (c->waiter, NULL) == 0)
        return;
    assert (c->pid > 0);
    idt_watcher_stop (w);
    c->cb (reap (c), c->arg);
}

/* --- its start ------------------------------------------------------------------------------------ */

static void free_environment (char **env)
{
    if (!env)
        return;
    free (env[0]);
    free (env[1]);
    free (env);
}

/* Whether a variable is meant for this process only, by its launcher or by the service manager. */
static bool is_ours (const char *variable)
{
    static const char *const names[] = { "IDTREE_URI=", "FLUX_URI=", "PMI_", "NOTIFY_SOCKET=", "WATCHDOG_" };

    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++)
        if (strncmp (variable, names[i], strlen (names[i])) == 0)
            return true;
    return false;
}

/* Make the environment of the program: two new strings with the URIs, then the strings of this process (borrowed),
 * without the variables for which is_ours () or traces_name_task () is true.
 */
static char **make_environment (const char *uri)
{
    size_t n = 0, kept = 0;
    char **env;

    while (environ[n])
        n++;
    if (!(env = calloc (n + 3, sizeof (env[0]))))
        return NULL;
    if (asprintf (&env[0], "IDTREE_URI=%s", uri) < 0 || asprintf (&env[1], "FLUX_URI=%s", uri) < 0) {
        free_environment (env);
        return NULL;
    }
    for (kept = 2, n = 0; environ[n]; n++)
        if (!is_ours (environ[n]) && !traces_name_task (environ[n]))
            env[kept++] = environ[n];
    return env;
}

/* Runs in the child. The program starts as if a shell started it: no signal is blocked or ignored (except signals that
 * nohup ignores), and its soft limit of descriptors is 'files'. The broker has raised its own soft limit, but some
 * programs do not work with a high limit.
 */
static _Noreturn void run (char **argv, char **env, uint64_t files, int why)
{
    struct rlimit limit;

    inherited_pass_signals ();
    if (files > 0 && getrlimit (RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = files;
        setrlimit (RLIMIT_NOFILE, &limit);
    }
    execvpe (argv[0], argv, env);
    if (write (why, &errno, sizeof (errno)) < 0)
        _exit (126);
    _exit (127);
}

/* Start the program. posix_spawn () cannot set a limit, and changing the broker's own limit for a moment would affect
 * all its threads, so this uses fork ().
 */
static int spawn (struct rank_command *c, char **argv, char **env, uint64_t files)
{
    int why[2], errnum = 0;

    if (pipe2 (why, O_CLOEXEC) < 0)
        return -1;
    if ((c->pid = fork ()) == 0)
        run (argv, env, files, why[1]);
    if (c->pid < 0)
        errnum = errno;
    close (why[1]);
    while (c->pid > 0 && read (why[0], &errnum, sizeof (errnum)) < 0 && errno == EINTR)
        ;
    close (why[0]);
    if (errnum == 0)
        return 0;
    if (c->pid > 0)
        reap (c);
    c->pid = 0;
    return errset (errnum);
}

struct rank_command *command_create (idt_reactor_t *r, char **argv, const char *uri, uint64_t files, command_f cb,
                                     void *arg, idt_error_t *errp)
{
    struct rank_command *c = calloc (1, sizeof (*c));
    char **env = make_environment (uri);
    int fd;

    if (!c || !env) {
        errprintf (errp, "out of memory");
        goto error;
    }
    c->pidfd = -1;
    c->cb = cb;
    c->arg = arg;
    if (spawn (c, argv, env, files) < 0 || (fd = watch_end (c)) < 0
        || !(c->w = idt_fd_watcher_create (r, fd, IDT_POLLIN, ended_cb, c))) {
        errprintf (errp, "cannot run %s: %s", argv[0], strerror (errno));
        goto error;
    }
    idt_watcher_start (c->w);
    free_environment (env);
    return c;
error:
    free_environment (env);
    command_destroy (c);
    return NULL;
}

void command_kill (struct rank_command *c, int signum)
{
    if (c && c->pid > 0)
        kill (c->pid, signum);
}

void command_destroy (struct rank_command *c)
{
    int saved_errno = errno;

    if (!c)
        return;
    if (c->pid > 0)
        kill (c->pid, SIGKILL);
    worker_destroy (c->waiter); /* the thread reads 'pid', and ends because SIGKILL has ended the program */
    if (c->pid > 0)
        reap (c);
    idt_watcher_destroy (c->w);
    if (c->pidfd >= 0)
        close (c->pidfd);
    free (c);
    errno = saved_errno;
}
