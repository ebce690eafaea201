/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* page.h - a rank gives processes of its host the page by which they make ids themselves (doc/design/page.md)
 *
 * RUNDIR/page-RANK is served where the rank owns a generator and has a socket of its own.  The page is made when the
 * first one asks for it.
 */
#ifndef FLUID_SERVICE_PAGE_H
#define FLUID_SERVICE_PAGE_H

#include <idtree/handle.h>

struct page_door;
struct service;

/* Serve it, as fluid.attach says.  Returns 0, with '*door' NULL where this rank serves none, or -1 with errno set and a
 * sentence in 'errp'.
 */
int page_door_open (struct service *sv, struct page_door **door, idt_error_t *errp);

/* Say in the page what is so now. */
void page_door_publish (struct page_door *door);

/* Serve it no more; the page is there until the end. */
void page_door_shut (struct page_door *door);
void page_door_destroy (struct page_door *door); /* after node_stop (); NULL is fine */

/* How often the page was given away. */
uint64_t page_door_given (const struct page_door *door);

#endif /* FLUID_SERVICE_PAGE_H */
