/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* access.h - who may send which request, publish which event, and see it: the one table (doc/design/access.md)
 *
 * Whom a message came from is in its credentials, which the broker set where it entered.  A user is the owner, a member
 * of access.group, or a guest; brokers' own modules speak for themselves with IDT_ROLE_BROKER.
 */
#ifndef MSG_ACCESS_H
#define MSG_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/msg.h>

#define ACCESS_OWNER IDT_ROLE_OWNER
#define ACCESS_GROUP (IDT_ROLE_OWNER | IDT_ROLE_GROUP)
#define ACCESS_GUEST (IDT_ROLE_OWNER | IDT_ROLE_GROUP | IDT_ROLE_USER)
#define ACCESS_BROKER IDT_ROLE_BROKER                    /* modules of brokers */
#define ACCESS_BESIDE (IDT_ROLE_BROKER | IDT_ROLE_LOCAL) /* other modules of this one */

/* The roles of which a request of that topic needs one; with IDT_ROLE_BROKER among them, all.  What is not in the table
 * is the owner's.  What every module answers is there by its method alone: "ping".
 */
uint32_t access_roles (const char *topic);

/* Whether that user may publish an event.  Those that services act upon are the owner's: their topic begins
 * with the name of one, or is NAME.stats-clear.
 */
bool access_may_publish (struct idt_cred user, const char *topic);

/* Whether that user may see an event: a private one is for its sender and the owner, and for who may use the service
 * whose it is.
 */
bool access_may_see (struct idt_cred user, const idt_msg_t *event);

/* Neither the owner nor a member of access.group: what he uses has limits of its own. */
static inline bool access_is_guest (struct idt_cred user)
{
    return !(user.rolemask & ACCESS_GROUP);
}

/* Whose share of what all use a message counts for: a user's, over all connections; 0: the owner's or a broker's, which
 * have no such share.
 */
static inline uint64_t access_share (struct idt_cred user)
{
    return user.rolemask & (IDT_ROLE_OWNER | IDT_ROLE_BROKER) ? 0 : UINT64_C (1) + user.userid;
}

/* The rows of the table in order, for who compares it; NULL: there are no more. */
const char *access_topic (size_t i, uint32_t *roles);

#endif /* MSG_ACCESS_H */
