/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* card.h - a bizcard as text: "ENDPOINT,HOST,KEY,TOPOLOGY,SIZE": the CURVE public key in hex, "-" for no endpoint
 *
 * In each field commas, % and bytes that some launcher does not carry are %XX.  Brokers that were built before SIZE, of
 * the instance, did not tell it: then it is 0.
 */
#ifndef BROKER_CARD_H
#define BROKER_CARD_H

#include "broker/overlay/overlay.h"

#define CARD_TEXT 1024 /* bytes at most: what every PMI carries */
#define CARD_HOST 256

/* The name that others see of a host whose own name is 'name' (84 bytes at most): each byte that lists of hosts (RFC
 * 29) and lines of logs cannot have is %XX, and an empty name is localhost.
 */
void card_host (char host[CARD_HOST], const char *name);

/* Fill a card; 'endpoint' NULL: it listens nowhere.  Returns 0, or -1 with errno EINVAL: 'public_key' is no Z85. */
int card_fill (struct bizcard *card, uint32_t rank, const char *endpoint, const char *host, const char *public_key,
               const char *topology, uint32_t size);

/* Returns 0, or -1 with errno ENAMETOOLONG and 'errp' filled. */
int card_encode (char text[CARD_TEXT], const struct bizcard *card, idt_error_t *errp);

/* Returns 0, or -1 with errno EPROTO and 'errp' filled. */
int card_decode (const char *text, uint32_t rank, struct bizcard *card, idt_error_t *errp);

#endif /* BROKER_CARD_H */
