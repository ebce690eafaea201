/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* cluster.h - the hosts of a configured instance, as the attributes cluster.* list them
 *
 * The file is the same on all hosts. The rank of a host is its position in cluster.hosts: to replace a host, write the
 * new name in the same position.
 *
 *     cluster.hosts        the hosts in order of rank (hostlist.h); a port may follow after a colon; an IPv6 address
 *                          with a port is in brackets
 *     cluster.port         the port of hosts without one (8060)
 *     cluster.address      the address by which other hosts reach a host; %h in it stands for the host's name (%h)
 *     cluster.interface    where a host listens: the name of an interface, or an address (*: all)
 *     cluster.certificate  the file that idtree keygen made
 *     cluster.quorum       how many brokers must join before the instance counts as started (quorum.h)
 */
#ifndef BROKER_CLUSTER_H
#define BROKER_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/base/attr.h"

#define CLUSTER_ADDRESS "%h" /* default of cluster.address */

/* Whether the attributes describe a configured instance, because cluster.hosts is set. False if 'attrs' is NULL. */
bool cluster_is_given (struct attrs *attrs);

/* Define the attributes, so that they are listed. Returns 0, or -1 with the errno values of attr_define (). */
int cluster_define (struct attrs *attrs, idt_error_t *errp);

/* --- for tests ----------------------------------------------------------------------------------- */

struct cluster_host {
    char *name;
    uint16_t port;
};

struct cluster {
    struct cluster_host *hosts; /* in order of rank */
    uint32_t size, room;
    uint32_t port;
    char *address;
    char *interface;
    char *certificate; /* path of the certificate */
};

/* Read the attributes. NULL with errno set (EINVAL: an attribute is invalid) and 'errp' naming the line of the file. */
struct cluster *cluster_create (struct attrs *attrs, idt_error_t *errp);
void cluster_destroy (struct cluster *c); /* NULL is fine */

/* Find the rank of the host 'name', ignoring case. An entry with the same name is preferred. Otherwise an entry fits if
 * only one of the two names has a domain, and the names are the same without the domain. Returns 0, or -1 with errno
 * EINVAL and 'errp' filled: no entry fits, or several do.
 */
int cluster_find (const struct cluster *c, const char *name, uint32_t *rank, idt_error_t *errp);

/* Whether two names are the same, ignoring case, and ignoring a domain that only one of them has. Two such names mean
 * the same host.
 */
bool cluster_is_same_name (const char *a, const char *b);

/* Get the endpoint at which other hosts reach a rank. Returns 0, or -1 with errno ENAMETOOLONG. If 'size' is at least
 * CLUSTER_ENDPOINT_SIZE this does not fail, because cluster_create () has checked the lengths.
 */
#define CLUSTER_ENDPOINT_SIZE 256
int cluster_endpoint (const struct cluster *c, uint32_t rank, char *buf, size_t size);

#endif /* BROKER_CLUSTER_H */
