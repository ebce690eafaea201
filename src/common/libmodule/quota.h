/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* quota.h - how much of a broker's resources each user may hold at a time, and how many ids a guest may have in a time
 *
 * The limits of resources are one table (doc/design/limits.md). A limit applies to a user, over all connections of that
 * user. All users except the instance owner together may hold at most half of a resource, so the owner always finds
 * some of it free. A request beyond the limit is refused; it does not wait.
 */
#ifndef LIBMODULE_QUOTA_H
#define LIBMODULE_QUOTA_H

#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>
#include <idtree/handle.h>
#include <idtree/msg.h>

enum quota_kind {
    QUOTA_SUBSCRIPTIONS, /* subscriptions to events, at a broker */
    QUOTA_FOLLOWERS,     /* requests that follow a broker's log, and, counted separately, its health */
    QUOTA_SURVEYS,       /* metrics.get requests in progress at a broker */
    QUOTA_TRACES,        /* fluid.trace requests in progress at a rank */
    QUOTA_READS,         /* ingest.get and ingest.list requests that wait at rank 0 */
    QUOTA_KINDS
};

struct quota_rule {
    const char *name;
    uint32_t all;    /* limit of all users together; QUOTA_NO_LIMIT: the owner has no limit */
    uint32_t others; /* limit of all users except the owner, together */
    uint32_t member; /* limit of one member of access.group */
    uint32_t guest;  /* limit of one guest */
    int errnum;      /* the error of a refused request. EAGAIN: a retry may succeed; else ENOSPC */
};

#define QUOTA_NO_LIMIT UINT32_MAX

const struct quota_rule *quota_rule (enum quota_kind kind);

struct quota_user {
    uint32_t userid;
    uint32_t count;
};

/* How much of a resource is in use. */
struct quota {
    const struct quota_rule *rule;
    uint32_t total;  /* how many are in use by all users */
    uint32_t others; /* how many are in use by all users except the owner */
    struct quota_user *user;
    size_t nusers, room;
};

/* Begin with nothing in use. quota_init () takes the limits of the table, quota_init_by () those in 'rule' (borrowed),
 * for limits that attributes set.
 */
void quota_init (struct quota *q, enum quota_kind kind);
void quota_init_by (struct quota *q, const struct quota_rule *rule);
void quota_fini (struct quota *q); /* keeps errno */

/* Add one to what 'user' holds. Returns 0, or -1 with the rule's errno or ENOMEM, and 'errp' (may be NULL) filled. */
int quota_take (struct quota *q, struct idt_cred user, idt_error_t *errp);

/* Subtract one from what 'user' holds, which must be at least one. */
void quota_give (struct quota *q, struct idt_cred user);

/* --- ids ---------------------------------------------------------------------------------------------------------
 *
 * In any t seconds a guest gets from one service at most access.guest-rate * (t + 1) ids, plus the ids of one request.
 * So a guest that requests no ids for a second may get twice as many in the next one. A request beyond the rate is
 * refused; it does not wait.
 */

struct rate_limit;

#define RATE_LIMIT_USERS 1024 /* maximum number of guests whose ids are not paid for yet */

/* Allow a guest 'rate' ids a second, and 'block' ids in one request; both must be above 0. NULL with errno ENOMEM. */
struct rate_limit *rate_limit_create (uint32_t rate, uint32_t block);

/* Like rate_limit_create (), with the attributes access.guest-rate and access.guest-block. NULL with errno set and
 * 'errp' filled.
 */
struct rate_limit *rate_limit_configure (idt_t *h, idt_error_t *errp);
void rate_limit_destroy (struct rate_limit *r); /* NULL is fine */

/* Take 'count' ids for a user at 'now_us'. Users who are not guests have no limit. Returns 0, or -1 with a sentence in
 * 'errp' and errno
 *   EPERM   'count' is more than a guest may have in one request
 *   EAGAIN  the guest has used up its rate, or RATE_LIMIT_USERS guests have ids that are not paid for
 *   ENOMEM
 */
int rate_limit_take (struct rate_limit *r, struct idt_cred user, uint32_t count, uint64_t now_us, idt_error_t *errp);

/* Undo a rate_limit_take () with the same 'count' and 'now_us', because the request was refused afterwards and got no
 * ids.
 */
void rate_limit_give (struct rate_limit *r, struct idt_cred user, uint32_t count, uint64_t now_us);

#endif /* LIBMODULE_QUOTA_H */
