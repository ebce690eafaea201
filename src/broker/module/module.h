/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module.h - modules: load, host, unload (RFC 5)
 *
 * A module that exports idt_module is hosted as idt_module says: inline, on the broker's reactor; in the shared thread
 * of the process; or in a thread of its own. With the argument "--thread", or without idt_module, a module gets a
 * thread of its own. In all cases the module is a peer of the router and has the service with its name.
 */
#ifndef BROKER_MODULE_H
#define BROKER_MODULE_H

#include <idtree/module.h>
#include <idtree/reactor.h>

#include "broker/base/attr.h"
#include "broker/base/log.h"
#include "broker/overlay/overlay.h"
#include "broker/route/router.h"

struct modules;
struct shared;

struct modules_ops {
    /* A module has sent a message (steals the reference). */
    void (*message) (void *arg, struct peer *from, idt_msg_t *msg);
    /* A module in a thread, which modules_load () began to start without a request, now runs (errnum 0) or has failed.
     * The callback must not stop modules.
     */
    void (*started) (void *arg, const char *name, int errnum, const char *text);
    /* Calls of 'message' and 'started' for modules in the shared thread follow, so wake the broker. */
    void (*woke) (void *arg);
};

struct modules_conf {
    idt_reactor_t *reactor;
    struct attrs *attrs;
    struct router *router;
    struct event *event;
    struct overlay *overlay; /* carries data of modules in hellos and heartbeats */
    struct log *log;
    struct shared *shared; /* the thread that modules of the process share */
    uint32_t rank;
    const struct modules_ops *ops;
    void *arg;
};

/* Copies 'conf'; its pointers are borrowed. NULL with errno set and 'errp' filled. */
struct modules *modules_create (const struct modules_conf *conf, idt_error_t *errp);

/* Unload all modules, the newest first, and wait for their threads. A module that does not end within 5 s is left
 * behind.
 */
void modules_stop (struct modules *ms);
void modules_destroy (struct modules *ms);

/* Load a module by its name (searched in module.path) or by the path of its file. 'name' NULL: use the name of the
 * file. A module in a thread starts in its thread, and ops->started reports the result. If 'request' is not NULL, it is
 * answered with the result in place of that report; but if this call returns -1, the caller answers it. Returns 0, or
 * -1 with errno set and 'errp' filled: ENOENT, EEXIST, EINVAL (not a module), ENOSPC, or the error of init.
 */
int modules_load (struct modules *ms, const idt_msg_t *request, const char *path, const char *name, int argc,
                  char **argv, idt_error_t *errp);

/* The name of a module that has not started yet; NULL: all modules run. */
const char *modules_starting (struct modules *ms);

enum module_report {
    MODULES_SOMETHING,
    MODULES_QUIET,   /* the module has only zeros, until it gets another message */
    MODULES_NOTHING, /* the module has no figures, until it is unloaded */
};

/* modules_each_telling (): call 'each' for each running module that may have figures for a sum, in the order of
 * loading. 'each' must request the figures of this module. 'brief': leave out modules whose figures are all 0.
 * modules_told (): store what kind of report a module gave.
 */
void modules_each_telling (struct modules *ms, bool brief, void (*each) (const char *name, void *arg), void *arg);
void modules_told (struct modules *ms, const char *name, enum module_report report);

/* Whether there is a file for a module with this name or path. */
bool modules_has_file (struct modules *ms, const char *path);

/* Whether a module may still define an attribute. A module that is starting may define any attribute. A module that is
 * not loaded, but whose file exists, may define MODULE.ANYTHING. 'arg' is a struct modules.
 */
bool modules_may_define (const char *attribute, void *arg);

/* Make an inline handle for the broker's own services. The caller provides their peer. modules_destroy () closes the
 * handle. NULL with errno set.
 */
idt_t *modules_host_builtin (struct modules *ms, struct peer *peer);

/* Pass on messages to and from modules, for at most MODULE_TURN_US. Call this before the reactor sleeps. Returns
 * whether there were messages.
 */
bool modules_turn (struct modules *ms);

/* Set whether a requester (UUID of its router_peer) accepts responses now. While it does not, its requests to modules
 * wait. Before a requester is removed, the requester must be set to ready again.
 */
void modules_requester_ready (struct modules *ms, const char *uuid, bool ready);
bool modules_pending (const struct modules *ms); /* whether messages wait */

/* Answer module.list, module.load and module.remove on 'h', the broker's own handle. */
int modules_serve (struct modules *ms, idt_t *h);

/* --- the thread that modules of all brokers of a process share -------------------------------------------- */

/* For modules that may compute for long, but do not block for long (IDT_MODULE_SHARED ()). The thread has a reactor,
 * and each module has a view of this reactor. For all modules together the thread needs two descriptors, and one more
 * for epoll. The thread starts with the first module. 'r' is the reactor of the brokers, in the calling thread. NULL
 * with errno set.
 */
struct shared *shared_create (idt_reactor_t *r);

/* End the thread. All modules in the thread must have been unloaded. If a module was left behind, the thread stays
 * until the process ends.
 */
void shared_destroy (struct shared *s);

#endif /* BROKER_MODULE_H */
