/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* cluster.h - the hosts of a configured instance, as the attributes cluster.* list them
 *
 * The file is the same on all hosts. The rank of a host is its position in cluster.hosts: to replace a host, write the
 * new name in the same position.
 *
 *     cluster.hosts        the hosts in order of rank (hostlist.h); a port may follow after a colon; an IPv6 address
 *                          with a port is in brackets
 *     cluster.root         the hosts that may be rank 0, if the state is in PostgreSQL: the address of rank 0 is that
 *                          of the host that leads at the moment. The first entry of cluster.hosts is then only the
 *                          name of rank 0. All have one port, which may follow after the last host
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

struct cluster_host {
    char *name;
    uint16_t port;
};

#define CLUSTER_ROOTS_MAX 8

struct cluster {
    struct cluster_host *hosts; /* in order of rank */
    uint32_t size, room;
    char *roots[CLUSTER_ROOTS_MAX]; /* candidates of rank 0; their port is that of rank 0 in 'hosts' */
    uint32_t nroots;                /* 0: cluster.root is not set */
    uint16_t root_port;             /* 0: cluster.root has no port */
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

/* The same in cluster.root. */
int cluster_find_root (const struct cluster *c, const char *name, uint32_t *candidate, idt_error_t *errp);

/* Find this host with 'find': by 'own_host' if it is not NULL; else by its name, or by one of its addresses. Returns 0,
 * or -1 with errno set and 'errp' filled.
 */
typedef int (*cluster_find_f) (const struct cluster *c, const char *name, uint32_t *found, idt_error_t *errp);
int cluster_find_self (const struct cluster *c, cluster_find_f find, const char *own_host, uint32_t *found,
                       idt_error_t *errp);

/* Find the rank of this process from --host and --rank (NULL: not given). For rank 0 also find its position in
 * cluster.root; 0 if that is not set. A host that is only in cluster.root is rank 0. Returns 0, or -1 with errno EINVAL
 * and 'errp' filled.
 */
int cluster_find_place (const struct cluster *c, const char *own_host, const uint32_t *own_rank, uint32_t *rank,
                        uint32_t *candidate, idt_error_t *errp);

/* Whether two names are the same, ignoring case, and ignoring a domain that only one of them has. Two such names mean
 * the same host.
 */
bool cluster_is_same_name (const char *a, const char *b);

/* Get the endpoint at which other hosts reach a rank. That of rank 0 has all hosts of cluster.root, separated by commas
 * (resolver.h). Returns 0, or -1 with errno ENAMETOOLONG. If 'size' is at least CLUSTER_ENDPOINT_SIZE this does not
 * fail, because cluster_create () has checked the lengths.
 */
#define CLUSTER_ENDPOINT_SIZE 256
int cluster_endpoint (const struct cluster *c, uint32_t rank, char *buf, size_t size);

/* Get the endpoint of one candidate of rank 0, in the same way. */
int cluster_root_endpoint (const struct cluster *c, uint32_t candidate, char *buf, size_t size);

#endif /* BROKER_CLUSTER_H */
