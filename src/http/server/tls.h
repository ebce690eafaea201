/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* tls.h - TLS: the server's certificate, and the authorities of client certificates */
#ifndef HTTP_SERVER_TLS_H
#define HTTP_SERVER_TLS_H

#include <stdbool.h>

#include <idtree/error.h>

#define TLS_MAX_FILE 1048576 /* bytes */

/* No TLS 1.1 and below. */
#define TLS_PRIORITIES "NORMAL:-VERS-SSL3.0:-VERS-TLS1.0:-VERS-TLS1.1"

/* The content of the files (PEM); owned. */
struct tls {
    char *certificate, *key; /* NULL: no TLS */
    char *authorities;       /* that sign clients' certificates; NULL: clients need none */
};

/* Read the files (NULL: not given). Returns 0, or -1 with errno set (EINVAL: incomplete or malformed; EPERM: other
 * users may read the key), 'errp' filled, and '*t' freed.
 */
int tls_load (struct tls *t, const char *certificate, const char *key, const char *authorities, idt_error_t *errp);
void tls_free (struct tls *t);

/* Whether the peer of a gnutls session sent a client certificate that an authority signed. */
bool tls_is_client (void *session);

#endif /* HTTP_SERVER_TLS_H */
