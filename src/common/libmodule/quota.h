/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* quota.h - how much of a broker's resources each user may hold at a time, and how many ids a guest may have in a time
 *
 * The limits of resources are one table (doc/design/limits.md). A limit is per user, over all connections of the user.
 * All users except the instance owner together have at most half, so the owner always finds some free. A request beyond
 * the limit is refused; it does not wait.
 */
#ifndef LIBMODULE_QUOTA_H
#define LIBMODULE_QUOTA_H

#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>
#include <idtree/handle.h>
#include <idtree/msg.h>

enum quota_kind {
    QUOTA_SUBSCRIPTIONS, /* to events, at a broker */
    QUOTA_FOLLOWERS,     /* of a broker's log, or of its health: separate counts */
    QUOTA_SURVEYS,       /* metrics.get under way at a broker */
    QUOTA_TRACES,        /* fluid.trace under way at a rank */
    QUOTA_READS,         /* ingest.get and ingest.list that wait at rank 0 */
    QUOTA_KINDS
};

struct quota_rule {
    const char *name;
    uint32_t all;    /* all users; QUOTA_NO_LIMIT: the owner has no limit */
    uint32_t others; /* all users except the owner, together */
    uint32_t member; /* one member of access.group */
    uint32_t guest;  /* one guest */
    int errnum;      /* EAGAIN: a retry may succeed; else ENOSPC */
};

#define QUOTA_NO_LIMIT UINT32_MAX

const struct quota_rule *quota_rule (enum quota_kind kind);

struct quota_user {
    uint32_t userid;
    uint32_t count;
};

/* What is in use. */
struct quota {
    const struct quota_rule *rule;
    uint32_t total;  /* by all users */
    uint32_t others; /* by all users except the owner */
    struct quota_user *user;
    size_t nusers, room;
};

/* With the limits of the table, or with limits from attributes. 'rule' is borrowed. */
void quota_init (struct quota *q, enum quota_kind kind);
void quota_init_by (struct quota *q, const struct quota_rule *rule);
void quota_fini (struct quota *q); /* keeps errno */

/* Count one more for 'user'. Returns 0, or -1 with the rule's errno, or ENOMEM, and 'errp' (may be NULL) filled. */
int quota_take (struct quota *q, struct idt_cred user, idt_error_t *errp);

/* Count one less for 'user', which must hold one. */
void quota_give (struct quota *q, struct idt_cred user);

/* --- ids ---------------------------------------------------------------------------------------------------------
 *
 * In any t seconds a user gets from one service at most access.guest-rate * (t + 1) ids, plus the ids of one request.
 * Ids that it does not use can be used for one second. A request beyond the rate is refused; it does not wait.
 */

struct rate_limit;

#define RATE_LIMIT_USERS 1024 /* guests with unpaid ids at a time */

/* A user may have 'rate' ids a second, and 'block' in one request; both must be above 0. NULL with errno ENOMEM. */
struct rate_limit *rate_limit_create (uint32_t rate, uint32_t block);

/* The same with the attributes access.guest-rate and access.guest-block. NULL with errno set and 'errp' filled. */
struct rate_limit *rate_limit_configure (idt_t *h, idt_error_t *errp);
void rate_limit_destroy (struct rate_limit *r); /* NULL is fine */

/* Take 'count' ids for a user at 'now_us'. Only guests are limited. Returns 0, or -1 with a sentence in 'errp' and
 * errno
 *   EPERM   more than a guest may have in one request
 *   EAGAIN  more than the user may have now, or too many guests have unpaid ids
 *   ENOMEM
 */
int rate_limit_take (struct rate_limit *r, struct idt_cred user, uint32_t count, uint64_t now_us, idt_error_t *errp);

/* Undo a rate_limit_take () with the same 'now_us': the request was refused and got no ids. */
void rate_limit_give (struct rate_limit *r, struct idt_cred user, uint32_t count, uint64_t now_us);

#endif /* LIBMODULE_QUOTA_H */
