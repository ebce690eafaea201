/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module.h - modules: load, host, unload (RFC 5)
 *
 * A module that exports idt_module is hosted inline, on the broker's reactor, in the shared thread of the process, or
 * in a thread of its own, as idt_module says. With the argument "--thread", or without idt_module, it gets a thread of
 * its own. In all cases it is a peer of the router with the service of its name.
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
    /* A module sends a message (steals the reference). */
    void (*message) (void *arg, struct peer *from, idt_msg_t *msg);
    /* A module in a thread that modules_load () started without a request now runs (errnum 0), or has failed. The
     * callback must not stop modules.
     */
    void (*started) (void *arg, const char *name, int errnum, const char *text);
    /* The next messages come from the shared thread. */
    void (*woke) (void *arg);
};

struct modules_conf {
    idt_reactor_t *reactor;
    struct attrs *attrs;
    struct router *router;
    struct event *event;
    struct overlay *overlay; /* carries the data of modules in hellos and heartbeats */
    struct log *log;
    struct shared *shared; /* the thread that modules of the process share */
    uint32_t rank;
    const struct modules_ops *ops;
    void *arg;
};

/* Copies 'conf'; its pointers are borrowed. NULL with errno set and 'errp' filled. */
struct modules *modules_create (const struct modules_conf *conf, idt_error_t *errp);

/* Unload all modules, newest first, and wait for their threads. A module that does not end within 5 s is left behind.
 */
void modules_stop (struct modules *ms);
void modules_destroy (struct modules *ms);

/* Load a module by name (searched in module.path) or by the path of its file. 'name' NULL: the name of the file. A
 * module in a thread starts there, and ops->started reports the result. 'request' (may be NULL) is answered with the
 * result of the start, but not if this call returns -1. Returns 0, or -1 with errno set and 'errp' filled: ENOENT,
 * EEXIST, EINVAL (not a module), ENOSPC, or the error of init.
 */
int modules_load (struct modules *ms, const idt_msg_t *request, const char *path, const char *name, int argc,
                  char **argv, idt_error_t *errp);

/* The name of a module that has not started yet; NULL: all run. */
const char *modules_starting (struct modules *ms);

enum module_report {
    MODULES_SOMETHING,
    MODULES_QUIET,   /* only zeros, until it gets another message */
    MODULES_NOTHING, /* nothing, until it is unloaded */
};

/* Call 'each' for each running module that may have figures for a sum, in the order of loading, so that 'each' requests
 * them. 'brief': only figures that are not 0. modules_told () stores what kind of report a module gave.
 */
void modules_each_telling (struct modules *ms, bool brief, void (*each) (const char *name, void *arg), void *arg);
void modules_told (struct modules *ms, const char *name, enum module_report report);

/* Whether a file for a module of that name or path exists. */
bool modules_has_file (struct modules *ms, const char *path);

/* Whether a module may define an attribute later: one is starting, and may define any; or it is MODULE.ANYTHING for a
 * module that is not loaded, but whose file exists. 'arg' is struct modules.
 */
bool modules_may_define (const char *attribute, void *arg);

/* Make an inline handle for the broker's own services, with a peer that the caller provides. modules_destroy () closes
 * it. NULL with errno set.
 */
idt_t *modules_host_builtin (struct modules *ms, struct peer *peer);

/* Pass on messages to and from modules, for at most MODULE_TURN_US. Called before the reactor sleeps. Returns whether
 * there were any.
 */
bool modules_turn (struct modules *ms);

/* Set whether a requester (UUID of its router_peer) accepts responses now; while it does not, its requests wait. It
 * must be ready again before it is removed.
 */
void modules_requester_ready (struct modules *ms, const char *uuid, bool ready);
bool modules_pending (const struct modules *ms); /* messages wait */

/* Serve module.list, module.load, module.remove on the broker's own handle. */
int modules_serve (struct modules *ms, idt_t *h);

/* --- the thread that modules of all brokers of a process share -------------------------------------------- */

/* For modules that compute for long but do not block for long (IDT_MODULE_SHARED ()). The thread has a reactor, of
 * which each module has a view. For any number of modules it needs two descriptors, and one more for epoll. The thread
 * starts with the first module. 'r' is the reactor of the brokers, in the calling thread. NULL with errno set.
 */
struct shared *shared_create (idt_reactor_t *r);

/* End the thread; its modules must be unloaded before. If a module was left behind, the thread stays until the process
 * ends.
 */
void shared_destroy (struct shared *s);

#endif /* BROKER_MODULE_H */
