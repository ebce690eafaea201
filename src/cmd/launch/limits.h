/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* limits.h - how many brokers this host can carry
 *
 * It is better to be refused before the start than to see half of an instance fail for lack of
 * files.
 */
#ifndef CMD_LIMITS_H
#define CMD_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/error.h>

/* Of a process that is one broker. */
#define LIMITS_BROKER_THREADS 4       /* main, two of ZeroMQ, one to spare for a module */
#define LIMITS_BROKER_MEMORY_KIB 3072 /* private to each */

/* Of one that hosts several, and of each broker in it. */
#define LIMITS_PROCESS_THREADS 7
#define LIMITS_PROCESS_MEMORY_KIB 8192
#define LIMITS_PROCESS_FILES 128
#define LIMITS_SHARED_THREADS 0
#define LIMITS_SHARED_MEMORY_KIB 96

/* Of it that links between brokers of a process take (tbon.transport): for a broker's link to its parent, and for a
 * broker that listens to children.
 */
#define LIMITS_INPROC_LINK_FILES 1
#define LIMITS_INPROC_LISTEN_FILES 1
#define LIMITS_ZMQ_LINK_FILES 5
#define LIMITS_ZMQ_LISTEN_FILES 4

/* A rank with a socket of its own: that, the socket at which its page is given away, and the page. */
#define LIMITS_SOCKET_FILES 3

#define LIMITS_LAUNCHER_FILES 32 /* the launcher's own, and one for each process */

/* What a host has of one thing. */
struct limit {
    const char *what; /* "threads" */
    const char *name; /* what sets the limit, "kernel.pid_max" */
    uint64_t limit;
    uint64_t used;
    uint64_t per_process;
    uint64_t per_broker;
    bool each; /* each process has as much */
    /* What these brokers need besides: */
    uint64_t together;  /* all, if there are as many as are asked for; fewer need a part of it */
    uint64_t per_some;  /* each of some */
    uint64_t of_some;   /* who are so many, at most, and may all be in one process */
    bool kib;           /* the numbers are KiB; a sentence shows GiB */
    const char *remedy; /* what lets more of them fit; NULL: the limit's name says it */
};

/* The brokers that are to be started. */
struct limits_for {
    bool shared;         /* some process hosts several */
    uint64_t link_files; /* that links inside of processes take, if all were in one */
    uint64_t sockets;    /* those with a socket of their own */
};

#define LIMITS_MAX 8

/* Read the limits of this host into 'limits', after raising the soft limit of open files to the
 * hard one.  Returns how many there are; what can't be read is left out.
 */
int limits_read (struct limit limits[LIMITS_MAX], const struct limits_for *what);

/* Can 'size' brokers run in 'processes'?  Returns 0, or -1 with errno EAGAIN and in 'errp' which
 * limit says no and what size it allows, with as many brokers a process.
 */
int limits_check (const struct limit *limits, int count, uint64_t size, uint64_t processes, idt_error_t *errp);

#endif /* CMD_LIMITS_H */
