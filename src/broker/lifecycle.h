/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lifecycle.h - the states of a broker, and the inputs that move it from one state to the next
 *
 *     join ----joined----> run ----stop----> cleanup ----no children----> shutdown ----left----> exit
 *       `-------stop---------------------------^          (or timeout)              (or timeout)
 *
 * Brokers start from the root: a broker runs after its parent. Brokers stop from the leaves: cleanup lasts until all
 * children have left and the command has ended, shutdown until the parent has released the broker. The time limit of
 * cleanup is broker.shutdown-timeout; the time limit of shutdown is half of broker.shutdown-timeout.
 */
#ifndef BROKER_LIFECYCLE_H
#define BROKER_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/error.h>
#include <idtree/reactor.h>

#include "broker/base/quorum.h"

enum state { STATE_JOIN, STATE_RUN, STATE_CLEANUP, STATE_SHUTDOWN, STATE_EXIT };

enum state_input {
    STATE_JOINED,      /* the parent has accepted the broker (rank 0: at the start), and all modules run */
    STATE_STOP,        /* a signal, a request or the parent orders a stop */
    STATE_NO_CHILDREN, /* no child is connected, and no command runs */
    STATE_LEFT,        /* the parent has released the broker, or the broker has no parent */
    STATE_TIMEOUT,     /* the time limit of cleanup or shutdown is over */
};

/* The state that follows 'state' on 'input'. If the input has no effect in this state, 'state'. */
enum state state_next (enum state state, enum state_input input);

const char *state_name (enum state state); /* "join", ... */

/* Exit codes of a broker that failed. After BROKER_EXIT_USAGE and BROKER_EXIT_STATE, starting the broker again does not
 * help.
 */
enum broker_exit {
    BROKER_EXIT_FAILED = 1,
    BROKER_EXIT_USAGE = 2, /* an option or the configuration file is invalid */
    BROKER_EXIT_STATE = 3, /* the state cannot be used */
    BROKER_EXIT_ROLE = 76, /* this process is no longer rank 0, and may stand by (root/role.h) */
};

/* The exit code for an errno of broker_create () or broker_start (): BROKER_EXIT_USAGE for EINVAL and ENAMETOOLONG,
 * BROKER_EXIT_STATE for ENOTRECOVERABLE, BROKER_EXIT_FAILED for all others.
 */
enum broker_exit broker_exit_of (int errnum);

/* Get the attribute broker.join-timeout in seconds. If it is not set, the result is 0 (no limit) for a 'patient'
 * broker, else 60 s. Returns 0, or -1 with errno set and 'errp' filled.
 */
int broker_join_timeout (struct attrs *attrs, bool patient, double *seconds, idt_error_t *errp);

struct broker_conf;
struct log;
struct modules;
struct overlay;
struct usock;

/* Parts of the broker that begin or end their work with a state; all borrowed. */
struct lifecycle_conf {
    const struct broker_conf *broker;
    idt_reactor_t *reactor; /* of the process's member; the reactor is stopped when the broker ends */
    struct log *log;
    struct overlay *overlay;
    struct modules *modules;
    struct usock *local;
    void (*ending) (void *arg); /* end streams, and answer requests that can get no other answer later */
    void *arg;
};

struct lifecycle {
    struct lifecycle_conf conf;
    enum state state;
    double since;                 /* CLOCK_MONOTONIC time at which the state began */
    idt_watcher_t *timer;         /* limits the time of a state */
    idt_watcher_t *quorum_timer;  /* reports missing ranks; rank 0 only */
    struct rank_command *command; /* the command of rank 0; NULL: no command runs */
    double shutdown_timeout;      /* seconds */
    double join_timeout;          /* seconds; 0: no limit */
    struct quorum quorum;         /* of rank 0 */
    idt_error_t start_error;      /* why the broker cannot start; "": no failure so far */
    int start_errnum;             /* errno of 'start_error' */
    bool alone;                   /* the broker stops, but its subtree continues */
    bool wrong_instance;  /* its tree was of the wrong instance: its children, and itself if not rank 0, start again */
    bool told_to_stop;    /* lifecycle_stop () was called */
    bool shut_down;       /* the instance ends with this broker: a request, or the end of the command */
    bool complete;        /* the owner was notified that the broker is up */
    bool waits;           /* the broker has logged that it waits for its parent */
    bool joined;          /* the parent has accepted the broker; rank 0: true from the start */
    char refusal[256];    /* reason of the last refusal by the parent; "": none */
    double refusal_pause; /* seconds between two log lines about a refusal; 0: no line so far */
    double refusal_due;   /* CLOCK_MONOTONIC time of the next log line */
    int exit_code;
};

/* Read the attributes, and make the timers. '*l' must be all zero, except 'since'. Copies 'conf'. Returns 0, or -1 with
 * errno set and 'errp' filled.
 */
int lifecycle_init (struct lifecycle *l, const struct lifecycle_conf *conf, idt_error_t *errp);
void lifecycle_fini (struct lifecycle *l); /* kills the command; an object of zero bytes is allowed */

/* Begin to join the tree. */
void lifecycle_join (struct lifecycle *l);

/* Check whether the broker has started, and at rank 0 whether the quorum is reached. Call this in each turn. */
void lifecycle_turn (struct lifecycle *l);

/* Record that the broker cannot start. The next turn ends the broker. */
void lifecycle_fail (struct lifecycle *l, int errnum, const char *text);

/* Begin to stop; the subtree stops first. The reason may be an order of the parent, a request, or the broker itself. No
 * effect if the broker already stops.
 */
void lifecycle_begin_stop (struct lifecycle *l, const char *why);

/* The same, for a request to end the instance. */
void lifecycle_shut_down (struct lifecycle *l, const char *why);

/* See broker_stop () and broker_leave (). */
void lifecycle_stop (struct lifecycle *l, const char *why);
void lifecycle_leave (struct lifecycle *l, enum broker_exit exit, const char *why);

/* A child has joined or left. If the state is cleanup, the last child has left and the command has ended, the next
 * state begins.
 */
void lifecycle_child (struct lifecycle *l);

/* The overlay reports these: see struct overlay_ops. */
void lifecycle_parent (struct lifecycle *l, bool up);
void lifecycle_refused (struct lifecycle *l, int errnum, const char *text);
void lifecycle_intruder (struct lifecycle *l, const char *text);
void lifecycle_wrong_instance (struct lifecycle *l, const char *text);

#endif /* BROKER_LIFECYCLE_H */
