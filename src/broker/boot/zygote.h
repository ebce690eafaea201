/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* zygote.h - a process that has loaded all libraries of a broker, and forks brokers on request
 *
 * If a broker runs for a moment only, half of its work is loading and linking some thirty libraries. The zygote does
 * this work once. The other processes of its host are then forked from it, while it has done nothing else and has one
 * thread. The requesting process becomes the parent of a forked process, waits for it, and when the parent ends, the
 * forked process is killed. So the requesting process must be a subreaper (PR_SET_CHILD_SUBREAPER).
 */
#ifndef BROKER_BOOT_ZYGOTE_H
#define BROKER_BOOT_ZYGOTE_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#define ZYGOTE_VARIABLE "IDTREE_NURSERY" /* environment variable with the descriptor of the socket, SOCK_SEQPACKET */

/* The signals that a broker reads by signalfd. A process may block these signals before it starts a broker, so that no
 * signal is lost.
 */
#define BROKER_SIGNALS             \
    {                              \
        SIGTERM, SIGINT, SIGHUP, 0 \
    }

struct zygote_order {
    pid_t parent; /* the requesting process */
    uint32_t rank, size;
};

/* Request a process from the zygote at the other end of 'fd'. The new process gets PMI_RANK and PMI_SIZE of the order,
 * PMI_FD for 'pmi_fd', and a process group of its own. Returns its pid, or -1 with errno set: EAGAIN, ENOMEM, ...: the
 * zygote cannot fork; ETIMEDOUT, EPIPE, ECONNRESET: the zygote does not answer or has ended, and must not be used
 * again.
 */
pid_t zygote_ask (int fd, const struct zygote_order *order, int pmi_fd);

/* Must be called first in main (), before there is another thread. If the environment says that this process is a
 * zygote, the call runs 'prepare', serves requests until the other end closes its socket, and then exits. The call
 * returns 0 in each requested process, and immediately returns 0 in a process that is not a zygote. Returns -1 with
 * errno EINVAL if the variable does not name such a socket.
 */
int zygote_serve (void (*prepare) (void *arg), void *arg);

#endif /* BROKER_BOOT_ZYGOTE_H */
