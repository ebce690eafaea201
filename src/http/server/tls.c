/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* tls.c - TLS: the server's certificate, and the authorities of client certificates */
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "http/server/tls.h"
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
    FILE *f = fopen (path, "re");
    char *text = NULL;
    struct stat st;

    if (!f || fstat (fileno (f), &st) < 0)
        errprintf (errp, "%s: %s", path, strerror (errno));
    else if (secret && (st.st_mode & 0077))
        errsetf (errp, EPERM, "%s: other users may read it: chmod 600", path);
    else
        text = read_open (f, path, errp);
    if (f)
        fclose (f);
    return text;
}

/* --- what is in them --------------------------------------------------------- */

static gnutls_datum_t datum (char *text)
{
    return (gnutls_datum_t){ (unsigned char *)text, (unsigned)strlen (text) };
}

/* Checked here, because libmicrohttpd would not report what is wrong. */
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

/* --- clients --------------------------------------------------------- */

bool tls_is_client (void *session)
{
    gnutls_typed_vdata_st purpose = { GNUTLS_DT_KEY_PURPOSE_OID, (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT, 0 };
    unsigned status = 0;

    return session && gnutls_certificate_verify_peers (session, &purpose, 1, &status) == 0 && status == 0;
}
