/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* zygote_test.c - processes that a zygote forks */
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

/* Each requested process inherits what this function sets. */
static void prepare (void *arg)
{
    setenv ("PREPARED", "once", 1);
}

/* Called in a requested process: write its identity to its PMI_FD, and end when the other end of PMI_FD is closed. */
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

/* Returns our end of the zygote's socket. */
static int start_zygote (pid_t *pid)
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

/* Request a process. Returns our end of the connection to it. */
static int ask (int zygote, uint32_t rank, pid_t *pid)
{
    struct zygote_order order = { .parent = getpid (), .rank = rank, .size = CHILDREN };
    int fds[2];

    if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        bail_out ("socketpair");
    *pid = zygote_ask (zygote, &order, fds[1]);
    close (fds[1]);
    return fds[0];
}

static bool is_as_asked (int fd, pid_t pid, uint32_t rank)
{
    char said[128] = "", expected[128];

    snprintf (expected, sizeof (expected), "%d %d %d %u %d 0 once", (int)pid, (int)getpid (), (int)pid, rank, CHILDREN);
    if (read (fd, said, sizeof (said) - 1) < 0 || strcmp (said, expected) != 0) {
        diag ("the process writes %s, not %s", said, expected);
        return false;
    }
    return true;
}

static void test_children (int zygote, pid_t pid)
{
    int fd[CHILDREN], good = 0, ended = 0, status;
    pid_t child[CHILDREN];

    for (int i = 0; i < CHILDREN; i++) {
        fd[i] = ask (zygote, i, &child[i]);
        good += child[i] > 0 && is_as_asked (fd[i], child[i], i);
    }
    ok (good == CHILDREN,
        "each process that the zygote starts knows its rank, and is a child of the caller in a process group of its "
        "own");
    close (zygote);
    ok (waitpid (pid, &status, 0) == pid && WIFEXITED (status) && WEXITSTATUS (status) == 0,
        "the zygote ends when its socket is closed");
    for (int i = 0; i < CHILDREN; i++) {
        close (fd[i]);
        ended += waitpid (child[i], &status, 0) == child[i] && WIFEXITED (status) && WEXITSTATUS (status) == 7;
    }
    ok (ended == CHILDREN,
        "the processes of a zygote continue when the zygote has ended, and their parent can wait for them");
}

static void test_gone (void)
{
    pid_t pid, child;
    int zygote = start_zygote (&pid), fd;

    kill (pid, SIGKILL);
    waitpid (pid, NULL, 0);
    errno = 0;
    fd = ask (zygote, 0, &child);
    ok (child < 0 && (errno == EPIPE || errno == ECONNRESET), "a request to a zygote that has ended fails: %s",
        strerror (errno));
    close (fd);
    close (zygote);
}

/* When the process that requested others ends, these are killed. */
static void test_parent_dies (void)
{
    int fds[2], status;
    char c;

    if (pipe2 (fds, O_CLOEXEC) < 0)
        bail_out ("pipe");
    pid_t pid, child, launcher = fork ();
    if (launcher == 0) {
        prctl (PR_SET_CHILD_SUBREAPER, 1);
        int zygote = start_zygote (&pid), fd = ask (zygote, 0, &child);
        _exit (child > 0 && is_as_asked (fd, child, 0) ? 0 : 1);
    }
    close (fds[1]); /* the requested processes still have copies of this descriptor */
    ok (waitpid (launcher, &status, 0) == launcher && status == 0 && read (fds[0], &c, 1) == 0,
        "the processes of a zygote are killed when their parent ends");
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
    ok (refused == n, "a value of the zygote's variable that is not the number of a socket is refused");
    ok (zygote_serve (prepare, NULL) == 0 && !getenv ("PREPARED"),
        "a broker without the zygote's variable is not a zygote");
}

int main (void)
{
    pid_t pid;
    int zygote;

    prctl (PR_SET_CHILD_SUBREAPER, 1);
    test_variable ();
    zygote = start_zygote (&pid);
    test_children (zygote, pid);
    test_gone ();
    test_parent_dies ();
    return done_testing ();
}
