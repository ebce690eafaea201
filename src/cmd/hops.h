/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* hops.h - the ranks that a request went through, where a message has UUIDs */
#ifndef CMD_HOPS_H
#define CMD_HOPS_H

#include <stdint.h>

#include <idtree/handle.h>

#define HOPS_TEXT 8192 /* bytes of a way, with its NUL */

struct hops;

/* Of the connection 'h' (borrowed).  NULL: no memory. */
struct hops *hops_create (idt_t *h);
void hops_destroy (struct hops *hops);

/* Write a route (UUIDs or what they begin with, oldest first, with '!' between them; the first is the client's) that
 * ended at 'rank' into 'text' as "0!2!5".  Brokers are asked who they are where a hop is not known yet, and may take
 * some seconds; a hop that nobody knows stays as it is.  Returns 'text'.
 */
const char *hops_text (struct hops *hops, const char *route, uint32_t rank, char text[HOPS_TEXT]);

#endif /* CMD_HOPS_H */
