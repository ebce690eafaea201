/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* loop.h - what the project needs of the reactor beyond reactor.h.  Not installed.
 *
 * A view is a reactor that shares the loop of another, for one object of many on a thread.  Watchers of a view are
 * watchers of the loop.  Before the callback of each of them the owner of the view is told, so that he knows whom
 * something happened to.  A view is not run; idt_reactor_stop () ends what the owner says it ends.
 */
#ifndef LIBIDTREE_LOOP_H
#define LIBIDTREE_LOOP_H

#include <stdbool.h>

#include <idtree/reactor.h>

/* Call this watcher's callback before those of other watchers that are due in the same turn.
 * Only while it is stopped.
 */
void watcher_set_first (idt_watcher_t *w);

/* Let a started descriptor watcher not keep the reactor running ('background'), or again do so. */
void watcher_set_background (idt_watcher_t *w, bool background);

struct view_ops {
    void (*woke) (void *arg); /* a watcher's callback is called next */
    void (*stop) (void *arg); /* instead of stopping the loop */
};

/* 'r' and 'ops' must live longer.  idt_reactor_destroy () when its watchers are destroyed; NULL with errno ENOMEM. */
idt_reactor_t *idt_view_create (idt_reactor_t *r, const struct view_ops *ops, void *arg);

/* While it is paused no callback of its watchers is called.  Afterwards those that would have been are, once each, as
 * far as there is still a reason: like those of a process that was stopped.
 */
void idt_view_pause (idt_reactor_t *view, bool paused);

#endif /* LIBIDTREE_LOOP_H */
