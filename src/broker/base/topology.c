/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* topology.c - the parent of each rank: the shapes that are arithmetic on ranks, and functions for all shapes */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/base/topology_kind.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"
#include "libutil/minmax.h"

static uint32_t log2_floor (uint32_t n)
{
    return 31 - __builtin_clz (n);
}

/* --- kary --------------------------------------------------------------------------------------------- */

static int read_kary (struct topo *t, const char *arg, idt_error_t *errp)
{
    uint64_t k;

    if (!arg || parse_number (arg, 1, TOPO_MAX_FANOUT, &k) < 0)
        return errsetf (errp, EINVAL, "the fanout must be a number from 1 to %d", TOPO_MAX_FANOUT);
    if (k == 1 && t->size - 1 > TOPO_LEVELS)
        return errsetf (errp, EINVAL,
                        "the last of %u brokers is more than %d levels below rank 0: take kary:2, or more than 2",
                        t->size, TOPO_LEVELS);
    t->k = k;
    t->deepest = t->size - 1;
    snprintf (t->name, sizeof (t->name), "kary:%u", t->k);
    return 0;
}

static uint32_t kary_parent (const struct topo *t, uint32_t rank)
{
    return (rank - 1) / t->k;
}

static uint32_t kary_child_count (const struct topo *t, uint32_t rank)
{
    uint64_t first = (uint64_t)rank * t->k + 1;

    return first >= t->size ? 0 : min_u64 (t->size - first, t->k);
}

static uint32_t kary_child (const struct topo *t, uint32_t rank, uint32_t i)
{
    return rank * t->k + 1 + i;
}

/* --- mincrit ------------------------------------------------------------------------------------------ */

/* The smallest number of routers such that none has more children than its share. Not 1: a single router only adds a
 * hop.
 */
static uint32_t choose_routers (uint32_t size)
{
    uint32_t others = size - 1, share = TOPO_MINCRIT_FANOUT + 1; /* a router and its children */

    return others <= TOPO_MINCRIT_FANOUT ? 0 : max_u64 (2, (others - 1) / share + 1);
}

static int read_mincrit (struct topo *t, const char *arg, idt_error_t *errp)
{
    uint64_t k = choose_routers (t->size);

    if (arg && parse_number (arg, 0, TOPO_MAX_FANOUT, &k) < 0)
        return errsetf (errp, EINVAL, "the routers must be a number from 0 to %d", TOPO_MAX_FANOUT);
    snprintf (t->name, sizeof (t->name), "mincrit:%u", (unsigned)k);
    t->k = k > 0 ? k : t->size; /* all are children of rank 0, and have no children */
    t->deepest = t->size - 1;
    return 0;
}

static uint32_t mincrit_parent (const struct topo *t, uint32_t rank)
{
    return rank <= t->k ? 0 : (rank - 1) % t->k + 1;
}

static uint32_t mincrit_child_count (const struct topo *t, uint32_t rank)
{
    uint32_t last = t->size - 1;

    if (rank == 0)
        return min_u64 (t->k, last);
    return rank <= t->k ? (last - rank) / t->k : 0;
}

static uint32_t mincrit_child (const struct topo *t, uint32_t rank, uint32_t i)
{
    return rank == 0 ? 1 + i : rank + (i + 1) * t->k;
}

/* --- binomial ----------------------------------------------------------------------------------------- */

static int read_binomial (struct topo *t, const char *arg, idt_error_t *errp)
{
    if (arg)
        return errsetf (errp, EINVAL, "nothing may follow 'binomial'");
    snprintf (t->name, sizeof (t->name), "binomial");
    t->deepest = (uint32_t)(1ULL << log2_floor (t->size)) - 1; /* the highest rank whose bits are all 1 */
    return 0;
}

static uint32_t binomial_parent (const struct topo *t, uint32_t rank)
{
    return rank & (rank - 1);
}

/* Each bit below the lowest bit of the rank makes a child, if that child is below the size. */
static uint32_t binomial_child_count (const struct topo *t, uint32_t rank)
{
    uint32_t below = t->size - 1 - rank, bits = rank > 0 ? __builtin_ctz (rank) : 32;

    return below == 0 ? 0 : min_u64 (bits, log2_floor (below) + 1);
}

static uint32_t binomial_child (const struct topo *t, uint32_t rank, uint32_t i)
{
    return rank + ((uint32_t)1 << i);
}

/* --- all ------------------------------------------------------------------------------------------------ */

static const struct topo_kind kary = { "kary", read_kary, kary_parent, kary_child_count, kary_child };
static const struct topo_kind mincrit = { "mincrit", read_mincrit, mincrit_parent, mincrit_child_count, mincrit_child };
static const struct topo_kind binomial = { "binomial", read_binomial, binomial_parent, binomial_child_count,
                                           binomial_child };

static const struct topo_kind *const kinds[] = { &kary, &mincrit, &binomial, &topo_custom };

static const struct topo_kind *find_kind (const char *uri)
{
    size_t len = strcspn (uri, ":");

    for (size_t i = 0; i < sizeof (kinds) / sizeof (kinds[0]); i++)
        if (strlen (kinds[i]->name) == len && strncmp (uri, kinds[i]->name, len) == 0)
            return kinds[i];
    return NULL;
}

static int read_uri (struct topo *t, const char *uri, idt_error_t *errp)
{
    const char *colon = strchr (uri, ':');
    idt_error_t err = { "unknown: use kary:K (as in kary:32), mincrit, mincrit:K, binomial or custom:FILE" };

    errno = EINVAL;
    if (!(t->kind = find_kind (uri)) || t->kind->read (t, colon ? colon + 1 : NULL, &err) < 0)
        return errprintf (errp, "topology '%.80s': %s", uri,
                          err.text); /* limits the URI, so that a long path does not cut off the reason */
    return 0;
}

struct topo *topo_create (const char *uri, uint32_t size, idt_error_t *errp)
{
    struct topo *t = calloc (1, sizeof (*t));

    if (!t) {
        errprintf (errp, "out of memory");
        return NULL;
    }
    t->size = size;
    if (read_uri (t, uri, errp) < 0) {
        topo_destroy (t);
        return NULL;
    }
    return t;
}

void topo_destroy (struct topo *t)
{
    int saved_errno = errno;

    if (t) {
        free (t->parents);
        free (t->by_parent);
    }
    free (t);
    errno = saved_errno;
}

uint32_t topo_parent (const struct topo *t, uint32_t rank)
{
    return rank == 0 ? TOPO_NONE : t->kind->parent (t, rank);
}

uint32_t topo_child_count (const struct topo *t, uint32_t rank)
{
    return t->kind->child_count (t, rank);
}

uint32_t topo_child (const struct topo *t, uint32_t rank, uint32_t i)
{
    return t->kind->child (t, rank, i);
}

uint32_t topo_level (const struct topo *t, uint32_t rank)
{
    uint32_t level = 0;

    for (; rank > 0; rank = t->kind->parent (t, rank))
        level++;
    return level;
}

uint32_t topo_maxlevel (const struct topo *t)
{
    return topo_level (t, t->deepest);
}

/* If parents are below their children in number, the search ends when it passes 'rank'. */
uint32_t topo_child_toward (const struct topo *t, uint32_t rank, uint32_t to)
{
    uint32_t end = t->parents ? 0 : rank;

    while (to > end) {
        uint32_t parent = t->kind->parent (t, to);

        if (parent == rank)
            return to;
        to = parent;
    }
    return TOPO_NONE;
}
