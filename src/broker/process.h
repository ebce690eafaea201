/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* process.h - what the brokers of one process share: the reactor, ZeroMQ, a thread of modules, and whose turn it is
 *
 * A broker is a member.  It works when something happened to it: a watcher of its reactor (a view of the one loop)
 * fired, or somebody woke it.  Those to whom nothing happened cost nothing.
 */
#ifndef BROKER_PROCESS_H
#define BROKER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>
#include <idtree/reactor.h>

#include "broker/overlay/wire/inside.h"
#include "common/libzmqutil/zap.h"

struct process;
struct member;
struct shared;
struct usocks;

struct member_ops {
    /* Do what there is to do, some of it where it is much.  Returns whether there is more. */
    bool (*turn) (void *arg);
    /* Whether the owner of a key may connect to a socket with its ZAP domain; 'user': a name for the connection. */
    bool (*admit) (void *arg, const uint8_t key[ZAP_KEY_SIZE], char *user, size_t size);
    /* It has ended, and none of its callbacks is at work: it may be destroyed.  NULL: nobody wants to know. */
    void (*ended) (void *arg);
};

struct process *process_create (idt_error_t *errp); /* NULL with errno set and 'errp' filled */
void process_destroy (struct process *p);           /* without members; NULL is fine */

idt_reactor_t *process_reactor (struct process *p); /* the loop itself, for watchers that are no broker's */
void *process_zctx (struct process *p);             /* NULL: no member has come yet */
struct shared *process_shared (struct process *p);  /* the thread that modules share */
struct inside *process_inside (struct process *p);  /* which of its brokers can be reached in memory */
struct usocks *process_usocks (struct process *p);  /* of local clients */

/* Before the first one comes: how many members there will be, where that is many. */
void process_expect (struct process *p, size_t members);

/* Run until all members have ended.  Returns 0, or -1 with errno set where the reactor failed. */
int process_run (struct process *p);

/* Call 'cb' each time that members have had turns, before the reactor sleeps, and when it has stopped: it sees
 * whatever has changed.  NULL: nobody does.
 */
void process_watch (struct process *p, void (*cb) (void *arg), void *arg);

/* Go on without members, too, until this is taken back. */
void process_hold (struct process *p, bool held);

/* 'name' is its ZAP domain, nobody else's in the process, and is copied; 'ops' is borrowed.  NULL with errno set. */
struct member *member_create (struct process *p, const char *name, const struct member_ops *ops, void *arg);
void member_destroy (struct member *m); /* when its watchers are destroyed; NULL is fine */

/* Its reactor.  idt_reactor_stop () ends the member: it has no more turns, and process_run () does not wait for it. */
idt_reactor_t *member_reactor (struct member *m);

/* While it is paused it has no turns and no callbacks: like a process that is stopped. */
void member_pause (struct member *m, bool paused);

/* Give it a turn before the reactor sleeps. */
void member_wake (struct member *m);

#endif /* BROKER_PROCESS_H */
