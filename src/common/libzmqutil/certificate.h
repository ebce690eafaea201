/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* certificate.h - a file with a CURVE key pair, in the form of CZMQ's zcert
 *
 * Whoever can read it can be any broker of its instance: so nobody but its owner may.
 */
#ifndef LIBZMQUTIL_CERTIFICATE_H
#define LIBZMQUTIL_CERTIFICATE_H

#include <stdint.h>

#include <idtree/error.h>

#define CERTIFICATE_SECRET_SIZE 32

/* Make a new one in the file 'path', which must not exist, readable by its owner alone; 'name' (NULL: none) is for
 * people.  All of it is there, or nothing.  Returns 0, or -1 with errno set and 'errp' filled.
 */
int certificate_make (const char *path, const char *name, idt_error_t *errp);

/* Its secret.  Returns 0, or -1 with errno set and 'errp' filled: EPERM where others may read it, or it is neither ours
 * nor root's; EINVAL where it is none.
 */
int certificate_read (const char *path, uint8_t secret[CERTIFICATE_SECRET_SIZE], idt_error_t *errp);

#endif /* LIBZMQUTIL_CERTIFICATE_H */
