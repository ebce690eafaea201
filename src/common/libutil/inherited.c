/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* inherited.c - correct the signals, descriptors and limits that a process inherits from its parent process */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "libutil/errprintf.h"
#include "libutil/inherited.h"
#include "libutil/minmax.h"

#define STACK_USUAL (8u << 20)
#define STACK_LEAST (256u << 10)
#define THREAD_STACK (2u << 20)       /* bytes; new threads get it if the limit gives less than half of it, */
#define THREAD_STACK_MOST (64u << 20) /* or more than this: a few such threads would fill the address space */

static int open_stdfds (idt_error_t *errp)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl (fd, F_GETFD) < 0 && open ("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            return errprintf (errp, "descriptor %d is closed, and /dev/null cannot be opened there", fd);
    return 0;
}

/* Block the signals in 'blocked' and unblock all others. It is one step, so that no blocked signal is delivered in
 * between.
 */
static void block_only (const int *blocked)
{
    sigset_t set;

    sigemptyset (&set);
    for (; *blocked != 0; blocked++)
        sigaddset (&set, *blocked);
    sigprocmask (SIG_SETMASK, &set, NULL);
}

static void set_signals (const int *blocked)
{
    signal (SIGCHLD, SIG_DFL);
    signal (SIGXFSZ, SIG_IGN);
    block_only (blocked);
}

static void set_umask (void)
{
    umask (umask (0077) & 0077);
}

/* Raise the soft limit of the stack. The new limit has an effect, because the stack of the main thread may grow up to
 * the soft limit that applies when it grows.
 */
static int set_stack (idt_error_t *errp)
{
    struct rlimit r;

    if (getrlimit (RLIMIT_STACK, &r) < 0 || r.rlim_cur >= STACK_USUAL)
        return 0;
    r.rlim_cur = min_u64 (STACK_USUAL, r.rlim_max);
    setrlimit (RLIMIT_STACK, &r);
    if (r.rlim_cur >= STACK_LEAST)
        return 0;
    return errsetf (errp, ENOMEM, "the stack is limited to %llu KiB (ulimit -Hs), and at least %u KiB are needed",
                    (unsigned long long)r.rlim_cur >> 10, STACK_LEAST >> 10);
}

/* Set the stack size of new threads. The C library has taken the default from the limit when the process started. */
static void set_thread_stacks (void)
{
    pthread_attr_t attr;
    size_t size;

    if (pthread_getattr_default_np (&attr) != 0)
        return;
    if (pthread_attr_getstacksize (&attr, &size) == 0 && (size < THREAD_STACK / 2 || size > THREAD_STACK_MOST)
        && pthread_attr_setstacksize (&attr, THREAD_STACK) == 0)
        pthread_setattr_default_np (&attr);
    pthread_attr_destroy (&attr);
}

int inherited_set_but (const int *blocked, idt_error_t *errp)
{
    set_signals (blocked);
    if (open_stdfds (errp) < 0)
        return -1;
    set_umask ();
    set_thread_stacks ();
    return set_stack (errp);
}

int inherited_set (idt_error_t *errp)
{
    return inherited_set_but (&(const int){ 0 }, errp);
}

bool inherited_nohup (void)
{
    struct sigaction now;

    return sigaction (SIGHUP, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

void inherited_pass_signals_but (const int *blocked)
{
    bool nohup = inherited_nohup ();

    for (int sig = 1; sig < NSIG; sig++)
        if (sig != SIGHUP || !nohup)
            signal (sig, SIG_DFL);
    block_only (blocked);
}

void inherited_pass_signals (void)
{
    inherited_pass_signals_but (&(const int){ 0 });
}
