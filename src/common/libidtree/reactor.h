/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reactor.h - functions of the reactor beyond idtree/reactor.h, for the project's own use. Not installed.
 *
 * A view is a reactor that shares the loop of another reactor, so that each of several objects on a thread can have a
 * reactor of its own. Watchers of a view are watchers of that loop. Before each callback of such a watcher the view
 * calls woke () of its owner, so the owner knows which object the event belongs to. A view cannot be run.
 * idt_reactor_stop () on a view calls stop () of its owner.
 */
#ifndef LIBIDTREE_REACTOR_H
#define LIBIDTREE_REACTOR_H

#include <stdbool.h>

#include <idtree/reactor.h>

#pragma GCC visibility push(default) /* the broker calls these functions, and links the shared library */

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

/* Make a view of 'r'. 'r' and 'ops' must outlive the view. To end a view, destroy its watchers, then call
 * idt_reactor_destroy (). NULL with errno ENOMEM.
 */
idt_reactor_t *idt_view_create (idt_reactor_t *r, const struct view_ops *ops, void *arg);

/* While a view is paused, no callback of its watchers is called. When the pause ends, each watcher that fired during
 * the pause is called once, if the event that it watches still exists. A process that was stopped and continued behaves
 * in the same way.
 */
void idt_view_pause (idt_reactor_t *view, bool paused);

#pragma GCC visibility pop

#endif /* LIBIDTREE_REACTOR_H */
