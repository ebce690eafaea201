/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* quota.c - how much each user holds, the table of limits, and the ids that guests took
 *
 * The array of a quota has an entry for each user who holds something, except the instance owner. The rule's 'others'
 * bounds its length. A rate limit (the generic cell rate algorithm) has an entry for each guest: the time at which all
 * ids that the guest took are paid for, at access.guest-rate. When that time has passed, the entry is free for another
 * guest.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "libmodule/module.h"
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

/* Whether a user who holds 'count' may have one more. Returns as quota_take (). */
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
    assert (q->others > 0 && u->count > 0);
    q->others--;
    if (--u->count == 0)
        *u = q->user[--q->nusers];
}

/* --- ids ---------------------------------------------------------------------------------------------------------- */

#define SECOND_US UINT64_C (1000000)

struct debt {
    uint32_t userid;
    uint64_t paid_us; /* when the ids are paid for; a time that has passed: the entry is free */
};

struct rate_limit {
    uint32_t rate, block;
    struct debt *debt; /* RATE_LIMIT_USERS entries; NULL until the first guest */
};

struct rate_limit *rate_limit_create (uint32_t rate, uint32_t block)
{
    struct rate_limit *r = calloc (1, sizeof (*r));

    assert (rate > 0 && block > 0);
    if (r) {
        r->rate = rate;
        r->block = block;
    }
    return r;
}

struct rate_limit *rate_limit_configure (idt_t *h, idt_error_t *errp)
{
    uint32_t rate = 0, block = 0;
    struct rate_limit *r;

    if (module_option_number (h, "access.guest-rate", "100000", 1, 1000000000, &rate, errp) < 0
        || module_option_number (h, "access.guest-block", "8192", 1, 65536, &block, errp) < 0)
        return NULL;
    if (!(r = rate_limit_create (rate, block)))
        errprintf (errp, "out of memory");
    return r;
}

void rate_limit_destroy (struct rate_limit *r)
{
    if (r)
        free (r->debt);
    free (r);
}

/* Find the entry of a user, or take a free entry for it. NULL if the user has no entry and all entries are in use. The
 * search does not stop at a free entry, because the user's entry may be behind it.
 */
static struct debt *find_debt (struct rate_limit *r, uint32_t userid, uint64_t now_us)
{
    struct debt *free_place = NULL;

    for (uint32_t i = 0; i < RATE_LIMIT_USERS; i++) {
        struct debt *d = &r->debt[(userid + i) % RATE_LIMIT_USERS];
        if (d->userid == userid && d->paid_us > 0) {
            d->paid_us = max_u64 (d->paid_us, now_us);
            return d;
        }
        if (d->paid_us <= now_us && !free_place)
            free_place = d;
    }
    if (free_place)
        *free_place = (struct debt){ userid, now_us };
    return free_place;
}

static uint64_t cost_us (const struct rate_limit *r, uint32_t count)
{
    return (count * SECOND_US + r->rate - 1) / r->rate;
}

int rate_limit_take (struct rate_limit *r, struct idt_cred user, uint32_t count, uint64_t now_us, idt_error_t *errp)
{
    struct debt *d;

    if (!access_is_guest (user))
        return 0;
    if (count > r->block)
        return errsetf (errp, EPERM,
                        "a guest may ask for %" PRIu32 " ids at once, not %" PRIu32 " (access.guest-block)", r->block,
                        count);
    if (!r->debt && !(r->debt = calloc (RATE_LIMIT_USERS, sizeof (*r->debt))))
        return errsetf (errp, ENOMEM, "out of memory");
    if (!(d = find_debt (r, user.userid, now_us)))
        return errsetf (errp, EAGAIN, "%d guests have requested ids in this second, the limit: try again",
                        RATE_LIMIT_USERS);
    if (d->paid_us > now_us + SECOND_US)
        return errsetf (errp, EAGAIN,
                        "user %" PRIu32 " has used its %" PRIu32
                        " ids a second (access.guest-rate): try again in %" PRIu64 " ms",
                        user.userid, r->rate, (d->paid_us - now_us - SECOND_US) / 1000 + 1);
    d->paid_us += cost_us (r, count);
    return 0;
}

void rate_limit_give (struct rate_limit *r, struct idt_cred user, uint32_t count, uint64_t now_us)
{
    struct debt *d;

    if (!access_is_guest (user) || count == 0 || !r->debt || !(d = find_debt (r, user.userid, now_us)))
        return;
    d->paid_us = max_u64 (now_us, d->paid_us - min_u64 (d->paid_us, cost_us (r, count)));
}
