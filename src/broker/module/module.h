/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module.h - modules: load, host, unload (RFC 5)
 *
 * A module that exports idt_module is hosted inline, on the broker's reactor, or in the thread that those of a process
 * share, as it says, unless it is asked for with the argument "--thread"; every other one gets a thread.  Either way it
 * is a peer of the router with the service of its name.
 */
#ifndef BROKER_MODULE_H
#define BROKER_MODULE_H

#include <idtree/module.h>

#include "broker/base/attr.h"
#include "broker/base/log.h"
#include "broker/overlay/overlay.h"
#include "broker/module/shared.h"
#include "broker/route/router.h"

struct modules;

struct modules_ops {
    /* A message that a module sends (steals the reference). */
    void (*message) (void *arg, struct peer *from, idt_msg_t *msg);
    /* A module in a thread that modules_load () began with has started (errnum 0), or could not.  Not the place to stop
     * modules from.
     */
    void (*started) (void *arg, const char *name, int errnum, const char *text);
    /* Something comes from the shared thread next. */
    void (*woke) (void *arg);
};

#define MODULES_MAX 64

struct modules_conf {
    idt_reactor_t *reactor;
    struct attrs *attrs;
    struct router *router;
    struct event *event;
    struct overlay *overlay; /* what a module carries on hellos and heartbeats goes there */
    struct log *log;
    struct shared *shared; /* the thread that modules of the process share */
    uint32_t rank;
    const struct modules_ops *ops;
    void *arg;
};

/* Copies 'conf'; what it points to is borrowed.  NULL with errno set and 'errp' filled. */
struct modules *modules_create (const struct modules_conf *conf, idt_error_t *errp);

/* Unload all, newest first, and wait for their threads. */
void modules_stop (struct modules *ms);
void modules_destroy (struct modules *ms);

/* Load a module by name (searched in module.path) or by the path of its file.  'name' NULL: from the file.  One that
 * runs in a thread starts there: ops->started tells how that ended.  'request' (may be NULL) is answered when it runs,
 * or with what kept it from that; not where this returns -1.
 * Returns 0, or -1 with errno set and 'errp' filled: ENOENT, EEXIST, EINVAL (no module), ENOSPC, what init said.
 */
int modules_load (struct modules *ms, const idt_msg_t *request, const char *path, const char *name, int argc,
                  char **argv, idt_error_t *errp);

/* The name of a module that has not started yet; NULL: all run. */
const char *modules_starting (struct modules *ms);

enum module_report {
    MODULES_SOMETHING,
    MODULES_QUIET,   /* nothing that is not 0, and nothing else before it is given another message */
    MODULES_NOTHING, /* in its life */
};

/* Call 'each' for the name of each module that runs and may have something to be summed up, in the order in which they
 * were loaded: 'each' asks it.  'brief': what is not 0.  / Note what came of that.
 */
void modules_each_telling (struct modules *ms, bool brief, void (*each) (const char *name, void *arg), void *arg);
void modules_told (struct modules *ms, const char *name, enum module_report report);

/* Whether there is a file to load a module of that name, or path, from. */
bool modules_has_file (struct modules *ms, const char *path);

/* Whether an attribute is MODULE.ANYTHING of a module that has not started, but would be found. */
bool modules_may_want (struct modules *ms, const char *attribute);

/* The broker's own services: an inline handle of a peer that the caller provides.  It is closed by modules_destroy ().
 * NULL with errno set.
 */
idt_t *modules_host_builtin (struct modules *ms, const char *name, struct peer *peer);

/* Hand on messages to and from modules, for a while.  Called before the reactor sleeps.  Returns whether there were
 * any.
 */
bool modules_turn (struct modules *ms);

/* Whether an asker takes answers now; while it does not, its requests wait (router_peer's UUID; ready again before it
 * goes).
 */
void modules_asker_ready (struct modules *ms, const char *uuid, bool ready);
bool modules_pending (const struct modules *ms); /* some wait */

/* Serve module.list, module.load, module.remove on the broker's own handle. */
int modules_serve (struct modules *ms, idt_t *h);

#endif /* BROKER_MODULE_H */
