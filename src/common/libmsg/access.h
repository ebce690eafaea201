/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* access.h - the table of access: who may send which request, publish which event, and see it (doc/design/access.md)
 *
 * The credentials of a message identify its sender. The broker at which the message entered has set them. A user is the
 * instance owner, a member of access.group, or a guest. Requests that the brokers' own modules send have
 * IDT_ROLE_BROKER.
 */
#ifndef MSG_ACCESS_H
#define MSG_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/msg.h>

#define ACCESS_OWNER IDT_ROLE_OWNER
#define ACCESS_GROUP (IDT_ROLE_OWNER | IDT_ROLE_GROUP)
#define ACCESS_GUEST (IDT_ROLE_OWNER | IDT_ROLE_GROUP | IDT_ROLE_USER)
#define ACCESS_BROKER IDT_ROLE_BROKER                    /* for modules of brokers */
#define ACCESS_BESIDE (IDT_ROLE_BROKER | IDT_ROLE_LOCAL) /* for other modules of the same broker */

/* The roles that permit a request with this topic. The sender needs one of them. Exception: if IDT_ROLE_BROKER is among
 * them, the sender needs this role, and one of the other roles if there are any. A topic that is not in the table is
 * for the owner only. Methods that every module has are in the table without a module's name, such as "ping".
 */
uint32_t access_roles (const char *topic);

/* Whether a user may publish an event. Only the owner may publish events that services act upon: their topic begins
 * with the name of a service and a dot, or is NAME.stats-clear.
 */
bool access_may_publish (struct idt_cred user, const char *topic);

/* Whether a user may see an event. A private event is for its sender and the owner. A private event of a document is
 * also for the users who may open documents.
 */
bool access_may_see (struct idt_cred user, const idt_msg_t *event);

/* Whether a user is neither the owner nor a member of access.group. The use of resources by a guest has limits of its
 * own.
 */
static inline bool access_is_guest (struct idt_cred user)
{
    return !(user.rolemask & ACCESS_GROUP);
}

/* The key under which a message counts against a user's share of common resources, over all connections of the user.
 * The owner and brokers have no such share: the key is 0.
 */
static inline uint64_t access_share (struct idt_cred user)
{
    return user.rolemask & (IDT_ROLE_OWNER | IDT_ROLE_BROKER) ? 0 : UINT64_C (1) + user.userid;
}

/* Row 'i' of the table; NULL: there is no such row. For tests that compare the table. */
const char *access_topic (size_t i, uint32_t *roles);

#endif /* MSG_ACCESS_H */
