/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sender.c - determines the sender of a request in Flux */
#include <stdio.h>

#include "flux/sender.h"

#define HOPS_BESIDE 2 /* routes of a request from a module of this broker */
#define HOPS_CHILD 3  /* ... from a module of a child broker */

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

/* The route at which a request came in: a client, a module or a child. This broker's own requests have only its own
 * route.
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
