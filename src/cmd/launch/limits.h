/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* limits.h - the number of brokers that this host can run
 *
 * The limits are checked before the start.  So an instance that is too large is refused, instead of failing halfway
 * because descriptors or memory run out.
 */
#ifndef CMD_LIMITS_H
#define CMD_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/error.h>

/* The needs of a process that hosts one broker. */
#define LIMITS_BROKER_THREADS 4       /* main, two of ZeroMQ, one spare for a module */
#define LIMITS_BROKER_MEMORY_KIB 3072 /* private memory of each process */

/* The needs of a process that hosts several brokers; LIMITS_SHARED_MEMORY_KIB is the need of each broker in it. */
#define LIMITS_PROCESS_THREADS 7
#define LIMITS_PROCESS_MEMORY_KIB 8192
#define LIMITS_PROCESS_FILES 128
#define LIMITS_SHARED_MEMORY_KIB 96

/* The descriptors that links between brokers of the same process need (tbon.transport): the first number of each pair
 * for each link to a parent, the second number for each broker that listens to children.
 */
#define LIMITS_INPROC_LINK_FILES 1
#define LIMITS_INPROC_LISTEN_FILES 1
#define LIMITS_ZMQ_LINK_FILES 5
#define LIMITS_ZMQ_LISTEN_FILES 4

/* The descriptors of a rank with a socket of its own: this socket, the socket that hands out the page, and the page. */
#define LIMITS_SOCKET_FILES 3

#define LIMITS_LAUNCHER_FILES 32 /* descriptors of the launcher, besides one for each process */

/* A limit of the host for one resource. */
struct limit {
    const char *what; /* the resource, such as "threads" */
    const char *name; /* name of the setting, such as "kernel.pid_max" */
    uint64_t limit;
    uint64_t used;
    uint64_t per_process;
    uint64_t per_broker;
    bool each; /* the limit applies to each process, not to all together */
    /* Further needs: */
    uint64_t together;  /* need of all requested brokers; fewer brokers need a part of this */
    uint64_t per_some;  /* need of each of 'of_some' brokers */
    uint64_t of_some;   /* number of these brokers, which may all be in one process */
    bool kib;           /* the numbers are KiB, and messages have GiB */
    const char *remedy; /* another way to run more brokers; NULL: only a higher limit */
};

/* The brokers to start. */
struct limits_for {
    bool shared;         /* at least one process hosts several brokers */
    uint64_t link_files; /* descriptors of links, if all brokers were in one process */
    uint64_t sockets;    /* number of brokers with a socket of their own */
};

#define LIMITS_MAX 8

/* Raise the soft limit of open files to the hard limit, and read the limits of this host into 'limits'.  Returns the
 * number of limits.  A limit that cannot be read is left out.
 */
int limits_read (struct limit limits[LIMITS_MAX], const struct limits_for *what);

/* Whether 'size' brokers can run in 'processes' processes.  Returns 0, or -1 with errno EAGAIN.  'errp' then names the
 * limit, and the number of brokers that it allows with as many brokers in each process as requested.
 */
int limits_check (const struct limit *limits, int count, uint64_t size, uint64_t processes, idt_error_t *errp);

#endif /* CMD_LIMITS_H */
