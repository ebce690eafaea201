/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* zygote.h - a process that has loaded what a broker needs, and splits off brokers as it is asked to
 *
 * To load and link some thirty libraries is half of what a broker costs that runs for a moment: one process does that,
 * and the others of its host begin where it stands.  It has done nothing else by then, and has one thread.  Who asks is
 * their parent: it waits for them, and they die with it.  So it must be a subreaper (PR_SET_CHILD_SUBREAPER).
 */
#ifndef BROKER_BOOT_ZYGOTE_H
#define BROKER_BOOT_ZYGOTE_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#define ZYGOTE_VARIABLE "IDTREE_NURSERY" /* of its environment: the descriptor of its socket, SOCK_SEQPACKET */

/* What a broker reads by signalfd, from its first instruction on: who starts one may start it with these blocked. */
#define BROKER_SIGNALS             \
    {                              \
        SIGTERM, SIGINT, SIGHUP, 0 \
    }

struct zygote_order {
    pid_t parent; /* who asks */
    uint32_t rank, size;
};

/* Ask the nursery behind 'fd' for a process, which gets PMI_RANK and PMI_SIZE of the order, PMI_FD for 'pmi_fd', and a
 * process group of its own.  Returns its pid, or -1 with errno set: EAGAIN, ENOMEM, ...: it can make none; ETIMEDOUT,
 * EPIPE, ECONNRESET: it does not answer, or is gone, and is of no use any more.
 */
pid_t zygote_ask (int fd, const struct zygote_order *order, int pmi_fd);

/* To be called first in main (), before there is a thread.  Where the environment says that this is a nursery: prepare,
 * serve until the other end closes, and exit.  Returns in each process that was asked for, and at once in any other; -1
 * with errno EINVAL where the variable names no such socket.
 */
int zygote_serve (void (*prepare) (void *arg), void *arg);

#endif /* BROKER_BOOT_ZYGOTE_H */
