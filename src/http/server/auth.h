/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* auth.h - who is let in */
#ifndef HTTP_SERVER_AUTH_H
#define HTTP_SERVER_AUTH_H

#include <stdbool.h>

#include "http/server/exchange.h"
#include "http/server/tls.h"

struct auth {
    bool loopback;     /* only this host reaches it, by TCP: browsers do, too */
    const char *token; /* that opens it; NULL: none */
    struct tls tls;    /* certificate NULL: none */
};

/* Whether it may ask; else it was answered. */
bool auth_lets_in (const struct auth *door, struct exchange *x);

#endif /* HTTP_SERVER_AUTH_H */
