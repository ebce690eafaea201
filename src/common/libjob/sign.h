/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sign.h - make and read the J of a submission: HEADER.PAYLOAD.SIGNATURE (RFC 39) with the mechanism "none"
 *
 * HEADER and PAYLOAD are base64; the header is a list of keys and typed values (RFC 38). A signature with "none" proves
 * nothing. The connection identifies the submitter, so the caller must check that the userid in J is the submitter's.
 */
#ifndef JOB_SIGN_H
#define JOB_SIGN_H

#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>

/* Read 'size' bytes of a J at 'j'. '*payload' gets '*payload_size' bytes, allocated by malloc (), followed by a NUL
 * that is not counted. Returns 0, or -1 with errno set, outputs unchanged, and a message in 'errp' that names the part
 * ("J: header: ..."):
 *   EINVAL    not HEADER.PAYLOAD.SIGNATURE, not base64, or a header that lacks version 1, mechanism or userid, or has
 *             other keys
 *   ENOTSUP   a mechanism other than "none", which the message names
 *   EMSGSIZE  the payload has more than 'max' bytes; it is not decoded
 *   ENOMEM    out of memory
 */
int job_sign_unwrap (const char *j, size_t size, size_t max, char **payload, size_t *payload_size, uint32_t *userid,
                     idt_error_t *errp);

/* Make a J of a jobspec, for clients. Returns the text with a NUL, allocated by malloc (), or NULL with errno ENOMEM.
 */
char *job_sign_wrap (const char *payload, size_t size, uint32_t userid);

#endif /* JOB_SIGN_H */
