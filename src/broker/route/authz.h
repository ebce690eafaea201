/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* authz.h - which local users are let in, and what they are here (doc/design/access.md); a thinking part */
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

/* Read the attributes, for brokers of this user.  Returns 0, or -1 with errno set and 'errp' filled. */
int authz_init (struct authz *a, struct attrs *attrs, idt_error_t *errp);

/* What a process of user 'uid' and of these groups is.  Returns 0, or -1 with errno EPERM. */
int authz_user (const struct authz *a, uid_t uid, const gid_t *gid, size_t ngids, struct idt_cred *cred);

/* The permissions of a socket for those who are let in, and of the folder that it lies in. */
mode_t authz_socket_mode (const struct authz *a);
mode_t authz_folder_mode (const struct authz *a);

#endif /* BROKER_AUTHZ_H */
