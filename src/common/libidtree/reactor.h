/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reactor.h - functions of the reactor beyond idtree/reactor.h, for the project's own use. Not installed.
 *
 * A view is a reactor that shares the loop of another one; each of several objects on a thread can have its own.
 * Watchers of a view are watchers of the loop. Before each callback of such a watcher the view's owner is notified, so
 * that it knows which object the event belongs to. A view cannot be run; idt_reactor_stop () on a view calls the
 * owner's stop ().
 */
#ifndef LIBIDTREE_REACTOR_H
#define LIBIDTREE_REACTOR_H

#include <stdbool.h>

#include <idtree/reactor.h>

#pragma GCC visibility push(default) /* for the broker, which links the shared library */

/* Call this watcher's callback before the callbacks of other watchers that are due in the same turn. The watcher must
 * be stopped.
 */
void watcher_set_first (idt_watcher_t *w);

/* Choose whether a started descriptor watcher keeps the reactor running ('background': it does not). */
void watcher_set_background (idt_watcher_t *w, bool background);

struct view_ops {
    void (*woke) (void *arg); /* called before the callback of a watcher */
    void (*stop) (void *arg); /* called instead of stopping the loop */
};

/* 'r' and 'ops' must outlive the view. Destroy its watchers, then call idt_reactor_destroy (). NULL with errno ENOMEM.
 */
idt_reactor_t *idt_view_create (idt_reactor_t *r, const struct view_ops *ops, void *arg);

/* While a view is paused, no callback of its watchers is called. Afterwards each watcher that fired meanwhile is called
 * once, if its reason still exists, as in a process that was stopped and continued.
 */
void idt_view_pause (idt_reactor_t *view, bool paused);

#pragma GCC visibility pop

#endif /* LIBIDTREE_REACTOR_H */
