/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* broker.h - one broker: owns its parts and connects them
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
struct role_pg;

/* Callbacks to the owner of a broker. */
struct broker_ops {
    /* The broker is up: it is in state run. For rank 0 of an instance that starts complete or fails (boot.h), the
     * quorum must also be reached. Called again when the broker ends with exit code 0, so that a stop before the broker
     * was up does not count as a failure.
     */
    void (*up) (void *arg);
    /* The broker has stopped and is idle: the owner may destroy it. */
    void (*ended) (void *arg);
    /* A client requests that the configuration files are read again: see broker_group_reload (). */
    json_t *(*reload) (void *arg, idt_error_t *errp);
    /* The broker had joined the wrong instance and is about to end. The owner must then make and start the broker
     * again. NULL: the owner does not start it again.
     */
    void (*restart) (void *arg);
};

struct broker_conf {
    struct process *process; /* the process that runs this broker; must live longer than the broker */
    struct boot *boot;       /* the boot object of the process, which knows 'rank'; must live longer than the broker */
    uint32_t rank;
    struct attrs *attrs;     /* attributes of the command line; owned by the broker on success */
    const char *tmpdir;      /* folder in which a private rundir is made if the attribute rundir is not set */
    const char *module_path; /* folders with modules, if the attribute module.path is not set */
    char **command;          /* command that rank 0 runs, and at whose end rank 0 stops; NULL or empty: no command */
    uint64_t files;          /* soft limit of descriptors for the command; 0: the same as for the broker */
    struct role_pg *role;    /* of rank 0, if its state is in PostgreSQL; borrowed; NULL: there is none */
    const struct broker_ops *ops;
    void *arg;
};

/* Make a broker: it binds its sockets and reports its endpoint to 'boot'. 'conf' is copied; its strings and 'ops' are
 * borrowed. NULL with errno set and 'errp' filled.
 */
struct broker *broker_create (const struct broker_conf *conf, idt_error_t *errp);

/* Destroy the broker in any state. Its modules are unloaded, and clients get the responses that are queued. The
 * connections to its parent and children are closed. If the broker was already stopping, its children get a disconnect
 * first.
 */
void broker_destroy (struct broker *b);

/* Load the modules. 'boot' must already have the addresses of parent and children. Returns 0, or -1 with errno set and
 * 'errp' filled.
 */
int broker_start (struct broker *b, idt_error_t *errp);

/* Join the tree. The broker then works during process_run (), until it has stopped. */
void broker_join (struct broker *b);

/* Pause the broker, or let it continue. A paused broker does no work and reads no messages, like a stopped process. The
 * modules of a paused broker continue to run if they are in threads.
 */
void broker_pause (struct broker *b, bool paused);

/* The exit code of a stopped broker. If the broker failed, the exit code is an enum broker_exit. If the command ran, it
 * is the exit code of the command. If the command could not be run, the exit code is 127 (not found) or 126. In all
 * other cases the exit code is 0.
 */
int broker_exit_code (const struct broker *b);

/* Whether a stopped broker has stopped because the instance was shut down. */
bool broker_was_shut_down (const struct broker *b);

/* The current condition of a broker. */
struct broker_status {
    enum state state;
    uint32_t rank;
    uint32_t size;
    bool has_parent; /* the parent has accepted the broker; rank 0: always true */
    bool full;       /* no rank of the broker's subtree is missing */
    bool ready; /* the broker is in state run; at rank 0 of an instance with a quorum, the quorum was also reached */
    uint32_t joined; /* brokers of the subtree that have joined */
    uint32_t quorum; /* rank 0: how many brokers must join */
};
void broker_status (const struct broker *b, struct broker_status *status);

/* Begin to stop. The subtree below the broker stops first, except in a configured instance, where the other brokers
 * continue to run. The second call stops the broker immediately.
 */
void broker_stop (struct broker *b, const char *why);

/* Like broker_stop (), if the broker itself has the reason: also prints 'why' on stderr, and sets the exit code to
 * 'exit'.
 */
void broker_leave (struct broker *b, enum broker_exit exit, const char *why);

/* Check that the broker can take over 'fresh', the attributes of files that were read again (conffile.h). Returns 0, or
 * -1 with errno EINVAL and 'errp' filled.
 */
int broker_check_reload (struct broker *b, struct attrs *fresh, idt_error_t *errp);

/* Take over the changes in this broker. broker_check_reload () must have succeeded for all brokers of the process
 * before.
 */
void broker_reload (struct broker *b, struct attrs *fresh, struct conffile_report *report);

#endif /* BROKER_BROKER_H */
