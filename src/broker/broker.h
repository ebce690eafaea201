/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* broker.h - one broker: owns the parts and connects them
 *
 * Many brokers may live in one process: nothing here is global, no signal is caught and no environment read.
 */
#ifndef BROKER_BROKER_H
#define BROKER_BROKER_H

#include <jansson.h>

#include <idtree/idtree.h>

#include "broker/base/attr.h"
#include "broker/process.h"

struct boot;
struct broker;

/* Its owner hears of its life. */
struct broker_ops {
    void (*up) (void *arg);    /* it runs, or was told to stop before it did and has ended well */
    void (*ended) (void *arg); /* it has stopped, nothing of it is at work: it may be destroyed */
    /* A client wants configuration files to be read again: see crew_reload (). */
    json_t *(*reload) (void *arg, idt_error_t *errp);
};

struct broker_conf {
    struct process *process; /* that it is a member of; must live longer */
    struct boot *boot;       /* whose 'rank' it is; must live longer */
    uint32_t rank;
    struct attrs *attrs;     /* what the command line gave; becomes the broker's on success */
    const char *tmpdir;      /* where a private rundir is made, if none is given */
    const char *module_path; /* where modules are looked for, if module.path is not given */
    char **command;          /* rank 0 runs it and stops with it; NULL or empty: none */
    uint64_t files;          /* soft limit of descriptors for the command; 0: the broker's own */
    const struct broker_ops *ops;
    void *arg;
};

/* Make a broker: it binds, and tells 'boot' where.  Copies 'conf'; its strings and 'ops' are borrowed.  NULL with errno set
 * and 'errp' filled.
 */
struct broker *broker_create (const struct broker_conf *conf, idt_error_t *errp);

/* Whatever it was at, without a word to others: they see a connection that closes. */
void broker_destroy (struct broker *b);

/* When 'boot' knows its parent and children: load modules.  Returns 0, or -1 with errno set and 'errp' filled. */
int broker_start (struct broker *b, idt_error_t *errp);

/* Join the tree, and go on until it has stopped, as long as process_run () runs. */
void broker_join (struct broker *b);

/* While it is paused it does nothing and hears nothing, as a process that is stopped; its modules in threads go on. */
void broker_pause (struct broker *b, bool paused);

/* Of one that has stopped: the command's, else 0, or 1 where it failed. */
int broker_exit_code (const struct broker *b);

/* Begin to stop: this broker and, but for a configured instance, the subtree below it, leaves first.  Called once more it stops
 * at once.
 */
void broker_stop (struct broker *b, const char *why);

#endif /* BROKER_BROKER_H */
