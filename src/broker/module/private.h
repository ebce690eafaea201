/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - the object that represents one module of a broker, which three files share
 *
 *   module.c  finds, loads, unloads and lists modules
 *   host.c    messages to and from a module, and its handle on the reactor
 *   thread.c  the thread of a module: one of its own, or the one that modules of a process share
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
#define MODULE_TURN_US 50     /* time for messages of modules before the reactor polls its sockets */
#define MODULE_MAX_INSIDE 256 /* largest number of requests in the mailbox of a module in a thread */

/* Values of "status" in module.list (RFC 5). */
enum module_status { MODULE_STARTING = 0, MODULE_RUNNING = 1, MODULE_STOPPING = 2, MODULE_ENDED = 3 };

struct module {
    struct peer own; /* the module's peer of the router; unused for the broker's own services */
    struct peer *peer;
    struct modules *ms;
    char name[MODULE_MAX_NAME + 1];
    char *path;
    void *dso;
    idt_t *h;
    const struct idt_module *def; /* NULL: the file has only idt_mod_main */
    bool threaded;
    bool shared;        /* it runs in the thread that several modules share */
    bool attached;      /* it is attached to the overlay */
    bool stopping;      /* it is ending and gets no messages; a module on the reactor is also no longer in the list */
    bool tells_nothing; /* has no figures (NAME.metrics) */
    bool quiet;         /* has only zeros until it gets a message */
    uint64_t given;     /* number of messages sent to it */
    uint64_t asked_at;  /* 'given' at the last request for figures */
    bool left_behind;   /* did not end in time: the module's thread owns it, and its broker may be destroyed */
    void *ctx;
    const void *kept; /* handover that the module got; borrowed until the module has started */
    size_t kept_size;
    void *kept_copy; /* for a module in a thread: the copy to which 'kept' points */
    void *left;
    size_t left_size;
    double used; /* time of its last message in seconds */
    /* Waiting messages, in the order that host.c describes. */
    struct fifo said;       /* messages that a module on the reactor has sent */
    struct fifo replies;    /* responses and events for a module on the reactor */
    struct drr_queue *asks; /* requests for the module, by requester */
    int inside;             /* requests passed to the thread and not taken by the module yet; atomic */
    bool active;            /* it is in the list of modules with messages to pass on */
    TAILQ_ENTRY (module) link;
    /* for a module in a thread */
    struct mailbox *in; /* to the module */
    struct mailbox *out;
    idt_watcher_t *w;
    pthread_t thread;
    bool told; /* whether the start was reported; only the module's thread uses this */
    /* for a module in the shared thread; this thread owns these until it has closed 'out' */
    idt_reactor_t *view;
    struct attrs *attrs; /* attributes of the broker, only to be read */
    bool begun;
    int result;              /* errno with which the module ended; 0: no error */
    struct attr_text *texts; /* values of attributes that the module has read */
    enum module_status status;
    const idt_msg_t *loader;  /* request to load the module, answered when it has started or failed */
    const idt_msg_t *remover; /* request to unload the module, answered when it has ended */
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
    uint64_t seed;     /* random, for the keys of requesters */
    uint64_t max_json; /* largest number of bytes of a request that is parsed on the reactor */
};

static inline double module_now (void) /* seconds */
{
    return clock_s (CLOCK_MONOTONIC_COARSE);
}

/* --- module.c ---------------------------------------------------------------------------------- */

/* Report the result of a module's start: answer the request that loads it, or without such a request notify the broker.
 * If the module is already stopping, the broker is not notified.
 */
void module_started (struct module *m, int errnum, const char *text);

/* Remove a module that has ended or is left behind from everything that the broker knows of it. */
void module_forget (struct module *m);

/* Only if the module's thread no longer uses it. NULL is fine; keeps errno. */
void module_destroy (struct module *m);

/* --- host.c --------------------------------------------------------------------------------- */

/* module_make_peer (): make the module's peer and add it to the router. module_make_handle (): make the module's
 * handle. Both return 0, or -1 with errno set.
 */
int module_make_peer (struct module *m);
int module_make_handle (struct module *m);

/* Make the handle for the broker's own services, with the caller's peer. Returns 0, or -1 with errno set. */
int module_make_builtin (struct module *m, struct peer *peer);

/* Pass on a message that a module has sent. Steals the reference, which must be the only one. */
void module_sent (struct module *m, idt_msg_t *msg);

/* Drop all messages that wait for a module, because it ends. */
void module_forget_messages (struct module *m);

/* Must be called after any change of the messages that wait for a module, or of the number of requests that its mailbox
 * may still take.
 */
void module_check_active (struct module *m);

/* Detach the module from the overlay. Must be called before the code of its callbacks is unmapped. */
void module_detach (struct module *m);

/* Functions of all transports. module_keep (): store the handover that the module leaves. module_kept (): get the
 * handover that it got.
 */
int module_keep (void *impl, const void *data, size_t size);
const void *module_kept (void *impl, size_t *size);
void module_no_destroy (void *impl);

/* --- thread.c -------------------------------------------------------------------------------- */

/* Make the mailboxes of a module in a thread. Returns its transport, or NULL with errno set. */
const struct idt_transport *module_thread_prepare (struct module *m);

/* Start the module in its thread. The thread reports the result, with which module_started () is called. Returns 0, or
 * -1 with errno set and 'errp' filled.
 */
int module_thread_start (struct module *m, idt_error_t *errp);

/* End a module in a thread, whose mailbox 'in' is closed: wait until its thread has ended and destroy the module, or if
 * this takes too long leave it behind.
 */
void module_thread_end (struct module *m);

/* Free the parts of a module that only a module in a thread has. */
void module_thread_fini (struct module *m);

/* Add a message to a mailbox (with a reference of its own). 'limited' is false for messages whose number is already
 * bounded by accepted requests. Returns 0, or -1 with the errno of mailbox_push_new ().
 */
int module_push (struct mailbox *mb, const idt_msg_t *msg, bool limited);

#endif /* BROKER_MODULE_PRIVATE_H */
