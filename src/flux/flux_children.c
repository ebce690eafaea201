/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flux_children.c - the subtree of this broker in Flux's tree, and the UUIDs of its children
 *
 * The tree is stored as the parent of each rank. A child has at most one UUID, so there are at most as many UUIDs as
 * children.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flux/flux_children.h"
#include "libutil/errprintf.h"

#define NOBODY UINT32_MAX

struct flux_children {
    uint32_t rank;
    uint32_t size;
    uint32_t *parent;   /* by rank; NOBODY: it is not in our subtree */
    const char **names; /* by rank of a child: its key in 'ranks'; NULL: not known */
    json_t *ranks;      /* by UUID */
};

/* --- the tree ------------------------------------------------------------------------------------- */

static int add_below (struct flux_children *c, const json_t *topology)
{
    const json_t *below = json_object_get (topology, "children"), *child;
    json_int_t rank = json_integer_value (json_object_get (topology, "rank"));
    size_t i;

    json_array_foreach (below, i, child) {
        json_int_t number = -1;

        /* Accept each rank once; otherwise the loop might not end. */
        if (json_unpack ((json_t *)child, "{s:I}", "rank", &number) < 0 || number < 0 || number >= c->size
            || number == c->rank || c->parent[number] != NOBODY)
            return errset (EPROTO);
        c->parent[number] = (uint32_t)rank;
        if (add_below (c, child) < 0)
            return -1;
    }
    return 0;
}

bool flux_children_has (const struct flux_children *c, uint32_t rank)
{
    return rank < c->size && c->parent[rank] == c->rank;
}

/* --- the UUIDs of children ------------------------------------------------------------------------ */

int flux_children_add (struct flux_children *c, uint32_t rank, const char *uuid)
{
    void *entry;

    if (!flux_children_has (c, rank))
        return errset (EINVAL);
    if (c->names[rank])
        json_object_del (c->ranks, c->names[rank]);
    c->names[rank] = NULL;
    if (json_object_set_new (c->ranks, uuid, json_integer (rank)) < 0
        || !(entry = json_object_iter_at (c->ranks, uuid)))
        return errset (ENOMEM);
    c->names[rank] = json_object_iter_key (entry);
    return 0;
}

bool flux_children_find (const struct flux_children *c, const char *uuid, uint32_t *rank)
{
    const json_t *number = uuid ? json_object_get (c->ranks, uuid) : NULL;

    if (number)
        *rank = (uint32_t)json_integer_value (number);
    return number != NULL;
}

bool flux_children_covers (const struct flux_children *c, const char *uuid, uint32_t rank)
{
    uint32_t child;

    if (rank >= c->size || !flux_children_find (c, uuid, &child))
        return false;
    while (rank != child && rank != NOBODY)
        rank = rank == c->rank ? NOBODY : c->parent[rank];
    return rank == child;
}

/* --- create and destroy ----------------------------------------------------------------------------- */

void flux_children_destroy (struct flux_children *c)
{
    if (!c)
        return;
    int saved = errno;
    json_decref (c->ranks);
    free (c->names);
    free (c->parent);
    free (c);
    errno = saved;
}

struct flux_children *flux_children_create (const json_t *topology, uint32_t size, idt_error_t *errp)
{
    struct flux_children *c = calloc (1, sizeof (*c));
    json_int_t rank = -1;

    if (!c || !(c->parent = malloc (size * sizeof (c->parent[0]))) || !(c->names = calloc (size, sizeof (c->names[0])))
        || !(c->ranks = json_object ())) {
        flux_children_destroy (c);
        errsetf (errp, ENOMEM, "out of memory");
        return NULL;
    }
    memset (c->parent, 0xff, size * sizeof (c->parent[0]));
    c->size = size;
    if (json_unpack ((json_t *)topology, "{s:I}", "rank", &rank) == 0 && rank >= 0 && rank < size) {
        c->rank = (uint32_t)rank;
        if (add_below (c, topology) == 0)
            return c;
    }
    flux_children_destroy (c);
    errsetf (errp, EPROTO, "the answer to overlay.topology is not a tree of %u ranks", (unsigned)size);
    return NULL;
}
