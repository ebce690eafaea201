/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* watcher.h - what handles need of the reactor beyond reactor.h.  Not installed. */
#ifndef LIBIDTREE_WATCHER_H
#define LIBIDTREE_WATCHER_H

#include <stdbool.h>

#include <idtree/reactor.h>

/* Call this watcher's callback before those of other watchers that are due in the same turn.  Only while
 * it is stopped.
 */
void watcher_set_first (idt_watcher_t *w);

/* Let a started descriptor watcher not keep the reactor running ('background'), or again do so. */
void watcher_set_background (idt_watcher_t *w, bool background);

#endif /* LIBIDTREE_WATCHER_H */
