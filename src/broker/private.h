/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - the broker's parts, for the files that connect them: broker.c, lifecycle.c, services.c, setup.c */
#ifndef BROKER_PRIVATE_H
#define BROKER_PRIVATE_H

#include "broker/base/attr.h"
#include "broker/boot/boot.h"
#include "broker/broker.h"
#include "broker/command.h"
#include "broker/route/event.h"
#include "broker/base/instance.h"
#include "broker/base/msglist.h"
#include "broker/base/quorum.h"
#include "broker/route/usock.h"
#include "broker/base/log.h"
#include "broker/metrics/serve.h"
#include "broker/module/module.h"
#include "broker/overlay/overlay.h"
#include "broker/route/router.h"
#include "broker/process.h"
#include "broker/rundir.h"
#include "broker/state.h"
#include "broker/trace.h"
#include "broker/base/topology.h"
#include "libmodule/module.h"
#include "common/libzmqutil/zwatcher.h"

struct broker {
    struct broker_conf conf;
    uint32_t rank;
    uint32_t size;
    char uuid[IDT_MSG_UUID_LEN + 1];

    struct attrs *attrs;
    struct boot *boot;       /* borrowed from the process */
    const struct topo *topo; /* owned by 'boot' */
    char public_key[BOOT_KEY_TEXT];
    char secret_key[BOOT_KEY_TEXT];
    struct rundir rundir;
    struct instance instance;
    char announced[256]; /* where children connect: result of broker_announced_endpoint () */
    struct log *log;
    struct router *router;
    struct overlay *overlay;
    struct event *event;
    struct modules *modules;
    struct metrics_service *metrics_service; /* requests for figures of the subtree */
    struct trace *trace;                     /* clients that trace messages */
    struct usock *local;
    struct rank_command *command; /* of rank 0; NULL: none runs */

    struct member *member;
    struct zpoll *zpoll;
    idt_watcher_t *timer;             /* limits the time of a state */
    idt_watcher_t *quorum_timer;      /* reports missing ranks; rank 0 only */
    struct peer peer;                 /* of the broker's own services */
    idt_t *h;                         /* their handle */
    struct msglist *shutdown_streams; /* requests shutdown.start that wait for the end */
    struct upcalls ups;               /* requests of clients that were sent on to rank 0 */

    enum state state;
    bool alone;          /* it stops, and its subtree continues */
    bool wrong_instance; /* wrong instance: the children start again, and so does any rank but 0 */
    bool told_to_stop;   /* broker_stop () was called */
    double state_since;
    double shutdown_timeout; /* seconds */
    double join_timeout;     /* seconds; 0: no limit */
    idt_error_t start_error; /* why it cannot start; "": no failure so far */
    int start_errnum;        /* errno of that failure */
    struct quorum quorum;    /* of rank 0 */
    bool complete;           /* the owner was notified that it is up */
    bool waits;              /* it has reported that it waits for its parent */
    bool joined;             /* the parent has accepted it; rank 0: from the start */
    char refusal[256];       /* reason of the last refusal by the parent; "": none */
    double refusal_pause;    /* seconds between reports of a refusal; 0: none so far */
    double refusal_due;      /* CLOCK_MONOTONIC time of the next report */
    int exit_code;
};

/* --- lifecycle.c -------------------------------------------------------------------------------- */

/* Report an event that may end the current state. */
void broker_input (struct broker *b, enum state_input in);

/* A child or the command has ended: in state cleanup the broker continues to stop when the last of them has ended. */
void broker_check_alone (struct broker *b);

/* Begin to stop for a reason of the broker itself. No effect if it already stops. */
void broker_begin_stop (struct broker *b, const char *why);

/* In state join: enter state run if the parent has accepted the broker and all modules run, or give up if a module
 * failed.
 */
void broker_check_start (struct broker *b);

/* Give up, unless the broker is already up or stops: print the reason on stderr, stop, and exit with the code for
 * 'errnum'.
 */
void broker_cannot_start (struct broker *b, int errnum, const char *fmt, ...) __attribute__ ((format (printf, 3, 4)));

/* The same, because the parent refused the broker or did not answer. */
void broker_join_failed (struct broker *b, int errnum);

/* Give up in any state: print 'why' on stderr, stop, and exit with the code for 'errnum'. */
void broker_give_up (struct broker *b, int errnum, const char *why);

/* Seconds until a broker that starts gives up, or reports what it waits for. */
double broker_patience (const struct broker *b);

/* When the quorum is reached, start rank 0's command, once. If the launcher starts all ranks together and restarts
 * none, rank 0 is not up before that, and gives up after broker.join-timeout.
 */
void broker_check_complete (struct broker *b);

/* Report that the quorum is not reached yet. */
void broker_quorum_timer_cb (idt_watcher_t *w, int revents, void *arg);

/* The current state has reached its time limit. */
void broker_timer_cb (idt_watcher_t *w, int revents, void *arg);

/* --- the others ----------------------------------------------------------------------------------- */

/* Define the attributes that describe this broker (setup.c). */
int broker_define_attributes (struct broker *b, idt_error_t *errp);

/* Check that an attribute of a configuration file is known, or may belong to a module that is not loaded. 'origin' is
 * its place in the file. Returns 0, or -1 with errno EINVAL and 'errp' filled.
 */
int broker_check_known (struct broker *b, const char *name, const char *origin, idt_error_t *errp);

/* Choose the endpoint at which to listen for children (setup.c). */
int broker_choose_endpoint (struct broker *b, char *buf, size_t size, idt_error_t *errp);

/* The endpoint at which children reach this broker, after it was bound. For "all addresses" it has an address that
 * other hosts can reach. NULL: not bound.
 */
const char *broker_announced_endpoint (struct broker *b);

/* Register the broker's own services (services.c). */
int broker_serve (struct broker *b);

#endif /* BROKER_PRIVATE_H */
