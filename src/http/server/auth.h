/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* auth.h - decide which clients have access: by a token, by a certificate, or by where they connect from */
#ifndef HTTP_SERVER_AUTH_H
#define HTTP_SERVER_AUTH_H

#include <stdbool.h>

#include <idtree/error.h>

struct exchange;

#define TLS_MAX_FILE 1048576 /* largest size of a file, in bytes */

/* TLS 1.1 and older versions are not allowed. */
#define TLS_PRIORITIES "NORMAL:-VERS-SSL3.0:-VERS-TLS1.0:-VERS-TLS1.1"

/* The content of the files (PEM); owned. */
struct tls {
    char *certificate, *key; /* NULL: no TLS */
    char *authorities;       /* authorities that sign clients' certificates; NULL: clients need no certificate */
};

/* Read the files (NULL: not given). Returns 0, or -1 with errno set (EINVAL: incomplete or malformed; EPERM: other
 * users may read the key), 'errp' filled, and '*t' freed.
 */
int tls_load (struct tls *t, const char *certificate, const char *key, const char *authorities, idt_error_t *errp);
void tls_free (struct tls *t);

struct auth {
    bool loopback;     /* only this host can connect by TCP; its browsers can, too */
    const char *token; /* the token that requests must show; NULL: none */
    struct tls tls;    /* certificate NULL: no TLS */
};

#define AUTH_MIN_TOKEN 16 /* characters */
#define AUTH_MAX_TOKEN 1022

/* Read the first line of a file that no other user may read: a token of AUTH_MIN_TOKEN to AUTH_MAX_TOKEN characters.
 * Returns the token, which the caller frees, or NULL with errno set and 'errp' filled.
 */
char *auth_token (const char *path, idt_error_t *errp);

/* Whether the client has access. If not, this function has answered the request with an error. */
bool auth_lets_in (const struct auth *door, struct exchange *x);

#endif /* HTTP_SERVER_AUTH_H */
