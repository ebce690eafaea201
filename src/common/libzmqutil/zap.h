/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* zap.h - decide which peers may connect: the ZAP handler of one ZeroMQ context (ZeroMQ RFC 27), for CURVE keys only */
#ifndef BROKER_ZAP_H
#define BROKER_ZAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/libzmqutil/zwatcher.h"

#define ZAP_KEY_SIZE 32 /* bytes of a CURVE public key */

struct zap;

/* Decide whether the owner of 'key' may connect to a socket of that domain (ZMQ_ZAP_DOMAIN). If so, write a name for
 * the connection to 'user'.
 */
typedef bool (*zap_f) (const char *domain, const uint8_t key[ZAP_KEY_SIZE], char *user, size_t size, void *arg);

/* Create the handler before the sockets that it guards are bound. A context has one. NULL with errno set. */
struct zap *zap_create (struct zpoll *zp, void *ctx, zap_f cb, void *arg);
void zap_destroy (struct zap *zap);

#endif /* BROKER_ZAP_H */
