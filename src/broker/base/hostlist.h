/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* hostlist.h - the host of each rank, in order, stored as runs of names: for node1 to node9000 only one name is stored
 *
 * A run is either the same name repeated, or a sequence of names that end in consecutive numbers. If these numbers are
 * padded with zeros, all have the same width.
 */
#ifndef BROKER_HOSTLIST_H
#define BROKER_HOSTLIST_H

#include <stdint.h>

#include <idtree/error.h>

struct hostlist;

struct hostlist *hostlist_create (void); /* NULL with errno ENOMEM */
void hostlist_destroy (struct hostlist *hl);

/* Add the host 'name' for the next 'count' ranks. 'name' has no commas and no brackets. Returns 0, or -1 with errno
 * ENOMEM.
 */
int hostlist_append (struct hostlist *hl, const char *name, uint32_t count);

/* The list as text (RFC 29): "login,node[1-3,7]"; a name of several ranks is repeated. The caller frees the text. NULL
 * with errno ENOMEM.
 */
char *hostlist_text (const struct hostlist *hl);

#define HOSTLIST_MAX 1000000  /* largest number of names in a text */
#define HOSTLIST_NAME_MAX 255 /* bytes of a name */

/* Call 'cb' for each name of a text of RFC 29, in order: "login, node[1-3,007-9].cluster" has login, node1.cluster, ...
 * node009.cluster. A name has at most one bracket. The numbers of a range have the width of its first number. If 'cb'
 * returns -1, no further name is passed to it. Returns 0, or -1 with errno set (EINVAL: the text is malformed) and
 * 'errp' filled.
 */
int hostlist_expand (const char *text, int (*cb) (const char *name, void *arg, idt_error_t *errp), void *arg,
                     idt_error_t *errp);

#endif /* BROKER_HOSTLIST_H */
