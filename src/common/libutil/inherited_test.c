/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* inherited_test.c - a process that inherits unusual signals, descriptors and limits gets usual ones */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libutil/inherited.h"
#include "test/tap.h"

/* Run a check in a child process, which may change its inherited state. Returns the exit status of the child. */
static int in_child (int (*check) (void))
{
    int status = -1;
    pid_t pid;

    fflush (stdout);
    if ((pid = fork ()) == 0)
        _exit (check ());
    if (pid > 0)
        waitpid (pid, &status, 0);
    return WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

static struct sigaction now (int sig)
{
    struct sigaction sa = { 0 };

    sigaction (sig, NULL, &sa);
    return sa;
}

static void spoil_signals (void)
{
    sigset_t all;

    for (int sig = 1; sig < NSIG; sig++)
        signal (sig, SIG_IGN);
    sigfillset (&all);
    sigprocmask (SIG_SETMASK, &all, NULL);
}

static bool none_blocked (void)
{
    sigset_t set;

    sigprocmask (SIG_BLOCK, NULL, &set);
    for (int sig = 1; sig < NSIG; sig++)
        if (sigismember (&set, sig) == 1)
            return false;
    return true;
}

static int check_signals (void)
{
    int status;

    spoil_signals ();
    if (inherited_set (NULL) < 0 || !none_blocked () || now (SIGXFSZ).sa_handler != SIG_IGN)
        return 1;
    pid_t pid = fork ();
    if (pid == 0)
        _exit (3);
    return waitpid (pid, &status, 0) == pid && WEXITSTATUS (status) == 3 ? 0 : 2;
}

static int check_passed (void)
{
    spoil_signals ();
    inherited_pass_signals ();
    for (int sig = 1; sig < NSIG; sig++)
        if (sig != SIGHUP && now (sig).sa_handler != SIG_DFL)
            return 1;
    return none_blocked () && inherited_nohup () ? 0 : 2;
}

static int check_hangup (void)
{
    signal (SIGHUP, SIG_DFL);
    inherited_pass_signals ();
    return inherited_nohup () ? 1 : 0;
}

static int check_umask (void)
{
    umask (0765);
    if (inherited_set (NULL) < 0)
        return 1;
    return umask (0) == 065 ? 0 : 2;
}

static int check_descriptors (void)
{
    struct stat st;
    char c = 0;

    close (0);
    close (1);
    close (2);
    if (inherited_set (NULL) < 0 || fstat (1, &st) < 0 || !S_ISCHR (st.st_mode))
        return 1;
    return read (0, &c, 1) < 0 && write (1, &c, 1) < 0 && write (2, &c, 1) < 0 ? 0 : 2;
}

static void limit_stack (rlim_t soft, rlim_t hard)
{
    setrlimit (RLIMIT_STACK, &(struct rlimit){ .rlim_cur = soft, .rlim_max = hard });
}

static int check_soft_stack (void)
{
    struct rlimit r;

    limit_stack (200 << 10, 4 << 20);
    if (inherited_set (NULL) < 0 || getrlimit (RLIMIT_STACK, &r) < 0)
        return 1;
    return r.rlim_cur == 4 << 20 ? 0 : 2;
}

static int check_hard_stack (void)
{
    idt_error_t error = { "" };

    limit_stack (200 << 10, 200 << 10);
    if (inherited_set (&error) == 0 || errno != ENOMEM)
        return 1;
    return strstr (error.text, "200 KiB (ulimit -Hs)") && strstr (error.text, "at least 256 KiB") ? 0 : 2;
}

static int set_and_get (size_t size, size_t *got)
{
    pthread_attr_t attr;

    pthread_attr_init (&attr);
    pthread_attr_setstacksize (&attr, size);
    if (pthread_setattr_default_np (&attr) != 0 || inherited_set (NULL) < 0 || pthread_getattr_default_np (&attr) != 0)
        return -1;
    return pthread_attr_getstacksize (&attr, got);
}

static int check_threads (void)
{
    size_t got = 0;

    if (set_and_get ((size_t)PTHREAD_STACK_MIN, &got) != 0 || got != 2 << 20)
        return 1;
    if (set_and_get ((size_t)1 << 30, &got) != 0 || got != 2 << 20)
        return 2;
    return set_and_get (8 << 20, &got) == 0 && got == 8 << 20 ? 0 : 3;
}

int main (int argc, char **argv)
{
    ok (in_child (check_signals) == 0,
        "inherited blocked and ignored signals are reset: no signal is blocked, and a child can be waited for");
    ok (in_child (check_passed) == 0,
        "a program that is executed starts with default signals, and an ignored hangup stays ignored");
    ok (in_child (check_hangup) == 0, "a hangup that is not ignored keeps its default");
    ok (in_child (check_umask) == 0,
        "the owner can read and write new files whatever the inherited umask is, and the permissions of others do "
        "not change");
    ok (in_child (check_descriptors) == 0,
        "stdin, stdout and stderr are open even if they were inherited closed, and reads and writes fail");
    ok (in_child (check_soft_stack) == 0, "the stack may grow as far as the hard limit allows");
    ok (in_child (check_hard_stack) == 0, "a hard limit of the stack that is too low is refused, with the limit and "
                                          "the minimum");
    ok (in_child (check_threads) == 0,
        "threads have stacks that are neither tiny nor huge, for each inherited limit of the stack");
    return done_testing ();
}
