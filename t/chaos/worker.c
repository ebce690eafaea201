/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* worker.c - a program that works in an instance under faults
 *
 * The end of the program causes no event; its state is polled.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "die.h"
#include "worker.h"

extern char **environ;

struct worker {
    pid_t pid; /* 0: the program has ended */
    int in_fd; /* -1: closed */
    int status;
    uint64_t deadline_us; /* when it is killed; UINT64_MAX: never */
};

/* Start the program. This program blocks signals, but the new one begins with none blocked. */
static void spawn (struct worker *w, const char *const *argv, int in_fd)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none;

    sigemptyset (&none);
    posix_spawnattr_init (&attr);
    posix_spawnattr_setsigmask (&attr, &none);
    posix_spawnattr_setflags (&attr, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_init (&files);
    posix_spawn_file_actions_adddup2 (&files, in_fd, 0);
    if ((errno = posix_spawn (&w->pid, argv[0], &files, &attr, (char **)argv, environ)) != 0)
        die (argv[0]);
    posix_spawn_file_actions_destroy (&files);
    posix_spawnattr_destroy (&attr);
}

struct worker *worker_start (const char *const *argv)
{
    struct worker *w = must (calloc (1, sizeof (*w)));
    int in[2];

    if (pipe2 (in, O_CLOEXEC) < 0)
        die ("pipe");
    spawn (w, argv, in[0]);
    close (in[0]);
    w->in_fd = in[1];
    w->deadline_us = UINT64_MAX;
    return w;
}

void worker_finish (struct worker *w, uint64_t limit_us)
{
    if (w->in_fd >= 0)
        close (w->in_fd);
    w->in_fd = -1;
    w->deadline_us = client_now_us () + limit_us;
}

bool worker_ended (struct worker *w)
{
    if (w->pid && client_now_us () > w->deadline_us) {
        fprintf (stderr, "chaos: a worker does not end\n");
        kill (w->pid, SIGKILL);
        w->deadline_us = UINT64_MAX;
    }
    if (w->pid && waitpid (w->pid, &w->status, WNOHANG) == w->pid)
        w->pid = 0;
    return w->pid == 0;
}

bool worker_good (const struct worker *w)
{
    return w->pid == 0 && w->status == 0;
}

void worker_destroy (struct worker *w)
{
    if (w && w->in_fd >= 0)
        close (w->in_fd);
    free (w);
}
