/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* hostlist.h - the host of each rank, in order, kept as runs of names: node1 to node9000 take as much as one name
 *
 * A run is names with consecutive numbers at their end, of one width where they begin with 0, or the same name again
 * and again.
 */
#ifndef BROKER_HOSTLIST_H
#define BROKER_HOSTLIST_H

#include <stdint.h>

#include <idtree/error.h>

struct hostlist;

struct hostlist *hostlist_create (void); /* NULL with errno ENOMEM */
void hostlist_destroy (struct hostlist *hl);

/* The next 'count' ranks are on host 'name', without commas or brackets.  Returns 0, or -1 with errno ENOMEM. */
int hostlist_append (struct hostlist *hl, const char *name, uint32_t count);

/* As RFC 29 writes it: "login,node[1-3,7]", a name that comes again as often as it comes.  Free it; NULL with errno
 * ENOMEM.
 */
char *hostlist_text (const struct hostlist *hl);

#define HOSTLIST_MAX 1000000  /* names of a text */
#define HOSTLIST_NAME_MAX 255 /* bytes of each */

/* Call 'cb' for each name of such a text, in order: "login, node[1-3,007-9].cluster" has login, node1.cluster, ...
 * node009.cluster.  A name has one bracket at most; numbers are as wide as the first of their range.  Where 'cb'
 * returns -1 it ends.  Returns 0, or -1 with errno set (EINVAL: the text) and 'errp' filled.
 */
int hostlist_expand (const char *text, int (*cb) (const char *name, void *arg, idt_error_t *errp), void *arg,
                     idt_error_t *errp);

#endif /* BROKER_HOSTLIST_H */
