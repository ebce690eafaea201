/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* tls.h - TLS: the server's certificate, and whose certificates its clients may have */
#ifndef HTTP_SERVER_TLS_H
#define HTTP_SERVER_TLS_H

#include <stdbool.h>

#include <idtree/error.h>

#define TLS_MAX_FILE 1048576 /* bytes */

/* No TLS 1.1 and below. */
#define TLS_PRIORITIES "NORMAL:-VERS-SSL3.0:-VERS-TLS1.0:-VERS-TLS1.1"

/* As they stand in their files (PEM); owned. */
struct tls {
    char *certificate, *key; /* NULL: no TLS */
    char *authorities;       /* that sign clients' certificates; NULL: none are asked for */
};

/* Read the files (NULL: not given).  Returns 0, or -1 with errno set (EINVAL: what is given is not enough, or is none;
 * EPERM: others may read the key), 'errp' filled, and '*t' freed.
 */
int tls_load (struct tls *t, const char *certificate, const char *key, const char *authorities, idt_error_t *errp);
void tls_free (struct tls *t);

/* Whether the other side of a session of gnutls showed a certificate for clients that an authority signed. */
bool tls_is_client (void *session);

#endif /* HTTP_SERVER_TLS_H */
