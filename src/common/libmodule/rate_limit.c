/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rate_limit.c - how many ids a guest may have in a time (the generic cell rate algorithm)
 *
 * For each user there is the time at which all ids that it took are paid for, at access.guest-rate. When that time has
 * passed, the entry is free for another user.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "libmodule/option.h"
#include "libmodule/rate_limit.h"
#include "libmsg/access.h"
#include "libutil/errprintf.h"
#include "libutil/minmax.h"

#define SECOND_US UINT64_C (1000000)
#define RATE "100000"
#define BLOCK "8192"

struct debt {
    uint32_t userid;
    uint64_t paid_us; /* now or earlier: the entry is free */
};

struct rate_limit {
    uint32_t rate, block;
    struct debt *debt; /* RATE_LIMIT_USERS entries; NULL until the first guest */
};

struct rate_limit *rate_limit_create (uint32_t rate, uint32_t block)
{
    struct rate_limit *r = calloc (1, sizeof (*r));

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

    if (module_option_number (h, "access.guest-rate", RATE, 1, 1000000000, &rate, errp) < 0
        || module_option_number (h, "access.guest-block", BLOCK, 1, 65536, &block, errp) < 0)
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

/* Find the entry of a user, or take a free one for it; NULL if all are taken. The search does not stop at a free entry,
 * because the user's entry may be behind it.
 */
static struct debt *find (struct rate_limit *r, uint32_t userid, uint64_t now_us)
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
    if (!(d = find (r, user.userid, now_us)))
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

    if (!access_is_guest (user) || count == 0 || !r->debt || !(d = find (r, user.userid, now_us)))
        return;
    d->paid_us = max_u64 (now_us, d->paid_us - min_u64 (d->paid_us, cost_us (r, count)));
}
