/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* zygote_test.c - processes that a nursery splits off, from real ones */
#include "config.h"

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

#include "broker/boot/zygote.h"
#include "test/tap.h"

#define CHILDREN 20

/* Of what is made before, each that is asked for has its own. */
static void prepare (void *arg)
{
    setenv ("PREPARED", "once", 1);
}

/* What a process does that was asked for: tell who it is through its PMI_FD, and end when that is closed. */
static void be_born (void)
{
    char text[128], c;
    int fd = atoi (getenv ("PMI_FD"));

    snprintf (text, sizeof (text), "%d %d %d %s %s %d %s", (int)getpid (), (int)getppid (), (int)getpgrp (),
              getenv ("PMI_RANK"), getenv ("PMI_SIZE"), getenv (ZYGOTE_VARIABLE) != NULL, getenv ("PREPARED"));
    if (write (fd, text, strlen (text)) < 0 || read (fd, &c, 1) < 0)
        _exit (9);
    _exit (7);
}

/* Returns our end of its socket. */
static int start_nursery (pid_t *pid)
{
    char text[16];
    int fds[2];

    if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        bail_out ("socketpair");
    *pid = fork ();
    if (*pid == 0) {
        close (fds[0]);
        snprintf (text, sizeof (text), "%d", fds[1]);
        setenv (ZYGOTE_VARIABLE, text, 1);
        if (zygote_serve (prepare, NULL) < 0)
            _exit (8);
        be_born ();
    }
    close (fds[1]);
    return fds[0];
}

/* Our end of the connection of a new process. */
static int ask (int nursery, uint32_t rank, pid_t *pid)
{
    struct zygote_order order = { .parent = getpid (), .rank = rank, .size = CHILDREN };
    int fds[2];

    if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        bail_out ("socketpair");
    *pid = zygote_ask (nursery, &order, fds[1]);
    close (fds[1]);
    return fds[0];
}

static bool is_as_asked (int fd, pid_t pid, uint32_t rank)
{
    char said[128] = "", expected[128];

    snprintf (expected, sizeof (expected), "%d %d %d %u %d 0 once", (int)pid, (int)getpid (), (int)pid, rank, CHILDREN);
    if (read (fd, said, sizeof (said) - 1) < 0 || strcmp (said, expected) != 0) {
        diag ("it says %s, and not %s", said, expected);
        return false;
    }
    return true;
}

static void test_children (int nursery, pid_t pid)
{
    int fd[CHILDREN], good = 0, ended = 0, status;
    pid_t child[CHILDREN];

    for (int i = 0; i < CHILDREN; i++) {
        fd[i] = ask (nursery, i, &child[i]);
        good += child[i] > 0 && is_as_asked (fd[i], child[i], i);
    }
    ok (good == CHILDREN, "each that is asked for knows who it is, and is our child, in a group of its own");
    close (nursery);
    ok (waitpid (pid, &status, 0) == pid && WIFEXITED (status) && WEXITSTATUS (status) == 0,
        "the nursery ends when its socket is closed");
    for (int i = 0; i < CHILDREN; i++) {
        close (fd[i]);
        ended += waitpid (child[i], &status, 0) == child[i] && WIFEXITED (status) && WEXITSTATUS (status) == 7;
    }
    ok (ended == CHILDREN, "they outlive it, and we are told how each ended");
}

static void test_gone (void)
{
    pid_t pid, child;
    int nursery = start_nursery (&pid), fd;

    kill (pid, SIGKILL);
    waitpid (pid, NULL, 0);
    errno = 0;
    fd = ask (nursery, 0, &child);
    ok (child < 0 && (errno == EPIPE || errno == ECONNRESET), "one that is gone is told: %s", strerror (errno));
    close (fd);
    close (nursery);
}

/* Who asks and dies takes with it what it asked for. */
static void test_parent_dies (void)
{
    int fds[2], status;
    char c;

    if (pipe2 (fds, O_CLOEXEC) < 0)
        bail_out ("pipe");
    pid_t pid, child, launcher = fork ();
    if (launcher == 0) {
        prctl (PR_SET_CHILD_SUBREAPER, 1);
        int nursery = start_nursery (&pid), fd = ask (nursery, 0, &child);
        _exit (child > 0 && is_as_asked (fd, child, 0) ? 0 : 1);
    }
    close (fds[1]); /* the others have it, as long as they live */
    ok (waitpid (launcher, &status, 0) == launcher && status == 0 && read (fds[0], &c, 1) == 0,
        "who asks and ends takes with it what it asked for");
    close (fds[0]);
}

static void test_variable (void)
{
    const char *const bad[] = { "", "x", "-1", "0", "2", "999", "99999999999" };
    int refused = 0, n = sizeof (bad) / sizeof (bad[0]);

    for (int i = 0; i < n; i++) {
        setenv (ZYGOTE_VARIABLE, bad[i], 1);
        refused += zygote_serve (prepare, NULL) < 0 && errno == EINVAL;
    }
    unsetenv (ZYGOTE_VARIABLE);
    ok (refused == n, "what names no socket is refused");
    ok (zygote_serve (prepare, NULL) == 0 && !getenv ("PREPARED"), "a broker that is alone is not kept, nor prepared");
}

int main (void)
{
    pid_t pid;
    int nursery;

    prctl (PR_SET_CHILD_SUBREAPER, 1);
    test_variable ();
    nursery = start_nursery (&pid);
    test_children (nursery, pid);
    test_gone ();
    test_parent_dies ();
    return done_testing ();
}
