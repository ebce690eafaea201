/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* hostlist.h - the host of each rank, in order, kept as runs of names: node1 to node9000 take as much as one name
 *
 * A run is names with consecutive numbers at their end, of one width where they begin with 0, or the same name again and
 * again.
 */
#ifndef BROKER_HOSTLIST_H
#define BROKER_HOSTLIST_H

#include <stdint.h>

struct hostlist;

struct hostlist *hostlist_create (void); /* NULL with errno ENOMEM */
void hostlist_destroy (struct hostlist *hl);

/* The next 'count' ranks are on host 'name', without commas or brackets.  Returns 0, or -1 with errno ENOMEM. */
int hostlist_append (struct hostlist *hl, const char *name, uint32_t count);

/* As RFC 29 writes it: "login,node[1-3,7]", a name that comes again as often as it comes.  Free it; NULL with errno ENOMEM. */
char *hostlist_text (const struct hostlist *hl);

#endif /* BROKER_HOSTLIST_H */
