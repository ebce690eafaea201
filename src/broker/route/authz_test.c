/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* authz_test.c - the role of each kind of user under every setting */
#include <errno.h>
#include <grp.h>
#include <string.h>
#include <unistd.h>

#include "broker/route/usock.h"
#include "test/tap.h"

#define OWNER 1000
#define GUEST 1001
#define GROUP 2000

enum { NOBODY = 0 }; /* the user has no role, and is refused */

static uint32_t roles (struct authz *a, uid_t uid, gid_t gid)
{
    const gid_t gids[] = { 3000, gid };
    struct idt_cred cred = { 77, 77 };

    if (authz_user (a, uid, gids, 2, &cred) < 0)
        return errno == EPERM && cred.userid == 77 && cred.rolemask == 77 ? NOBODY : 0xffff;
    return cred.userid == uid ? cred.rolemask & ~(uint32_t)IDT_ROLE_LOCAL : 0xffff;
}

/* All settings are tested with all kinds of users. The expected role is computed from the rules. */
static void test_rules (void)
{
    const uint32_t owner = IDT_ROLE_OWNER, member = IDT_ROLE_USER | IDT_ROLE_GROUP, guest = IDT_ROLE_USER;
    bool good = true;

    for (int i = 0; i < 8; i++) {
        struct authz a = { OWNER, i & 1, i & 2, i & 4, GROUP };
        uint32_t stranger = a.guests ? guest : NOBODY, in_group = a.has_group ? member : stranger;

        good = good && roles (&a, OWNER, 0) == owner && roles (&a, OWNER, GROUP) == owner;
        good = good && roles (&a, 0, 0) == (a.root ? owner : stranger);
        good = good && roles (&a, 0, GROUP) == (a.root ? owner : in_group);
        good = good && roles (&a, GUEST, 0) == stranger && roles (&a, GUEST, GROUP) == in_group;
        good = good && authz_socket_mode (&a) == (a.guests ? 0666 : a.has_group ? 0660 : 0600);
        good = good && authz_folder_mode (&a) == (a.guests || a.has_group ? 0711 : 0700);
    }
    ok (good, "the owner has role owner; a setting decides whether root, group members and guests are accepted");
    struct authz a = { OWNER, .has_group = true, .group = 0 };
    ok (authz_user (&a, GUEST, NULL, 0, &(struct idt_cred){ 0 }) < 0,
        "without an access.group no user is a group member");
}

static void check_refused (const char *name, const char *value)
{
    struct attrs *attrs = attrs_create ();
    idt_error_t err = { "" };
    struct authz a;

    attr_give (attrs, name, value, NULL);
    ok (authz_init (&a, attrs, &err) < 0 && errno == EINVAL && strstr (err.text, name) && strstr (err.text, value),
        "an invalid attribute for access is refused: %s", err.text);
    attrs_destroy (attrs);
}

static void test_attributes (void)
{
    struct attrs *attrs = attrs_create ();
    struct group entry, *first = NULL;
    const gid_t any = getegid ();
    char buf[4096];
    struct authz a;

    if (getgrgid_r (any, &entry, buf, sizeof (buf), &first) != 0)
        first = NULL;
    ok (authz_init (&a, attrs, NULL) == 0 && a.owner == geteuid () && !a.guests && !a.root && !a.has_group,
        "by default only the owner is accepted");
    attrs_destroy (attrs);
    attrs = attrs_create ();
    attr_give (attrs, "access.allow-guest-user", "on", NULL);
    attr_give (attrs, "access.allow-root-owner", "on", NULL);
    attr_give (attrs, "access.group", "4000000000", NULL);
    ok (authz_init (&a, attrs, NULL) == 0 && a.guests && a.root && a.has_group && a.group == 4000000000,
        "access.group may be a number");
    attrs_destroy (attrs);
    attrs = attrs_create ();
    if (first) {
        attr_give (attrs, "access.group", first->gr_name, NULL);
        ok (authz_init (&a, attrs, NULL) == 0 && a.has_group && a.group == any, "access.group may be a name");
    }
    else
        skip ("access.group may be a name", "the group of this process has no name");
    attrs_destroy (attrs);
    check_refused ("access.group", "no-such-group-here");
    check_refused ("access.group", "4294967295");
    check_refused ("access.allow-guest-user", "maybe");
    check_refused ("access.allow-root-owner", "2");
}

int main (void)
{
    test_rules ();
    test_attributes ();
    return done_testing ();
}
