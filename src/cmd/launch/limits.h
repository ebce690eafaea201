/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* limits.h - the number of brokers that this host can run
 *
 * Checked before the start, so that an instance too large is refused instead of failing halfway for lack of files.
 */
#ifndef CMD_LIMITS_H
#define CMD_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/error.h>

/* The needs of a process that is one broker. */
#define LIMITS_BROKER_THREADS 4       /* main, two of ZeroMQ, one spare for a module */
#define LIMITS_BROKER_MEMORY_KIB 3072 /* private memory of each */

/* The needs of a process that hosts several brokers, and of each broker in it. */
#define LIMITS_PROCESS_THREADS 7
#define LIMITS_PROCESS_MEMORY_KIB 8192
#define LIMITS_PROCESS_FILES 128
#define LIMITS_SHARED_MEMORY_KIB 96

/* The descriptors that links between brokers of the same process need (tbon.transport): for a broker's link to its
 * parent, and for a broker that listens to children.
 */
#define LIMITS_INPROC_LINK_FILES 1
#define LIMITS_INPROC_LISTEN_FILES 1
#define LIMITS_ZMQ_LINK_FILES 5
#define LIMITS_ZMQ_LISTEN_FILES 4

/* The descriptors of a rank with its own socket: the socket, the socket that hands out its page, and the page. */
#define LIMITS_SOCKET_FILES 3

#define LIMITS_LAUNCHER_FILES 32 /* of the launcher, besides one for each process */

/* A limit of the host for one resource. */
struct limit {
    const char *what; /* "threads" */
    const char *name; /* the name of the setting, "kernel.pid_max" */
    uint64_t limit;
    uint64_t used;
    uint64_t per_process;
    uint64_t per_broker;
    bool each; /* the limit applies to each process */
    /* Further needs of these brokers: */
    uint64_t together;  /* of all, for the requested size; fewer brokers need a part of it */
    uint64_t per_some;  /* of each of some brokers */
    uint64_t of_some;   /* the most brokers that need it, which may all be in one process */
    bool kib;           /* the numbers are KiB; a sentence shows GiB */
    const char *remedy; /* an advice that lets more brokers fit; NULL: raise the limit */
};

/* The brokers to start. */
struct limits_for {
    bool shared;         /* at least one process hosts several */
    uint64_t link_files; /* descriptors of links inside processes, if all were in one */
    uint64_t sockets;    /* brokers with their own socket */
};

#define LIMITS_MAX 8

/* Read the limits of this host into 'limits', after raising the soft limit of open files to the hard one.  Returns
 * their number; unreadable limits are left out.
 */
int limits_read (struct limit limits[LIMITS_MAX], const struct limits_for *what);

/* Whether 'size' brokers can run in 'processes' processes.  Returns 0, or -1 with errno EAGAIN; 'errp' then names the
 * limit and the size that it allows with as many brokers in each process.
 */
int limits_check (const struct limit *limits, int count, uint64_t size, uint64_t processes, idt_error_t *errp);

#endif /* CMD_LIMITS_H */
