/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rate_limit.h - how many ids a guest may have in a time; no I/O
 *
 * In any t seconds a user gets from one service at most access.guest-rate * (t + 1) ids, plus the ids of one request.
 * Ids that it does not use can be used for one second. A request beyond the rate is refused; it does not wait.
 */
#ifndef LIBMODULE_RATE_LIMIT_H
#define LIBMODULE_RATE_LIMIT_H

#include <idtree/handle.h>

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

#endif /* LIBMODULE_RATE_LIMIT_H */
