/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* page.h - a rank gives processes of its host the page by which they make ids themselves (doc/design/page.md)
 *
 * A rank listens at RUNDIR/page-RANK if it owns a generator and has a socket of its own. It makes the page at the first
 * request.
 */
#ifndef FLUID_SERVICE_PAGE_H
#define FLUID_SERVICE_PAGE_H

#include <idtree/handle.h>

struct page_door;
struct service;

/* Listen, if fluid.attach allows it. Returns 0, with '*door' NULL if this rank offers no page, or -1 with errno set and
 * a sentence in 'errp'.
 */
int page_door_open (struct service *sv, struct page_door **door, idt_error_t *errp);

/* Write the present terms into the page. */
void page_door_publish (struct page_door *door);

/* Stop listening. The page stays until page_door_destroy (). */
void page_door_shut (struct page_door *door);
void page_door_destroy (struct page_door *door); /* after node_stop (); NULL is fine */

/* Return how many processes were given the page. */
uint64_t page_door_given (const struct page_door *door);

#endif /* FLUID_SERVICE_PAGE_H */
