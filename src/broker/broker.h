/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* broker.h - one broker: owns the parts and connects them
 *
 * A process may have many brokers. A broker therefore has no global state, catches no signals, and reads no environment
 * variables.
 */
#ifndef BROKER_BROKER_H
#define BROKER_BROKER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include <idtree/idtree.h>

#include "broker/base/attr.h"
#include "broker/lifecycle.h"
#include "broker/process.h"

#define BROKER_MODULES "fluid,flake,compressor" /* default of broker.modules */

struct boot;
struct broker;
struct conffile_report;

/* Callbacks to the owner of a broker. */
struct broker_ops {
    /* It is up: it runs; rank 0 of an instance that starts complete or fails (boot.h) has reached its quorum, too.
     * Called again at the end, except after a failure: a stop before it is up is not one.
     */
    void (*up) (void *arg);
    /* It has stopped and is idle: the owner may destroy it. */
    void (*ended) (void *arg);
    /* A client requests that the configuration files are read again: see broker_group_reload (). */
    json_t *(*reload) (void *arg, idt_error_t *errp);
    /* The broker is about to end, and the owner must make and start it again: it had joined the wrong instance. NULL:
     * the owner does not.
     */
    void (*restart) (void *arg);
};

struct broker_conf {
    struct process *process; /* the process of which it is a member; must live longer */
    struct boot *boot;       /* the boot object that has 'rank'; must live longer */
    uint32_t rank;
    struct attrs *attrs;     /* attributes of the command line; owned by the broker on success */
    const char *tmpdir;      /* folder for a private rundir if the attribute rundir is not set */
    const char *module_path; /* folders with modules if module.path is not set */
    char **command;          /* command that rank 0 runs and stops with; NULL or empty: none */
    uint64_t files;          /* soft limit of descriptors for the command; 0: the limit of the broker */
    const struct broker_ops *ops;
    void *arg;
};

/* Make a broker: it binds its sockets and reports its endpoint to 'boot'. Copies 'conf'; its strings and 'ops' are
 * borrowed. NULL with errno set and 'errp' filled.
 */
struct broker *broker_create (const struct broker_conf *conf, idt_error_t *errp);

/* Destroy the broker in any state. Its modules are unloaded, and clients get the responses that wait. Its parent and
 * its children see closed connections; only if the broker was stopping already, its children get a disconnect.
 */
void broker_destroy (struct broker *b);

/* Load the modules; 'boot' must already have the addresses of parent and children. Returns 0, or -1 with errno set and
 * 'errp' filled.
 */
int broker_start (struct broker *b, idt_error_t *errp);

/* Join the tree. The broker then works during process_run (), until it has stopped. */
void broker_join (struct broker *b);

/* Pause or continue. A paused broker does no work and reads no messages, like a stopped process; its modules in threads
 * continue.
 */
void broker_pause (struct broker *b, bool paused);

/* The exit code of a stopped broker: the exit code of the command if it ran, 127 (not found) or 126 if it could not be
 * run, else 0, or an enum broker_exit on failure.
 */
int broker_exit_code (const struct broker *b);

/* The current condition of a broker. */
struct broker_status {
    enum state state;
    uint32_t rank;
    uint32_t size;
    bool has_parent; /* the parent has accepted it; rank 0: always */
    bool full;       /* no rank of its subtree is missing */
    bool ready;      /* it runs; at rank 0 with a quorum: and the quorum was reached */
    uint32_t joined; /* brokers of its subtree that have joined */
    uint32_t quorum; /* rank 0: how many brokers must join */
};
void broker_status (const struct broker *b, struct broker_status *status);

/* Begin to stop. The subtree below leaves first, except in a configured instance, where the other brokers continue. The
 * second call stops the broker immediately.
 */
void broker_stop (struct broker *b, const char *why);

/* As broker_stop (), for a reason of the broker itself: prints 'why' on stderr and sets the exit code to 'exit'. */
void broker_leave (struct broker *b, enum broker_exit exit, const char *why);

/* Check that a broker can take over the attributes of files that were read again (conffile.h). Returns 0, or -1 with
 * errno EINVAL and 'errp' filled.
 */
int broker_check_reload (struct broker *b, struct attrs *fresh, idt_error_t *errp);

/* Take over the changes in one broker. All brokers must have checked them. */
void broker_reload (struct broker *b, struct attrs *fresh, struct conffile_report *report);

#endif /* BROKER_BROKER_H */
