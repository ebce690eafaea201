/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* broker.h - one broker: owns the parts and connects them
 *
 * Many brokers may live in one process: nothing here is global, no signal is caught and no environment read.
 */
#ifndef BROKER_BROKER_H
#define BROKER_BROKER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include <idtree/idtree.h>

#include "broker/base/attr.h"
#include "broker/process.h"
#include "broker/state.h"

#define BROKER_MODULES "fluid,flake,compressor" /* broker.modules, where it is not given */

struct boot;
struct broker;

/* Its owner hears of its life. */
struct broker_ops {
    void (*up) (void *arg);    /* it runs, or was told to stop before it did and has ended well */
    void (*ended) (void *arg); /* it has stopped, nothing of it is at work: it may be destroyed */
    /* A client wants configuration files to be read again: see broker_group_reload (). */
    json_t *(*reload) (void *arg, idt_error_t *errp);
    /* It ends, and is to be made and started again: what it was told of its instance was wrong.  NULL: it is not. */
    void (*anew) (void *arg);
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

/* The attribute broker.join-timeout, in seconds; one that is patient waits for ever (0) where it is not given.  Returns
 * 0, or -1 with errno set and 'errp' filled.
 */
int broker_join_timeout (struct attrs *attrs, bool patient, double *seconds, idt_error_t *errp);

/* Make a broker: it binds, and tells 'boot' where.  Copies 'conf'; its strings and 'ops' are borrowed.  NULL with errno
 * set and 'errp' filled.
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

/* Exit codes of a broker that did not run: a restart does not help after the last two. */
enum broker_exit {
    BROKER_EXIT_FAILED = 1,
    BROKER_EXIT_USAGE = 2, /* options, or the file of attributes */
    BROKER_EXIT_STATE = 3, /* the state folder refuses */
};

/* That of the errno with which broker_create () or broker_start () failed: EINVAL and ENAMETOOLONG are of what was
 * given, ENOTRECOVERABLE of the state folder.
 */
enum broker_exit broker_exit_of (int errnum);

/* Of one that has stopped: the command's, else 0, or one of those where it failed. */
int broker_exit_code (const struct broker *b);

/* What it is at. */
struct broker_status {
    enum state state;
    uint32_t rank;
    uint32_t size;
    bool has_parent; /* it is in the tree; rank 0: always */
    bool full;       /* nobody below is missing */
    bool ready;      /* it runs; rank 0: and if a quorum is given, that has been there */
    uint32_t joined; /* brokers of its subtree that are in the tree */
    uint32_t quorum; /* rank 0: how many must be */
};
void broker_status (const struct broker *b, struct broker_status *status);

/* Begin to stop: this broker and, but for a configured instance, the subtree below it, leaves first.  Called once more
 * it stops at once.
 */
void broker_stop (struct broker *b, const char *why);

/* The same, where nobody asked for it: the process ends with that status, and those below go on. */
void broker_leave (struct broker *b, enum broker_exit exit, const char *why);

#endif /* BROKER_BROKER_H */
