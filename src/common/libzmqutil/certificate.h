/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* certificate.h - a file with a CURVE key pair, in the form of CZMQ's zcert
 *
 * A process that can read the file can act as any broker of the instance, so only the owner may read it.
 */
#ifndef LIBZMQUTIL_CERTIFICATE_H
#define LIBZMQUTIL_CERTIFICATE_H

#include <stdint.h>

#include <idtree/error.h>

#define CERTIFICATE_SECRET_SIZE 32

/* Make a new key pair in the file 'path', which must not exist, readable only by its owner. 'name' (NULL: no name) is
 * for people. After a failure or a crash there is either the whole file or no file. Returns 0, or -1 with errno set and
 * 'errp' filled.
 */
int certificate_make (const char *path, const char *name, idt_error_t *errp);

/* Read the secret key. Returns 0, or -1 with errno set and 'errp' filled: EPERM if other users may read the file, or it
 * belongs neither to this user nor to root; EINVAL if it is not a certificate.
 */
int certificate_read (const char *path, uint8_t secret[CERTIFICATE_SECRET_SIZE], idt_error_t *errp);

#endif /* LIBZMQUTIL_CERTIFICATE_H */
