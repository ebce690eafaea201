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
#include "broker/trace/trace.h"
#include "broker/base/topology.h"
#include "common/libmodule/upcall.h"
#include "common/libzmqutil/zwatcher.h"

struct broker {
    struct broker_conf conf;
    uint32_t rank;
    uint32_t size;
    char uuid[IDT_MSG_UUID_LEN + 1];

    struct attrs *attrs;
    struct boot *boot;       /* the process's */
    const struct topo *topo; /* boot's */
    char public_key[BOOT_KEY_TEXT];
    char secret_key[BOOT_KEY_TEXT];
    struct rundir rundir;
    struct instance instance;
    char announced[256]; /* where children reach it: what broker_announced_endpoint () has found */
    struct log *log;
    struct router *router;
    struct overlay *overlay;
    struct event *event;
    struct modules *modules;
    struct surveys *surveys; /* what is told of a subtree */
    struct trace *trace;     /* who looks at messages */
    struct usock *local;
    struct rank_command *command; /* rank 0's; NULL: none runs */

    struct member *member;
    struct zpoll *zpoll;
    idt_watcher_t *timer;             /* bounds a state */
    idt_watcher_t *quorum_timer;      /* says who is missing; rank 0's */
    struct peer peer;                 /* of the broker's own services */
    idt_t *h;                         /* their handle */
    struct msglist *shutdown_streams; /* of shutdown.start */
    struct upcalls ups;               /* what rank 0 was asked */

    enum state state;
    bool alone; /* it stops, and those below go on */
    bool
        wrong_instance; /* this is the tree of the wrong instance: those below begin anew, and so does who is no root */
    bool told_to_stop;  /* from outside: broker_stop () was called */
    double state_since;
    double shutdown_timeout; /* seconds */
    double join_timeout;     /* 0: for ever */
    idt_error_t start_error; /* why it cannot start: "": nothing is known that keeps it from that */
    int start_errnum;        /* of which kind that is */
    struct quorum quorum;    /* of rank 0 */
    bool complete;           /* it was told up: all that must be there for that have been */
    bool waits;              /* for its parent, and that was said */
    bool joined;             /* the parent has taken us in; rank 0: from the start */
    char refusal[256];       /* why the parent does not want us; "": it did not say */
    double refusal_pause;    /* seconds until one that is refused says so again; 0: it did not say it yet */
    double refusal_due;      /* ... when that is, of CLOCK_MONOTONIC */
    int exit_code;
};

/* --- lifecycle.c -------------------------------------------------------------------------------- */

/* Something happened that may end the state. */
void broker_input (struct broker *b, enum state_input in);

/* A child has gone, or the command: a broker that stops waits for the last of them. */
void broker_check_alone (struct broker *b);

/* Begin to stop for a reason of our own; where it has begun already, nothing. */
void broker_begin_stop (struct broker *b, const char *why);

/* A broker that starts runs when the parent has taken it in and all modules run; or it gives up. */
void broker_check_start (struct broker *b);

/* Give up before the instance began: say why on stderr, stop, exit as 'errnum' says.  Later, nothing. */
void broker_cannot_start (struct broker *b, int errnum, const char *fmt, ...) __attribute__ ((format (printf, 3, 4)));
void broker_join_failed (struct broker *b, int errnum);
void broker_give_up (struct broker *b, int errnum, const char *why);
/* whether it began or not */ /* the parent does not take us in */

/* Seconds until a broker that starts gives up, or says for whom it waits. */
double broker_patience (const struct broker *b);

/* When the quorum is there, rank 0's command starts, once.  Under a launcher that starts nobody again rank 0 is not up
 * before that, and gives up if it takes too long.
 */
void broker_check_complete (struct broker *b);

/* The quorum is waited for since long. */
void broker_quorum_timer_cb (idt_watcher_t *w, int revents, void *arg);

/* The state took too long. */
void broker_timer_cb (idt_watcher_t *w, int revents, void *arg);

/* --- the others ----------------------------------------------------------------------------------- */

/* Define the attributes that tell what this broker is (setup.c). */
int broker_define_attributes (struct broker *b, idt_error_t *errp);

/* Whether an attribute that a file gives ('origin') is one, or may be of a module that is not loaded.  Returns 0, or -1
 * with errno EINVAL and 'errp' filled.
 */
int broker_check_known (struct broker *b, const char *name, const char *origin, idt_error_t *errp);

/* Where to listen for children (setup.c). */
int broker_choose_endpoint (struct broker *b, char *buf, size_t size, idt_error_t *errp);

/* Where children reach it, now that it is bound: of "all addresses" one that other hosts can reach.  NULL: it is not
 * bound.
 */
const char *broker_announced_endpoint (struct broker *b);

/* Register the broker's own services (services.c). */
int broker_serve (struct broker *b);

#endif /* BROKER_PRIVATE_H */
