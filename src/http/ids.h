/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ids.h - /v1/ids: make and decode ids */
#ifndef HTTP_IDS_H
#define HTTP_IDS_H

#include "http/server/server.h"

struct ids;

/* 'h' is borrowed. 'rate' is in ids a second; 0: no limit. Returns NULL with errno ENOMEM. */
struct ids *ids_create (idt_t *h, uint32_t rate);
void ids_destroy (struct ids *ids);

/* Each of these answers the request; 'text' is an id in any form. */
void ids_new (struct ids *ids, struct exchange *x);
void ids_show (struct ids *ids, struct exchange *x, const char *text);

#endif /* HTTP_IDS_H */
