/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ration.h - how many ids guests may have here; a thinking part
 *
 * In any time of t seconds one user gets no more than access.guest-rate * (t + 1) ids of a service, and a request's
 * worth: what he has not used is his for a second.  Nobody waits: what is too much is refused.
 */
#ifndef LIBMODULE_RATION_H
#define LIBMODULE_RATION_H

#include <idtree/handle.h>

struct ration;

#define RATION_USERS 1024 /* that may have used some of theirs at a time */

/* 'rate' ids a second of one user, and 'block' in one request; both above 0.  NULL with errno ENOMEM. */
struct ration *ration_create (uint32_t rate, uint32_t block);

/* The same, as the attributes access.guest-rate and access.guest-block have it.  NULL with errno set and 'errp' filled.
 */
struct ration *ration_configure (idt_t *h, idt_error_t *errp);
void ration_destroy (struct ration *r); /* NULL is fine */

/* Whether a user may have 'count' ids at 'now_us'; all but guests may.  Returns 0, or -1 with a sentence in 'errp' and
 * errno
 *   EPERM   more than he may have in one request
 *   EAGAIN  more than he may have now, or too many users want some
 *   ENOMEM
 */
int ration_take (struct ration *r, struct idt_cred user, uint32_t count, uint64_t now_us, idt_error_t *errp);

/* Give back what ration_take () took at the same 'now_us': the request was refused, and got no ids. */
void ration_give (struct ration *r, struct idt_cred user, uint32_t count, uint64_t now_us);

#endif /* LIBMODULE_RATION_H */
