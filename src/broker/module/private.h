/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - one module of a broker: an object of three files
 *
 *   module.c  finds, loads, unloads, lists it
 *   host.c    messages to and from it, and its handle on the reactor
 *   thread.c  its thread: one of its own, or the one that modules of a process share
 */
#ifndef BROKER_MODULE_PRIVATE_H
#define BROKER_MODULE_PRIVATE_H

#include <czmq.h>
#include <pthread.h>
#include <sys/queue.h>

#include "broker/module/mailbox.h"
#include "broker/module/module.h"
#include "broker/route/module_handover.h"
#include "libidtree/transport.h"
#include "libutil/clock.h"
#include "libutil/queue/drr_queue.h"
#include "libutil/queue/fifo.h"

#define MODULE_MAX_NAME 64
#define MODULE_TURN_US 50     /* time for messages of modules before the reactor polls sockets */
#define MODULE_MAX_INSIDE 256 /* requests in the mailbox of a thread */

/* Module status as in module.list (RFC 5). */
enum module_status { MODULE_STARTING = 0, MODULE_RUNNING = 1, MODULE_STOPPING = 2, MODULE_ENDED = 3 };

struct module {
    struct peer own; /* of the router; unused for the broker's own services */
    struct peer *peer;
    struct modules *ms;
    char name[MODULE_MAX_NAME + 1];
    char *path;
    void *dso;
    idt_t *h;
    const struct idt_module *def; /* NULL: it has only idt_mod_main */
    bool threaded;
    bool shared;        /* in the thread that several modules share */
    bool attached;      /* to the overlay */
    bool stopping;      /* is ending: gets no messages; one on the reactor is no longer in the list */
    bool tells_nothing; /* has no figures (NAME.metrics) */
    bool quiet;         /* has only zeros until it gets a message */
    uint64_t given;     /* number of messages that it got */
    uint64_t asked_at;  /* 'given' at the last request for figures */
    bool left_behind;   /* did not end in time: owned by its thread; its broker may be destroyed */
    void *ctx;
    const void *kept; /* handover that it got (borrowed until its start), and that it leaves */
    size_t kept_size;
    void *kept_copy; /* owner of 'kept' for a thread */
    void *left;
    size_t left_size;
    double used; /* time of its last message, seconds */
    /* Waiting messages; host.c has the order. */
    struct fifo said;       /* sent by a module on the reactor */
    struct fifo replies;    /* responses and events for a module on the reactor */
    struct drr_queue *asks; /* requests for it, by requester */
    int inside;             /* requests in the thread; atomic */
    bool active;            /* in the list of modules with messages to pass on */
    TAILQ_ENTRY (module) link;
    /* for a module in a thread */
    struct mailbox *in; /* to the module */
    struct mailbox *out;
    idt_watcher_t *w;
    pthread_t thread;
    bool told; /* its start was reported; used by its thread */
    /* in the shared thread, which owns these until it has closed 'out' */
    idt_reactor_t *view;
    struct attrs *attrs; /* the broker's, to read */
    bool begun;
    int result;              /* errno with which it ended; 0: no error */
    struct attr_text *texts; /* values of attributes that it has read */
    enum module_status status;
    const idt_msg_t *loader;  /* request to load it, answered after its start or failure */
    const idt_msg_t *remover; /* request to unload it, answered when it has ended */
    int (*mod_main) (idt_t *h, int argc, char **argv);
    int argc;
    char **argv;
};

struct modules {
    struct modules_conf conf;
    zlistx_t *list;
    struct module *builtin;
    struct module_handovers *handovers;
    TAILQ_HEAD (, module) active;
    uint32_t owner;    /* user id of the instance owner */
    uint64_t seed;     /* of the keys of requesters */
    uint64_t max_json; /* bytes of a request that is parsed on the reactor */
};

static inline double module_now (void) /* seconds */
{
    return clock_s (CLOCK_MONOTONIC_COARSE);
}

/* --- module.c ---------------------------------------------------------------------------------- */

/* Report the result of a start to the requester or the broker. If the module is already stopping, the broker gets no
 * report.
 */
void module_started (struct module *m, int errnum, const char *text);

/* A module has ended, or is left behind: the broker no longer knows it. */
void module_forget (struct module *m);

/* Only when its thread no longer uses it. NULL is fine; keeps errno. */
void module_destroy (struct module *m);

/* --- host.c --------------------------------------------------------------------------------- */

/* Make the module's peer and register it with the router; make its handle. Return 0, or -1 with errno set. */
int module_make_peer (struct module *m);
int module_make_handle (struct module *m);

/* The same for the broker's own services, with the caller's peer. */
int module_make_builtin (struct module *m, struct peer *peer);

/* Pass on a message that a module sent (steals the reference, which is the only one). */
void module_sent (struct module *m, idt_msg_t *msg);

/* Drop the messages that wait for a module that ends. */
void module_forget_messages (struct module *m);

/* Must be called when the messages that wait for a module, or its room for them, have changed. */
void module_check_active (struct module *m);

/* Detach the module from the overlay, before the code of its callbacks is unmapped. */
void module_detach (struct module *m);

/* Functions of all transports: store the handover that a module leaves; get the one that it got. */
int module_keep (void *impl, const void *data, size_t size);
const void *module_kept (void *impl, size_t *size);
void module_no_destroy (void *impl);

/* --- thread.c -------------------------------------------------------------------------------- */

/* Make the mailboxes of a module in a thread. Returns its transport, or NULL with errno set. */
const struct idt_transport *module_thread_prepare (struct module *m);

/* Start it in its thread, which reports the result: module_started (). Returns 0, or -1 with errno set and 'errp'
 * filled.
 */
int module_thread_start (struct module *m, idt_error_t *errp);

/* Destroy a module whose mailbox 'in' is closed when its thread has ended, or leave it behind if that takes too long.
 */
void module_thread_end (struct module *m);

/* Free what a thread of the module used. */
void module_thread_fini (struct module *m);

/* Add a message to a mailbox. Messages that are bounded by accepted requests have no limit here. Returns 0, or -1 as
 * mailbox_push_new ().
 */
int module_push (struct mailbox *mb, const idt_msg_t *msg, bool limited);

#endif /* BROKER_MODULE_PRIVATE_H */
