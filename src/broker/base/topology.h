/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* topology.h - who is whose parent: arithmetic on ranks, no table of them
 *
 * The tree is complete: rank 0 is the root, the children of rank r are k*r+1 ... k*r+k, as far as the size goes.
 * Every function is O(depth) or better.  Ranks given must be below the size.
 */
#ifndef BROKER_TOPOLOGY_H
#define BROKER_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/error.h>

#define TOPO_NONE UINT32_MAX
#define TOPO_DEFAULT "kary:32"
#define TOPO_MAX_FANOUT 1048576

struct topo {
    uint32_t size;
    uint32_t k; /* children of a rank, at most */
};

/* Read 'uri' ("kary:K") for 'size' (>= 1) brokers.  Returns 0, or -1 with errno EINVAL and 'errp' filled. */
int topo_parse (struct topo *t, const char *uri, uint32_t size, idt_error_t *errp);

uint32_t topo_parent (const struct topo *t, uint32_t rank);            /* TOPO_NONE: the root */
uint32_t topo_child_count (const struct topo *t, uint32_t rank);       /* 0 ... k */
uint32_t topo_child (const struct topo *t, uint32_t rank, uint32_t i); /* i < topo_child_count () */
uint32_t topo_level (const struct topo *t, uint32_t rank);             /* root: 0 */
uint32_t topo_subtree_size (const struct topo *t, uint32_t rank);      /* with the rank itself */

/* The child of 'rank' in whose subtree 'to' lies (maybe 'to' itself).  TOPO_NONE: 'to' is not below 'rank'. */
uint32_t topo_child_toward (const struct topo *t, uint32_t rank, uint32_t to);

#endif /* BROKER_TOPOLOGY_H */
