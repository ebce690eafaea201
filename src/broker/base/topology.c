/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* topology.c - who is whose parent: arithmetic on ranks, no table of them */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "broker/base/topology.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"

int topo_parse (struct topo *t, const char *uri, uint32_t size, idt_error_t *errp)
{
    uint64_t k;

    if (strncmp (uri, "kary:", 5) != 0)
        return errsetf (errp, EINVAL, "topology '%s' is unknown: use kary:K, as in kary:32", uri);
    if (parse_number (uri + 5, 1, TOPO_MAX_FANOUT, &k) < 0)
        return errsetf (errp, EINVAL, "topology '%s': the fanout must be a number from 1 to %d", uri, TOPO_MAX_FANOUT);
    *t = (struct topo){ .size = size, .k = (uint32_t)k };
    return 0;
}

uint32_t topo_parent (const struct topo *t, uint32_t rank)
{
    return rank == 0 ? TOPO_NONE : (rank - 1) / t->k;
}

uint32_t topo_child_count (const struct topo *t, uint32_t rank)
{
    uint64_t first = (uint64_t)rank * t->k + 1;

    if (first >= t->size)
        return 0;
    return t->size - first < t->k ? t->size - first : t->k;
}

uint32_t topo_child (const struct topo *t, uint32_t rank, uint32_t i)
{
    return rank * t->k + 1 + i;
}

uint32_t topo_level (const struct topo *t, uint32_t rank)
{
    uint32_t level = 0;

    while (rank > 0) {
        rank = topo_parent (t, rank);
        level++;
    }
    return level;
}

/* Level by level: the descendants of a rank on one level are neighbours. */
uint32_t topo_subtree_size (const struct topo *t, uint32_t rank)
{
    uint64_t first = rank, last = rank;
    uint32_t count = 0;

    while (first < t->size) {
        count += (last < t->size ? last : t->size - 1) - first + 1;
        first = first * t->k + 1;
        last = last * t->k + t->k;
    }
    return count;
}

uint32_t topo_child_toward (const struct topo *t, uint32_t rank, uint32_t to)
{
    while (to > rank) {
        uint32_t parent = topo_parent (t, to);

        if (parent == rank)
            return to;
        to = parent;
    }
    return TOPO_NONE;
}
