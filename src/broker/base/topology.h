/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* topology.h - the parent of each rank
 *
 * Rank 0 is the root. The shapes have the names that Flux gives them, and are the same trees:
 *
 *     kary:K       complete: the children of rank r are K*r+1 ... K*r+K
 *     mincrit[:K]  two levels below rank 0: ranks 1 ... K are routers, and the others are assigned to them in turn.
 *                  K 0: no routers, all ranks are children of rank 0. Without K: 0 if these are at most
 *                  TOPO_MINCRIT_FANOUT ranks, else the smallest K >= 2 with which no router has more children
 *     binomial     the parent of a rank is that rank without its lowest bit
 *     custom:FILE  only in idtree: a JSON list of parents; entry i is the parent of rank i, null for rank 0 alone; a
 *                  parent may have a higher number than its child
 *
 * A tree may have at most TOPO_LEVELS levels below rank 0: kary:1 with more ranks is refused, and so is a file with
 * more levels.
 *
 * For all shapes but custom, parents and children are computed, without a table. custom has a table of 8 bytes for each
 * rank, made once from the file. A topology does not change between topo_create () and topo_destroy (), so any number
 * of brokers and threads may use one. Ranks passed in must be below the size.
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
#define TOPO_CUSTOM_BYTES 16777216 /* largest number of bytes of a custom file */
#define TOPO_LEVELS 512            /* a level nests two JSON values in overlay.topology; readers stop at 2048 */
#define TOPO_NAME_SIZE 32          /* bytes, including the final NUL */

struct topo_kind;

struct topo {
    uint32_t size;
    /* Brokers of one size have the same tree if this name is the same. The name has no commas and no blanks. */
    char name[TOPO_NAME_SIZE];
    /* used by topology.c only */
    const struct topo_kind *kind;
    uint32_t k;          /* largest number of children: kary: of a rank, mincrit: of rank 0 */
    uint32_t deepest;    /* a rank of the lowest level */
    uint32_t *parents;   /* custom: the parent of each rank; NULL: another shape, which numbers parents first */
    uint32_t *by_parent; /* custom: all ranks except 0, in order of parent, then of rank */
};

/* Parse 'uri' for 'size' (>= 1) brokers. NULL with errno set and 'errp' filled: EINVAL (not a topology), ENOMEM, or the
 * error of reading the file.
 */
struct topo *topo_create (const char *uri, uint32_t size, idt_error_t *errp);
void topo_destroy (struct topo *t);

uint32_t topo_parent (const struct topo *t, uint32_t rank); /* TOPO_NONE for the root */
uint32_t topo_child_count (const struct topo *t, uint32_t rank);
uint32_t topo_child (const struct topo *t, uint32_t rank, uint32_t i); /* 'i' < topo_child_count (), ascending */
uint32_t topo_level (const struct topo *t, uint32_t rank);             /* 0 for the root */
uint32_t topo_maxlevel (const struct topo *t);

/* Find the child of 'rank' whose subtree contains 'to'; this may be 'to' itself. TOPO_NONE: 'to' is not below 'rank'.
 */
uint32_t topo_child_toward (const struct topo *t, uint32_t rank, uint32_t to);

#endif /* BROKER_TOPOLOGY_H */
