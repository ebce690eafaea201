/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* route.c - a message's route stack: the hops it came through, newest first
 *
 * Pushing writes to the slot before routes[0], popping moves past it. When no slot is left the stack moves to the end
 * of an allocation of twice its size.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "libmsg/message.h"

unsigned idt_msg_route_count (const idt_msg_t *msg)
{
    return msg->route_count;
}

const char *idt_msg_route_at (const idt_msg_t *msg, unsigned i)
{
    return i < msg->route_count ? msg->routes[i].uuid : NULL;
}

const char *idt_msg_route_newest (const idt_msg_t *msg)
{
    return idt_msg_route_at (msg, 0);
}

const char *idt_msg_route_oldest (const idt_msg_t *msg)
{
    return msg->route_count > 0 ? msg->routes[msg->route_count - 1].uuid : NULL;
}

static int grow (struct idt_msg *msg)
{
    unsigned slots = msg->route_count > 0 ? 2 * msg->route_count : MSG_ROUTE_ROOM;
    struct msg_route *stack = malloc (slots * sizeof (*stack));

    if (!stack)
        return -1;
    msg->route_room = slots - msg->route_count;
    memcpy (stack + msg->route_room, msg->routes, msg->route_count * sizeof (*stack));
    free (msg->routes_alloc);
    msg->routes_alloc = stack;
    msg->routes = stack + msg->route_room;
    return 0;
}

int idt_msg_route_push (idt_msg_t *msg, const char *uuid)
{
    struct msg_route route; /* a copy, since 'uuid' may be a route of this stack, which may move */

    if (strnlen (uuid, sizeof (route.uuid)) != IDT_MSG_UUID_LEN)
        return errset (EINVAL);
    if (msg->route_count == IDT_MSG_MAX_ROUTES)
        return errset (EOVERFLOW);
    memcpy (route.uuid, uuid, sizeof (route.uuid));
    if (msg->route_room == 0 && grow (msg) < 0)
        return -1;
    *--msg->routes = route;
    msg->route_room--;
    msg->route_count++;
    msg->flags |= IDT_MSGFLAG_ROUTE;
    return 0;
}

void idt_msg_route_pop (idt_msg_t *msg)
{
    if (msg->route_count > 0) {
        msg->routes++;
        msg->route_room++;
        msg->route_count--;
    }
}

void idt_msg_route_drop_oldest (idt_msg_t *msg)
{
    if (msg->route_count > 0)
        msg->route_count--;
}

void idt_msg_route_clear (idt_msg_t *msg)
{
    msg->routes += msg->route_count;
    msg->route_room += msg->route_count;
    msg->route_count = 0;
    msg->flags |= IDT_MSGFLAG_ROUTE;
}
