/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* card.h - a bizcard as text: "ENDPOINT,HOST,KEY,TOPOLOGY,SIZE": the CURVE public key in hex, "-" for no endpoint
 *
 * In each field commas, % and bytes that some launchers do not carry are written as %XX. Old brokers do not send SIZE,
 * the size of the instance: then it is 0.
 */
#ifndef BROKER_CARD_H
#define BROKER_CARD_H

#include "broker/overlay/overlay.h"

#define CARD_TEXT 1024 /* bytes, the limit of all PMI versions */
#define CARD_HOST 256

/* The name of a host as other hosts see it, from its own 'name' (at most 84 bytes): bytes that are invalid in lists of
 * hosts (RFC 29) or in log lines become %XX, and an empty name becomes localhost.
 */
void card_host (char host[CARD_HOST], const char *name);

/* Fill a card; 'endpoint' NULL: the broker does not listen. Returns 0, or -1 with errno EINVAL: 'public_key' is not
 * Z85.
 */
int card_fill (struct bizcard *card, uint32_t rank, const char *endpoint, const char *host, const char *public_key,
               const char *topology, uint32_t size);

/* Returns 0, or -1 with errno ENAMETOOLONG and 'errp' filled. */
int card_encode (char text[CARD_TEXT], const struct bizcard *card, idt_error_t *errp);

/* Returns 0, or -1 with errno EPROTO and 'errp' filled. */
int card_decode (const char *text, uint32_t rank, struct bizcard *card, idt_error_t *errp);

#endif /* BROKER_CARD_H */
