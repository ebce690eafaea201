/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* process.h - the parts that the brokers of one process share: the reactor, ZeroMQ, a thread for modules. process.h
 * also gives the brokers turns.
 *
 * A broker is a member of the process. A member gets a turn after a watcher of its reactor (a view of the process's
 * loop) has fired, or after member_wake (). Members without events use no time.
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
    /* Do the work that is due. If there is much, do a part of it. Returns whether work is left. */
    bool (*turn) (void *arg);
    /* Whether the owner of a key may connect to a socket with this member's ZAP domain. If so, 'user' gets a name for
     * the connection.
     */
    bool (*admit) (void *arg, const uint8_t key[ZAP_KEY_SIZE], char *user, size_t size);
    /* The member has ended, and none of its callbacks runs: it may be destroyed. May be NULL. */
    void (*ended) (void *arg);
};

/* The parts that members use. */
struct process_parts {
    void *zctx;            /* context of ZeroMQ; NULL before the first member */
    struct shared *shared; /* the thread that modules of all brokers share */
    struct inside *inside; /* queues to brokers of this process */
    struct usocks *usocks; /* sockets for local clients */
};

struct process *process_create (idt_error_t *errp); /* NULL with errno set and 'errp' filled */
void process_destroy (struct process *p);           /* all members must have been destroyed; NULL is fine */

idt_reactor_t *process_reactor (struct process *p); /* the loop of the process, for watchers that belong to no broker */
const struct process_parts *process_parts (const struct process *p);

/* Announce how many members there will be. If they are many, call this before the first member is made. */
void process_expect (struct process *p, size_t members);

/* Run until all members have ended. Returns 0, or -1 with errno set if the reactor failed. */
int process_run (struct process *p);

/* Call 'cb' after each round of turns, before the reactor sleeps, and at the end of process_run (), for example to
 * compare states. NULL: call no function.
 */
void process_watch (struct process *p, void (*cb) (void *arg), void *arg);

/* While held, process_run () continues even without members. */
void process_hold (struct process *p, bool held);

/* Make a member. 'name' is the ZAP domain of the member; it must be unique in the process, and is copied. 'ops' is
 * borrowed. NULL with errno set.
 */
struct member *member_create (struct process *p, const char *name, const struct member_ops *ops, void *arg);
void member_destroy (struct member *m); /* after the watchers of the member; NULL is fine */

/* The reactor of a member. idt_reactor_stop () ends the member: it gets no further turn, and process_run () does not
 * wait for it.
 */
idt_reactor_t *member_reactor (struct member *m);

/* Pause a member, or let it continue. A paused member gets no turns and no callbacks, like a stopped process. */
void member_pause (struct member *m, bool paused);

/* Give the member a turn before the reactor sleeps. */
void member_wake (struct member *m);

#endif /* BROKER_PROCESS_H */
