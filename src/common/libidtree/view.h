/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* view.h - a reactor that shares the loop of another, for one object of many on a thread.  Not installed.
 *
 * Watchers of a view are watchers of the loop.  Before the callback of each of them the owner of the view is told, so that
 * he knows whom something happened to.  A view is not run; idt_reactor_stop () ends what the owner says it ends.
 */
#ifndef LIBIDTREE_VIEW_H
#define LIBIDTREE_VIEW_H

#include <stdbool.h>

#include <idtree/reactor.h>

struct view_ops {
    void (*woke) (void *arg); /* a watcher's callback is called next */
    void (*stop) (void *arg); /* instead of stopping the loop */
};

/* 'r' and 'ops' must live longer.  idt_reactor_destroy () when its watchers are destroyed; NULL with errno ENOMEM. */
idt_reactor_t *idt_view_create (idt_reactor_t *r, const struct view_ops *ops, void *arg);

/* While it is paused no callback of its watchers is called.  Afterwards those that would have been are, once each, as far as
 * there is still a reason: like those of a process that was stopped.
 */
void idt_view_pause (idt_reactor_t *view, bool paused);

#endif /* LIBIDTREE_VIEW_H */
