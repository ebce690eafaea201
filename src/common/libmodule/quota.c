/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* quota.c - how much each user holds, and the table of limits
 *
 * An array has an entry for each user, except the instance owner, who holds something. The rule's 'others' bounds its
 * length.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "libmodule/quota.h"
#include "libmsg/access.h"
#include "libutil/errprintf.h"
#include "libutil/minmax.h"

static const struct quota_rule rules[QUOTA_KINDS] = {
    [QUOTA_SUBSCRIPTIONS] = { "subscriptions", QUOTA_NO_LIMIT, 16384, 4096, 64, ENOSPC },
    [QUOTA_FOLLOWERS] = { "followers", 256, 128, 32, 8, ENOSPC },
    [QUOTA_SURVEYS] = { "surveys", 32, 16, 8, 4, EAGAIN },
    [QUOTA_TRACES] = { "traces", 256, 128, 32, 4, EAGAIN },
    [QUOTA_READS] = { "reads", 1024, 512, 128, 16, EAGAIN },
};

const struct quota_rule *quota_rule (enum quota_kind kind)
{
    return &rules[kind];
}

void quota_init (struct quota *q, enum quota_kind kind)
{
    quota_init_by (q, &rules[kind]);
}

void quota_init_by (struct quota *q, const struct quota_rule *rule)
{
    *q = (struct quota){ .rule = rule };
}

void quota_fini (struct quota *q)
{
    int saved = errno;

    free (q->user);
    quota_init_by (q, q->rule);
    errno = saved;
}

static bool is_owner (struct idt_cred user)
{
    return user.rolemask & (IDT_ROLE_OWNER | IDT_ROLE_BROKER);
}

static struct quota_user *find (struct quota *q, uint32_t userid)
{
    for (size_t i = 0; i < q->nusers; i++)
        if (q->user[i].userid == userid)
            return &q->user[i];
    return NULL;
}

static struct quota_user *add (struct quota *q, uint32_t userid)
{
    if (q->nusers == q->room) {
        size_t room = max_u64 (8, 2 * q->room);
        struct quota_user *user = realloc (q->user, room * sizeof (*user));

        if (!user)
            return NULL;
        q->user = user;
        q->room = room;
    }
    q->user[q->nusers] = (struct quota_user){ .userid = userid };
    return &q->user[q->nusers++];
}

static int refuse (const struct quota_rule *r, uint32_t limit, const char *whose, idt_error_t *errp)
{
    return errsetf (errp, r->errnum, "%s: %" PRIu32 " are in use, the limit of %s here: %s", r->name, limit, whose,
                    r->errnum == EAGAIN ? "try again later" : "close some first");
}

/* Whether a user that holds 'count' may have one more. Returns as quota_take (). */
static int check (const struct quota *q, struct idt_cred user, uint32_t count, idt_error_t *errp)
{
    const struct quota_rule *r = q->rule;
    uint32_t own = access_is_guest (user) ? r->guest : r->member;
    char whose[40];

    if (q->total >= r->all)
        return refuse (r, r->all, "all users", errp);
    if (is_owner (user))
        return 0;
    if (count >= own) {
        snprintf (whose, sizeof (whose), "user %" PRIu32, user.userid);
        return refuse (r, own, whose, errp);
    }
    return q->others >= r->others ? refuse (r, r->others, "all users but the owner", errp) : 0;
}

int quota_take (struct quota *q, struct idt_cred user, idt_error_t *errp)
{
    struct quota_user *u = is_owner (user) ? NULL : find (q, user.userid);

    if (check (q, user, u ? u->count : 0, errp) < 0)
        return -1;
    q->total++;
    if (is_owner (user))
        return 0;
    if (!u && !(u = add (q, user.userid))) {
        q->total--;
        return errsetf (errp, ENOMEM, "out of memory");
    }
    u->count++;
    q->others++;
    return 0;
}

void quota_give (struct quota *q, struct idt_cred user)
{
    struct quota_user *u = is_owner (user) ? NULL : find (q, user.userid);

    assert (q->total > 0);
    q->total--;
    if (!u)
        return;
    q->others--;
    if (--u->count == 0)
        *u = q->user[--q->nusers];
}
