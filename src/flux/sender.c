/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sender.c - determines the sender of a request in Flux; knows the subtree of this broker in Flux's tree, and the UUIDs
 * of the broker's children
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flux/sender.h"
#include "libutil/errprintf.h"

#define HOPS_BESIDE 2 /* number of routes of a request from a module of this broker */
#define HOPS_CHILD 3  /* number of routes of a request from a module of a child broker */
#define NOBODY UINT32_MAX

/* The ranks below this broker: the tree is stored as the parent of each rank. A child has at most one UUID, so there
 * are at most as many UUIDs as children.
 */
struct flux_children {
    uint32_t rank;
    uint32_t size;
    uint32_t *parent;   /* index: rank; NOBODY: the rank is not in the subtree */
    const char **names; /* index: rank of a child; the child's key in 'ranks'; NULL: not known */
    json_t *ranks;      /* ranks of children; the key is the UUID */
};

/* --- the tree ------------------------------------------------------------------------------------- */

static int add_below (struct flux_children *c, const json_t *topology)
{
    const json_t *below = json_object_get (topology, "children"), *child;
    json_int_t rank = json_integer_value (json_object_get (topology, "rank"));
    size_t i;

    json_array_foreach (below, i, child) {
        json_int_t number = -1;

        /* Accept each rank only once, because the loop might not end otherwise. */
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
    assert (strcmp (c->names[rank], uuid) == 0);
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

/* --- senders ------------------------------------------------------------------------------------- */

static bool has_role (const idt_msg_t *request, uint32_t role)
{
    return idt_msg_cred (request).rolemask & role;
}

bool sender_may_be_child (const idt_msg_t *request, const char **uuid)
{
    if (idt_msg_route_count (request) != HOPS_CHILD || has_role (request, IDT_ROLE_LOCAL)
        || !has_role (request, IDT_ROLE_OWNER))
        return false;
    *uuid = idt_msg_route_at (request, 1);
    return true;
}

static bool is_broker (const idt_msg_t *request, const struct flux_children *below)
{
    const char *uuid;
    uint32_t rank;

    if (has_role (request, IDT_ROLE_LOCAL))
        return idt_msg_route_count (request) == HOPS_BESIDE && has_role (request, IDT_ROLE_OWNER);
    return sender_may_be_child (request, &uuid) && flux_children_find (below, uuid, &rank);
}

/* Return the route of the client, module or child that passed the request to this broker. Requests of the broker itself
 * have only the broker's route.
 */
static const char *requester (const idt_msg_t *request)
{
    if (has_role (request, IDT_ROLE_LOCAL) || idt_msg_route_count (request) < 2)
        return idt_msg_route_oldest (request);
    return idt_msg_route_at (request, 1);
}

int sender_mark (idt_msg_t *request, const struct flux_children *below)
{
    struct idt_cred cred = idt_msg_cred (request);
    bool broker = is_broker (request, below);
    char uuid[IDT_MSG_UUID_LEN + 1];

    cred.rolemask &= IDT_ROLE_ALL;
    if (broker)
        cred.rolemask |= IDT_ROLE_BROKER;
    idt_msg_set_cred (request, cred);
    if (idt_msg_route_count (request) == 0)
        return 0;
    snprintf (uuid, sizeof (uuid), "%s", requester (request));
    idt_msg_route_pop (request);
    return idt_msg_route_push (request, uuid);
}

bool sender_covers (const idt_msg_t *request, const struct flux_children *below, uint32_t own, uint32_t rank)
{
    if (!has_role (request, IDT_ROLE_BROKER))
        return false;
    if (has_role (request, IDT_ROLE_LOCAL))
        return rank == own;
    return flux_children_covers (below, idt_msg_route_newest (request), rank);
}
