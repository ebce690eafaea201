/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rate_limit.h - how many ids guests may have here; a thinking part
 *
 * In any time of t seconds one user gets no more than access.guest-rate * (t + 1) ids of a service, and a request's
 * worth: what he has not used is his for a second.  Nobody waits: what is too much is refused.
 */
#ifndef LIBMODULE_RATE_LIMIT_H
#define LIBMODULE_RATE_LIMIT_H

#include <idtree/handle.h>

struct rate_limit;

#define RATE_LIMIT_USERS 1024 /* that may have used some of theirs at a time */

/* 'rate' ids a second of one user, and 'block' in one request; both above 0.  NULL with errno ENOMEM. */
struct rate_limit *rate_limit_create (uint32_t rate, uint32_t block);

/* The same, as the attributes access.guest-rate and access.guest-block have it.  NULL with errno set and 'errp' filled.
 */
struct rate_limit *rate_limit_configure (idt_t *h, idt_error_t *errp);
void rate_limit_destroy (struct rate_limit *r); /* NULL is fine */

/* Whether a user may have 'count' ids at 'now_us'; all but guests may.  Returns 0, or -1 with a sentence in 'errp' and
 * errno
 *   EPERM   more than he may have in one request
 *   EAGAIN  more than he may have now, or too many users want some
 *   ENOMEM
 */
int rate_limit_take (struct rate_limit *r, struct idt_cred user, uint32_t count, uint64_t now_us, idt_error_t *errp);

/* Give back what rate_limit_take () took at the same 'now_us': the request was refused, and got no ids. */
void rate_limit_give (struct rate_limit *r, struct idt_cred user, uint32_t count, uint64_t now_us);

#endif /* LIBMODULE_RATE_LIMIT_H */
