/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* hops.h - convert the route of a message, which has UUIDs, into ranks */
#ifndef CMD_HOPS_H
#define CMD_HOPS_H

#include <stdint.h>

#include <idtree/handle.h>

#define HOPS_TEXT 8192 /* bytes of a route as text, with its NUL */

struct hops;

/* Create for the connection 'h' (borrowed).  NULL: no memory. */
struct hops *hops_create (idt_t *h);
void hops_destroy (struct hops *hops);

/* Write a route that ended at 'rank' into 'text' as "0!2!5".  'route' has UUIDs or prefixes of them, oldest first, with
 * '!' between them; the first is the client's and left out.  Blocks: if a hop is not known yet, brokers are asked for
 * their UUIDs, which may take some seconds.  A hop that remains unknown is copied as it is.  Returns 'text'.
 */
const char *hops_text (struct hops *hops, const char *route, uint32_t rank, char text[HOPS_TEXT]);

#endif /* CMD_HOPS_H */
