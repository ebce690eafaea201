/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* authz.c - which local users may connect, and in which role
 *
 * The permissions of the socket exclude most users who may not connect.  For the others the kernel reports the user and
 * the groups of the connecting process.
 */
#include "config.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/route/authz.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"

#define NAMES_SIZE 65536

/* 's' is the name or the number of a group; "" means no group. */
static int get_group (struct authz *a, struct attrs *attrs, const char *s, idt_error_t *errp)
{
    struct group entry, *found = NULL;
    char buf[NAMES_SIZE]; /* has room for the group's members */
    uint64_t number;

    a->has_group = *s != '\0';
    if (!a->has_group)
        return 0;
    if (parse_number (s, 0, UINT32_MAX - 1, &number) == 0)
        a->group = (gid_t)number;
    else if (getgrnam_r (s, &entry, buf, sizeof (buf), &found) == 0 && found)
        a->group = found->gr_gid;
    else
        return attr_fault (attrs, "access.group", errp,
                           "there is no such group on this host: make it, or name another");
    return 0;
}

int authz_init (struct authz *a, struct attrs *attrs, idt_error_t *errp)
{
    const char *group = attr_default (attrs, "access.group", "", errp);

    *a = (struct authz){ .owner = geteuid () };
    if (!group || get_group (a, attrs, group, errp) < 0
        || attr_switch (attrs, "access.allow-guest-user", "false", &a->guests, errp) < 0
        || attr_switch (attrs, "access.allow-root-owner", "false", &a->root, errp) < 0)
        return -1;
    return 0;
}

static bool is_member (const struct authz *a, const gid_t *gid, size_t ngids)
{
    for (size_t i = 0; a->has_group && i < ngids; i++)
        if (gid[i] == a->group)
            return true;
    return false;
}

int authz_user (const struct authz *a, uid_t uid, const gid_t *gid, size_t ngids, struct idt_cred *cred)
{
    uint32_t roles = IDT_ROLE_LOCAL;

    if (uid == a->owner || (uid == 0 && a->root))
        roles |= IDT_ROLE_OWNER;
    else if (is_member (a, gid, ngids))
        roles |= IDT_ROLE_USER | IDT_ROLE_GROUP;
    else if (a->guests)
        roles |= IDT_ROLE_USER;
    else
        return errset (EPERM);
    *cred = (struct idt_cred){ uid, roles };
    return 0;
}

mode_t authz_socket_mode (const struct authz *a)
{
    return a->guests ? 0666 : a->has_group ? 0660 : 0600;
}

mode_t authz_folder_mode (const struct authz *a)
{
    return a->guests || a->has_group ? 0711 : 0700;
}
