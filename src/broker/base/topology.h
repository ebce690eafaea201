/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* topology.h - the parent of each rank
 *
 * Rank 0 is the root. The shapes have the names that Flux gives them, and are the same trees:
 *
 *     kary:K       complete: the children of rank r are K*r+1 ... K*r+K
 *     mincrit[:K]  two levels below rank 0: ranks 1 ... K are routers, and the others are assigned to them in turn.
 *                  K 0: no routers, all are rank 0's children; no K: 0 if TOPO_MINCRIT_FANOUT children are enough, else
 *                  the smallest number from 2 on such that no router has more
 *     binomial     the parent of a rank is that rank without its lowest bit
 *     custom:FILE  only in idtree: a JSON list of parents, rank i's at index i, null for rank 0 alone; a parent may be
 *                  above its child in number
 *
 * A tree may have at most TOPO_LEVELS levels below rank 0: kary:1 with more ranks is refused, and so is a deeper file.
 *
 * All shapes but custom are arithmetic on ranks, without a table; custom has a table of 8 bytes a rank, made once from
 * the file. A topology does not change from topo_create () to topo_destroy (): any number of brokers and threads may
 * use one. Ranks passed in must be below the size.
 *
 *                    kary        mincrit  binomial              custom
 *     create         O(1)        O(1)     O(1)                  O(size), and temporarily the memory of the JSON
 *     parent         O(1)        O(1)     O(1)                  O(1)
 *     child_count    O(1)        O(1)     O(1)                  O(log size)
 *     child          O(1)        O(1)     O(1)                  O(log size)
 *     level, toward  O(level)    O(1)     O(level), at most 32  O(level), at most TOPO_LEVELS
 */
#ifndef BROKER_TOPOLOGY_H
#define BROKER_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/error.h>

#define TOPO_NONE UINT32_MAX
#define TOPO_DEFAULT "kary:32"
#define TOPO_MAX_FANOUT 1048576
#define TOPO_MINCRIT_FANOUT 1024
#define TOPO_CUSTOM_BYTES 16777216 /* largest custom file */
#define TOPO_LEVELS 512            /* overlay.topology nests two JSON values a level; readers stop at 2048 */
#define TOPO_NAME_SIZE 32          /* with the final NUL */

struct topo_kind;

struct topo {
    uint32_t size;
    /* Brokers of one size with the same name have the same tree. Without commas or blanks. */
    char name[TOPO_NAME_SIZE];
    /* used by topology.c only */
    const struct topo_kind *kind;
    uint32_t k;          /* largest number of children: kary: of a rank, mincrit: of rank 0 */
    uint32_t deepest;    /* a rank of the lowest level */
    uint32_t *parents;   /* custom: of each rank; NULL: another shape, where a parent is below its children in number */
    uint32_t *by_parent; /* custom: all ranks except 0, in order of parent, then of rank */
};

/* Parse 'uri' for 'size' (>= 1) brokers. NULL with errno set and 'errp' filled: EINVAL (not a topology), ENOMEM, or the
 * error of reading the file.
 */
struct topo *topo_create (const char *uri, uint32_t size, idt_error_t *errp);
void topo_destroy (struct topo *t);

uint32_t topo_parent (const struct topo *t, uint32_t rank); /* TOPO_NONE for the root */
uint32_t topo_child_count (const struct topo *t, uint32_t rank);
uint32_t topo_child (const struct topo *t, uint32_t rank, uint32_t i); /* i < topo_child_count (); ascending */
uint32_t topo_level (const struct topo *t, uint32_t rank);             /* root: 0 */
uint32_t topo_maxlevel (const struct topo *t);

/* The child of 'rank' whose subtree contains 'to' (may be 'to' itself). TOPO_NONE: 'to' is not below 'rank'. */
uint32_t topo_child_toward (const struct topo *t, uint32_t rank, uint32_t to);

#endif /* BROKER_TOPOLOGY_H */
