/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* curve.h - CURVE keys: which peers may connect, and the file with an instance's key
 *
 * zap_*: the ZAP handler of one ZeroMQ context (ZeroMQ RFC 27), for CURVE only. certificate_*: a file with a key pair,
 * in the form of CZMQ's zcert. A process that can read this file can act as any broker of the instance, so only the
 * file's owner may read it.
 */
#ifndef LIBZMQUTIL_CURVE_H
#define LIBZMQUTIL_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>

#include "common/libzmqutil/zwatcher.h"

#define ZAP_KEY_SIZE 32 /* bytes of a CURVE public key */

struct zap;

/* Decide whether the owner of 'key' may connect to a socket of that domain (ZMQ_ZAP_DOMAIN). If the owner may, write a
 * name for the connection to 'user'.
 */
typedef bool (*zap_f) (const char *domain, const uint8_t key[ZAP_KEY_SIZE], char *user, size_t size, void *arg);

/* Create the handler before the sockets that it guards are bound. A context can have only one handler. NULL with errno
 * set.
 */
struct zap *zap_create (struct zpoll *zp, void *ctx, zap_f cb, void *arg);
void zap_destroy (struct zap *zap);

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

#endif /* LIBZMQUTIL_CURVE_H */
