/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* cluster.h - the hosts of a configured instance, as the attributes cluster.* list them; a thinking part
 *
 * The file is the same on all hosts.  A rank is a place in cluster.hosts: whoever replaces a host writes another name
 * into its place.
 *
 *     cluster.hosts        the hosts in order of rank (hostlist.h), each with a port of its own behind a colon, or
 *     without cluster.port         of those without (8060); a number of IPv6 is in brackets where a port follows
 *     cluster.address      where others reach a host: %h stands for its name (%h)
 *     cluster.interface    where a host listens: the name of an interface, or an address (*: all)
 *     cluster.certificate  the file that idtree keygen made
 *     cluster.quorum       how many must have joined before the instance counts as begun (quorum.h)
 */
#ifndef BROKER_CLUSTER_H
#define BROKER_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/base/attr.h"

#define CLUSTER_ADDRESS "%h" /* cluster.address, where nobody gives it */

struct cluster;

/* Whether the attributes describe one: cluster.hosts is given.  NULL: they do not. */
bool cluster_is_given (struct attrs *attrs);

/* The attributes exist, for whoever lists them.  Returns 0, or -1 as attr_define (). */
int cluster_define (struct attrs *attrs, idt_error_t *errp);

/* Read them.  NULL with errno set (EINVAL: an attribute is wrong) and 'errp' naming the line of the file. */
struct cluster *cluster_create (struct attrs *attrs, idt_error_t *errp);
void cluster_destroy (struct cluster *c); /* NULL is fine */

/* The rank that host 'name' has, in whatever case: the one whose name it is; else, where one of both names has no
 * domain, the one whose name is the same without it.  Returns 0, or -1 with errno EINVAL and 'errp' filled: no host has
 * it, or several have.
 */
int cluster_find (const struct cluster *c, const char *name, uint32_t *rank, idt_error_t *errp);

/* Whether two names are spellings of one: upper case, or without the domain that only the other one has. */
bool cluster_is_same_name (const char *a, const char *b);

uint32_t cluster_size (const struct cluster *c);
const char *cluster_host (const struct cluster *c, uint32_t rank); /* borrowed */
uint16_t cluster_port (const struct cluster *c, uint32_t rank);
const char *cluster_interface (const struct cluster *c);   /* borrowed */
const char *cluster_certificate (const struct cluster *c); /* borrowed: a path */

/* Where others reach a rank.  Returns 0, or -1 with errno ENAMETOOLONG: never where 'size' is at least
 * CLUSTER_ENDPOINT_SIZE.
 */
#define CLUSTER_ENDPOINT_SIZE 256
int cluster_endpoint (const struct cluster *c, uint32_t rank, char *buf, size_t size);

#endif /* BROKER_CLUSTER_H */
