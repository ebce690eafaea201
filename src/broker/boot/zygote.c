/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* zygote.c - a process that has loaded all libraries of a broker, and forks brokers on request
 *
 *     launcher --exec--> zygote --fork--> intermediate --fork--> broker
 *
 * The intermediate process sends the broker's pid to the launcher and exits. The broker then becomes a child of its
 * nearest ancestor that is a subreaper, the launcher.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/boot/zygote.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"

#define ANSWER_MS 30000 /* ms; a machine that cannot fork twice within this time cannot run an instance */

/* --- orders, each with a descriptor --------------------------------------------------------------- */

union passed {
    struct cmsghdr head;
    char room[CMSG_SPACE (sizeof (int))];
};

static int send_order (int fd, const struct zygote_order *order, int pmi_fd)
{
    union passed passed = { 0 };
    struct iovec iov = { .iov_base = (void *)order, .iov_len = sizeof (*order) };
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = passed.room, .msg_controllen = sizeof (passed.room)
    };
    struct cmsghdr *c = CMSG_FIRSTHDR (&msg);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN (sizeof (int));
    memcpy (CMSG_DATA (c), &pmi_fd, sizeof (int));
    return sendmsg (fd, &msg, MSG_NOSIGNAL) == sizeof (*order) ? 0 : -1;
}

/* Returns the descriptor that came with the order, or -1 if the connection has ended or the order is malformed. */
static int receive_order (int fd, struct zygote_order *order)
{
    union passed passed;
    struct iovec iov = { .iov_base = order, .iov_len = sizeof (*order) };
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = passed.room, .msg_controllen = sizeof (passed.room)
    };
    struct cmsghdr *c;
    ssize_t n;
    int given;

    do
        n = recvmsg (fd, &msg, 0);
    while (n < 0 && errno == EINTR);
    if (n != sizeof (*order) || !(c = CMSG_FIRSTHDR (&msg)) || c->cmsg_type != SCM_RIGHTS)
        return -1;
    memcpy (&given, CMSG_DATA (c), sizeof (int));
    return given;
}

pid_t zygote_ask (int fd, const struct zygote_order *order, int pmi_fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    pid_t answer;
    ssize_t n;
    int ready;

    if (send_order (fd, order, pmi_fd) < 0)
        return -1;
    do
        ready = poll (&p, 1, ANSWER_MS);
    while (ready < 0 && errno == EINTR);
    if (ready <= 0)
        return errset (ready == 0 ? ETIMEDOUT : errno);
    if ((n = recv (fd, &answer, sizeof (answer), 0)) != sizeof (answer))
        return errset (n == 0 ? EPIPE : errno);
    return answer > 0 ? answer : errset (-answer);
}

/* --- the zygote ------------------------------------------------------------------------------------- */

static void answer (int fd, pid_t pid)
{
    pid_t said = pid < 0 ? -errno : pid;

    if (send (fd, &said, sizeof (said), MSG_NOSIGNAL) < 0)
        _exit (1);
}

static void set_number (const char *name, long n)
{
    char text[24];

    snprintf (text, sizeof (text), "%ld", n);
    if (setenv (name, text, 1) < 0)
        _exit (1);
}

/* Become the requested process. PR_SET_PDEATHSIG applies to the parent at the time of the call, so it is set after the
 * launcher has become the parent.
 */
static void settle (const struct zygote_order *order, int pmi_fd, pid_t between)
{
    while (getppid () == between)
        sched_yield ();
    prctl (PR_SET_PDEATHSIG, SIGKILL);
    if (getppid () != order->parent)
        _exit (1);
    setpgid (0, 0);
    set_number ("PMI_FD", pmi_fd);
    set_number ("PMI_RANK", order->rank);
    set_number ("PMI_SIZE", order->size);
    unsetenv (ZYGOTE_VARIABLE);
}

/* In the intermediate process: fork the broker. The call returns only in the broker. */
static void split (int fd, const struct zygote_order *order, int pmi_fd)
{
    pid_t between = getpid (), pid = fork ();

    if (pid != 0) {
        answer (fd, pid);
        _exit (0);
    }
    close (fd);
    settle (order, pmi_fd, between);
}

static void serve (int fd)
{
    struct zygote_order order;
    int pmi_fd;

    while ((pmi_fd = receive_order (fd, &order)) >= 0) {
        pid_t between = fork ();

        if (between == 0) {
            split (fd, &order, pmi_fd);
            return;
        }
        if (between < 0)
            answer (fd, between);
        close (pmi_fd);
        while (between > 0 && waitpid (between, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    _exit (0);
}

int zygote_serve (void (*prepare) (void *arg), void *arg)
{
    const char *value = getenv (ZYGOTE_VARIABLE);
    int type = 0;
    socklen_t len = sizeof (type);
    uint64_t fd;

    if (!value)
        return 0;
    if (parse_number (value, 3, INT32_MAX, &fd) < 0 || getsockopt (fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0
        || type != SOCK_SEQPACKET)
        return errset (EINVAL);
    prepare (arg);
    serve (fd);
    return 0;
}
