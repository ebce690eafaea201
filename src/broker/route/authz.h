/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* authz.h - which local users may connect, and in which role (doc/design/access.md); part of the core, it does no I/O
 */
#ifndef BROKER_AUTHZ_H
#define BROKER_AUTHZ_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <idtree/error.h>
#include <idtree/msg.h>

#include "broker/base/attr.h"

struct authz {
    uid_t owner;
    bool guests;    /* access.allow-guest-user */
    bool root;      /* access.allow-root-owner */
    bool has_group; /* access.group */
    gid_t group;
};

/* Read the attributes; the user of this process is the instance owner.  Returns 0, or -1 with errno set and 'errp'
 * filled.
 */
int authz_init (struct authz *a, struct attrs *attrs, idt_error_t *errp);

/* Store in '*cred' the user id and the roles of a process that has user 'uid' and these groups.  Returns 0, or -1 with
 * errno EPERM if this user may not connect ('*cred' stays untouched).
 */
int authz_user (const struct authz *a, uid_t uid, const gid_t *gid, size_t ngids, struct idt_cred *cred);

/* The permissions of the socket that lets these users connect, and of the folder that contains it. */
mode_t authz_socket_mode (const struct authz *a);
mode_t authz_folder_mode (const struct authz *a);

#endif /* BROKER_AUTHZ_H */
