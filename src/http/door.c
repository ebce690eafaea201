/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* door.c - who is let in */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "http/server.h"

/* How long that takes tells nothing but the length of what was sent. */
static bool is_token (const char *token, const char *header)
{
    size_t len = strlen (token), i = 0;
    unsigned char differs = 0;

    if (!header || strncasecmp (header, "Bearer ", 7) != 0)
        return false;
    for (header += 7; header[i]; i++)
        differs |= (unsigned char)(header[i] ^ token[i % len]);
    return differs == 0 && i == len;
}

/* Names of this host that no page from elsewhere can have in its address. */
static bool is_here (const char *host)
{
    static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };

    for (size_t i = 0; host && i < sizeof (names) / sizeof (names[0]); i++) {
        size_t len = strlen (names[i]);

        if (strncasecmp (host, names[i], len) == 0 && (host[len] == '\0' || host[len] == ':'))
            return true;
    }
    return false;
}

/* A page that this server served. */
static bool is_own (const char *origin, const char *host)
{
    static const char http[] = "http://";

    return host && strncmp (origin, http, strlen (http)) == 0 && strcmp (origin + strlen (http), host) == 0;
}

bool door_lets_in (struct exchange *x, const struct server_conf *conf)
{
    const char *origin = exchange_header (x, "Origin"), *host = exchange_header (x, "Host");

    if (conf->token && !x->resource && !is_token (conf->token, exchange_header (x, "Authorization"))) {
        exchange_fail (x, 401, "a token is needed: Authorization: Bearer TOKEN");
        return false;
    }
    if (!conf->token && conf->loopback && (!is_here (host) || (origin && !is_own (origin, host)))) {
        exchange_fail (x, 403, "without a token pages of others are not served, nor other names than localhost");
        return false;
    }
    return true;
}
