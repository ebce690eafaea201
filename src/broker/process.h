/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* process.h - what the brokers of one process share: the reactor, ZeroMQ, a thread for modules, and turns
 *
 * A broker is a member. It gets a turn when a watcher of its reactor (a view of the one loop) has fired, or member_wake
 * () was called. Members without events use no time.
 */
#ifndef BROKER_PROCESS_H
#define BROKER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>
#include <idtree/reactor.h>

#include "broker/overlay/wire/inside.h"
#include "common/libzmqutil/curve.h"

struct process;
struct member;
struct shared;
struct usocks;

struct member_ops {
    /* Do the work that is due, or part of it if there is much. Returns whether work is left. */
    bool (*turn) (void *arg);
    /* Whether the owner of a key may connect to a socket with this member's ZAP domain. Stores a name for the
     * connection in 'user'.
     */
    bool (*admit) (void *arg, const uint8_t key[ZAP_KEY_SIZE], char *user, size_t size);
    /* The member has ended, and none of its callbacks runs: it may be destroyed. May be NULL. */
    void (*ended) (void *arg);
};

/* The parts that members use. */
struct process_parts {
    void *zctx;            /* of ZeroMQ; NULL before the first member */
    struct shared *shared; /* the thread that modules share */
    struct inside *inside; /* brokers that are reached in memory */
    struct usocks *usocks; /* sockets for local clients */
};

struct process *process_create (idt_error_t *errp); /* NULL with errno set and 'errp' filled */
void process_destroy (struct process *p);           /* without members; NULL is fine */

idt_reactor_t *process_reactor (struct process *p); /* the loop itself, for watchers that belong to no broker */
const struct process_parts *process_parts (const struct process *p);

/* Announce how many members there will be. Call this before the first member is made, if they are many. */
void process_expect (struct process *p, size_t members);

/* Run until all members have ended. Returns 0, or -1 with errno set if the reactor failed. */
int process_run (struct process *p);

/* Call 'cb' after each round of turns, before the reactor sleeps, and when process_run () ends: it can compare states.
 * NULL: no callback.
 */
void process_watch (struct process *p, void (*cb) (void *arg), void *arg);

/* While held, process_run () continues even without members. */
void process_hold (struct process *p, bool held);

/* 'name' is the ZAP domain of the member, unique in the process, and is copied; 'ops' is borrowed. NULL with errno set.
 */
struct member *member_create (struct process *p, const char *name, const struct member_ops *ops, void *arg);
void member_destroy (struct member *m); /* after its watchers; NULL is fine */

/* The reactor of a member. idt_reactor_stop () ends the member: it gets no further turn, and process_run () does not
 * wait for it.
 */
idt_reactor_t *member_reactor (struct member *m);

/* A paused member gets no turns and no callbacks, like a stopped process. */
void member_pause (struct member *m, bool paused);

/* Give the member a turn before the reactor sleeps. */
void member_wake (struct member *m);

#endif /* BROKER_PROCESS_H */
