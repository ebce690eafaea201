/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sign.h - what a submission's J holds: HEADER.PAYLOAD.SIGNATURE (RFC 39) with the mechanism "none"
 *
 * HEADER and PAYLOAD are base64; the header is RFC 38's list of keys and typed values.  A signature by "none" says
 * nothing: who submits is told by the connection, and J's userid must be the same.
 */
#ifndef JOB_SIGN_H
#define JOB_SIGN_H

#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>

/* Unwrap 'size' bytes at 'j'.  '*payload' gets '*payload_size' bytes, malloced, and a NUL behind them that does not
 * count.  Returns 0, or -1 with errno set, nothing else touched, and a sentence in 'errp' that names the part
 * ("J: header: ..."):
 *   EINVAL    no HEADER.PAYLOAD.SIGNATURE, not base64, a header without version 1, mechanism or userid, or with others
 *   ENOTSUP   another mechanism than "none"; the text names it
 *   EMSGSIZE  the payload has more than 'max' bytes; told before it is decoded
 *   ENOMEM
 */
int job_sign_unwrap (const char *j, size_t size, size_t max, char **payload, size_t *payload_size, uint32_t *userid,
                     idt_error_t *errp);

/* The reverse, for clients: J of a jobspec, malloced, with a NUL.  NULL with errno ENOMEM. */
char *job_sign_wrap (const char *payload, size_t size, uint32_t userid);

#endif /* JOB_SIGN_H */
