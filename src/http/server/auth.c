/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* auth.c - decide which clients have access; read the token, the server's certificate, and the certificates of the
 * authorities that sign clients' certificates
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <microhttpd.h>

#include "http/server/auth.h"
#include "http/server/server.h"
#include "libutil/errprintf.h"

void tls_free (struct tls *t)
{
    if (t->key)
        explicit_bzero (t->key, strlen (t->key));
    free (t->certificate);
    free (t->key);
    free (t->authorities);
    *t = (struct tls){ NULL, NULL, NULL };
}

/* --- files --------------------------------------------------------- */

/* Open a file; a secret one must be readable by its owner only. */
static FILE *open_file (const char *path, bool secret, idt_error_t *errp)
{
    FILE *f = fopen (path, "re");
    struct stat st;

    if (!f || fstat (fileno (f), &st) < 0)
        errprintf (errp, "%s: %s", path, strerror (errno));
    else if (secret && (st.st_mode & 0077))
        errsetf (errp, EPERM, "%s: other users may read it: chmod 600", path);
    else
        return f;
    if (f)
        fclose (f);
    return NULL;
}

static char *read_open (FILE *f, const char *path, idt_error_t *errp)
{
    char *text = calloc (1, TLS_MAX_FILE + 1);
    size_t n = text ? fread (text, 1, TLS_MAX_FILE + 1, f) : 0;

    if (text && n > 0 && n <= TLS_MAX_FILE && !ferror (f) && strlen (text) == n)
        return text;
    if (ferror (f))
        errprintf (errp, "%s: %s", path, strerror (errno));
    else
        errsetf (errp, text ? EINVAL : ENOMEM, "%s: a PEM file of 1 to %d bytes is needed", path, TLS_MAX_FILE);
    free (text);
    return NULL;
}

static char *read_file (const char *path, bool secret, idt_error_t *errp)
{
    FILE *f = open_file (path, secret, errp);
    char *text = f ? read_open (f, path, errp) : NULL;

    if (f)
        fclose (f);
    return text;
}

/* --- certificates --------------------------------------------------------- */

static gnutls_datum_t datum (char *text)
{
    return (gnutls_datum_t){ (unsigned char *)text, (unsigned)strlen (text) };
}

/* Check the files here, because libmicrohttpd would not report what is wrong with them. */
static int check (const struct tls *t, const char *certificate, const char *authorities, idt_error_t *errp)
{
    gnutls_certificate_credentials_t c;
    gnutls_datum_t chain = datum (t->certificate), key = datum (t->key);
    int rc = gnutls_certificate_allocate_credentials (&c);

    if (rc < 0)
        return errsetf (errp, ENOMEM, "%s", gnutls_strerror (rc));
    if ((rc = gnutls_certificate_set_x509_key_mem (c, &chain, &key, GNUTLS_X509_FMT_PEM)) < 0)
        errsetf (errp, EINVAL, "--tls-cert %s, --tls-key: %s", certificate, gnutls_strerror (rc));
    else if (t->authorities) {
        gnutls_datum_t signers = datum (t->authorities);

        if ((rc = gnutls_certificate_set_x509_trust_mem (c, &signers, GNUTLS_X509_FMT_PEM)) <= 0)
            errsetf (errp, EINVAL, "--tls-client-ca %s: %s", authorities,
                     rc < 0 ? gnutls_strerror (rc) : "it contains no certificate");
        rc = rc > 0 ? 0 : -1;
    }
    gnutls_certificate_free_credentials (c);
    return rc < 0 ? errset (EINVAL) : 0;
}

int tls_load (struct tls *t, const char *certificate, const char *key, const char *authorities, idt_error_t *errp)
{
    *t = (struct tls){ NULL, NULL, NULL };
    if (!certificate && !key && !authorities)
        return 0;
    if (!certificate || !key)
        return errsetf (errp, EINVAL, "--tls-cert and --tls-key belong together: both are needed for TLS");
    if ((t->certificate = read_file (certificate, false, errp)) && (t->key = read_file (key, true, errp))
        && (!authorities || (t->authorities = read_file (authorities, false, errp)))
        && check (t, certificate, authorities, errp) == 0)
        return 0;
    int saved_errno = errno;
    tls_free (t);
    return errset (saved_errno);
}

/* --- the token --------------------------------------------------------- */

static char *check_token (const char *path, char *token, idt_error_t *errp)
{
    token[strcspn (token, "\r\n")] = '\0';
    if (strlen (token) >= AUTH_MIN_TOKEN && strlen (token) <= AUTH_MAX_TOKEN
        && token[strspn (token, "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUV"
                                "WXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~")]
               == '\0')
        return strdup (token);
    errsetf (errp, EINVAL, "%s: the first line must be a token of %d to %d printable characters", path, AUTH_MIN_TOKEN,
             AUTH_MAX_TOKEN);
    return NULL;
}

char *auth_token (const char *path, idt_error_t *errp)
{
    FILE *f = open_file (path, true, errp);
    char line[AUTH_MAX_TOKEN + 2] = "", *token = NULL;

    if (!f)
        return NULL;
    if (!fgets (line, sizeof (line), f))
        ferror (f) ? errprintf (errp, "%s: %s", path, strerror (errno))
                   : errsetf (errp, EINVAL, "%s: it is empty", path);
    else
        token = check_token (path, line, errp);
    fclose (f);
    explicit_bzero (line, sizeof (line));
    return token;
}

/* --- access --------------------------------------------------------- */

/* Compare a token. The time that this takes depends only on the length of the received text, so the time reveals
 * nothing about the token.
 */
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

/* Whether the request names this host by a name that a page of another host cannot have in its address. */
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

/* Whether this server sent the page that made the request. */
static bool is_own (const struct auth *door, const char *origin, const struct framing *f)
{
    const char *http = door->tls.certificate ? "https://" : "http://";

    return f->host && strncmp (origin, http, strlen (http)) == 0 && strlen (origin + strlen (http)) == f->host_size
           && memcmp (origin + strlen (http), f->host, f->host_size) == 0;
}

/* Whether the peer of a gnutls session sent a client certificate that one of the authorities signed. */
static bool is_client (void *session)
{
    gnutls_typed_vdata_st purpose = { GNUTLS_DT_KEY_PURPOSE_OID, (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT, 0 };
    unsigned status = 0;

    return session && gnutls_certificate_verify_peers (session, &purpose, 1, &status) == 0 && status == 0;
}

static bool has_certificate (const struct auth *door, const struct exchange *x)
{
    const union MHD_ConnectionInfo *info;

    if (!door->tls.authorities || !x->guest)
        return false;
    if (x->guest->card == GUEST_NOT_SEEN) {
        info = MHD_get_connection_info (x->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        x->guest->card = info && is_client (info->tls_session) ? GUEST_GOOD : GUEST_BAD;
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

/* Decide whether the client has access. Static files need neither a token nor a certificate if one of these is required
 * otherwise. A browser sends its certificate, and connects to a loopback address, for the pages of any server. So
 * without a token, requests that pages of other servers make are refused. On a loopback address without certificates,
 * requests that use another name for this host are refused, too: with such a name, a page of another server would count
 * as one of this server.
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
