/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* auth.h - decide which clients have access */
#ifndef HTTP_SERVER_AUTH_H
#define HTTP_SERVER_AUTH_H

#include <stdbool.h>

#include "http/server/exchange.h"
#include "http/server/tls.h"

struct auth {
    bool loopback;     /* reachable by TCP from this host only, which includes its browsers */
    const char *token; /* the token that requests must show; NULL: none */
    struct tls tls;    /* certificate NULL: no TLS */
};

/* Whether the client has access. If not, the request was answered. */
bool auth_lets_in (const struct auth *door, struct exchange *x);

#endif /* HTTP_SERVER_AUTH_H */
