/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* auth.c - decide which clients have access */
#include "config.h"

#include <microhttpd.h>
#include <string.h>
#include <strings.h>

#include "http/server/auth.h"

/* The time depends only on the length of the received text, so that it reveals nothing about the token. */
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

/* Names of this host that a page from another host cannot have in its address. */
static bool is_here (const struct framing *f)
{
    static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };

    for (size_t i = 0; f->host && i < sizeof (names) / sizeof (names[0]); i++) {
        size_t len = strlen (names[i]);

        if (f->host_size >= len && strncasecmp (f->host, names[i], len) == 0
            && (f->host_size == len || f->host[len] == ':'))
            return true;
    }
    return false;
}

/* Whether the page was served by this server. */
static bool is_own (const struct auth *door, const char *origin, const struct framing *f)
{
    const char *http = door->tls.certificate ? "https://" : "http://";

    return f->host && strncmp (origin, http, strlen (http)) == 0 && strlen (origin + strlen (http)) == f->host_size
           && memcmp (origin + strlen (http), f->host, f->host_size) == 0;
}

static bool has_certificate (const struct auth *door, const struct exchange *x)
{
    const union MHD_ConnectionInfo *info;

    if (!door->tls.authorities || !x->guest)
        return false;
    if (x->guest->card == GUEST_NOT_SEEN) {
        info = MHD_get_connection_info (x->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        x->guest->card = info && tls_is_client (info->tls_session) ? GUEST_GOOD : GUEST_BAD;
    }
    return x->guest->card == GUEST_GOOD;
}

static bool refuse (const struct auth *door, struct exchange *x)
{
    exchange_fail (x, 401, "%s",
                   !door->token            ? "a client's certificate is needed, of an authority of --tls-client-ca"
                   : door->tls.authorities ? "a token or a client's certificate is needed: Authorization: Bearer TOKEN"
                                           : "a token is needed: Authorization: Bearer TOKEN");
    return false;
}

/* A browser sends its certificate, and connects to a loopback address, for any page. So without a token, requests from
 * pages of other servers are refused, and requests that use another name for this host, because a certificate cannot
 * detect those.
 */
bool auth_lets_in (const struct auth *door, struct exchange *x)
{
    const char *origin = exchange_header (x, "Origin");
    bool closed = door->token || door->tls.authorities;

    if (closed && (x->resource || (door->token && is_token (door->token, exchange_header (x, "Authorization")))))
        return true;
    if (closed && !has_certificate (door, x))
        return refuse (door, x);
    if ((!closed && !door->loopback)
        || ((closed || is_here (&x->framing)) && (!origin || is_own (door, origin, &x->framing))))
        return true;
    exchange_fail (x, 403, "without a token pages of others are not served, nor other names than localhost");
    return false;
}
