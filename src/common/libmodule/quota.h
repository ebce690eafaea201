/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* quota.h - how much of what a broker keeps each user may have: one table (doc/design/limits.md); no I/O
 *
 * Limits are per user, however many connections a user has.  All users but the owner together have half at most, so the
 * owner always finds room.  Nothing waits for room: what is too much is refused.
 */
#ifndef LIBMODULE_QUOTA_H
#define LIBMODULE_QUOTA_H

#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>
#include <idtree/msg.h>

enum quota_kind {
    QUOTA_SUBSCRIPTIONS, /* to events, at a broker */
    QUOTA_FOLLOWERS,     /* of a broker's log, or of its health: each has its own */
    QUOTA_SURVEYS,       /* metrics.get under way at a broker */
    QUOTA_TRACES,        /* fluid.trace under way at a rank */
    QUOTA_READS,         /* ingest.get and ingest.list that wait at rank 0 */
    QUOTA_KINDS
};

struct quota_rule {
    const char *name;
    uint32_t all;    /* of all users; QUOTA_NO_LIMIT: as many as the owner wants */
    uint32_t others; /* of all but the owner together */
    uint32_t member; /* of one member of access.group */
    uint32_t guest;  /* of one guest */
    int errnum;      /* EAGAIN where it passes by itself, else ENOSPC */
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
    uint32_t total;  /* of all users */
    uint32_t others; /* of all but the owner */
    struct quota_user *user;
    size_t nusers, room;
};

/* By the table / by limits that are attributes; 'rule' is borrowed. */
void quota_init (struct quota *q, enum quota_kind kind);
void quota_init_by (struct quota *q, const struct quota_rule *rule);
void quota_fini (struct quota *q); /* keeps errno */

/* One more for 'user'.  Returns 0, or -1 with the rule's errno, or ENOMEM, and 'errp' (may be NULL) filled. */
int quota_take (struct quota *q, struct idt_cred user, idt_error_t *errp);

/* Give back one of those that it took. */
void quota_give (struct quota *q, struct idt_cred user);

#endif /* LIBMODULE_QUOTA_H */
