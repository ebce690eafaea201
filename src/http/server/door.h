/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* door.h - who is let in */
#ifndef HTTP_SERVER_DOOR_H
#define HTTP_SERVER_DOOR_H

#include <stdbool.h>

#include "http/server/exchange.h"
#include "http/server/tls.h"

struct door {
    bool loopback;     /* only this host reaches it, by TCP: browsers do, too */
    const char *token; /* that opens it; NULL: none */
    struct tls tls;    /* certificate NULL: none */
};

/* Whether it may ask; else it was answered. */
bool door_lets_in (const struct door *door, struct exchange *x);

#endif /* HTTP_SERVER_DOOR_H */
