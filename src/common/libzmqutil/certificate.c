/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* certificate.c - a file with a CURVE key pair */
#include "config.h"

#include <czmq.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/libzmqutil/certificate.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/files.h"

#define MAX_SIZE 4096 /* bytes of a file */
#define KEY_TEXT 41   /* a key in Z85 with its NUL */

/* --- making -------------------------------------------------------------------------------------- */

static char *format (const char *name)
{
    char public_key[KEY_TEXT], secret_key[KEY_TEXT], stamp[CLOCK_STAMP_SIZE], *text = NULL;

    if (zmq_curve_keypair (public_key, secret_key) < 0)
        return NULL;
    if (asprintf (&text,
                  "#   The key of an idtree instance, made %s: a process that can read it acts as a broker\n"
                  "metadata\n"
                  "    name = \"%s\"\n"
                  "curve\n"
                  "    public-key = \"%s\"\n"
                  "    secret-key = \"%s\"\n",
                  clock_stamp (stamp), name ? name : "idtree", public_key, secret_key)
        < 0)
        text = NULL;
    explicit_bzero (secret_key, sizeof (secret_key));
    return text;
}

/* Write under a temporary name first; link () does not replace an existing file. */
static int write_file (const char *path, const char *text)
{
    char *temporary = NULL;
    int fd = -1, rc = -1, saved;

    if (asprintf (&temporary, "%s.XXXXXX", path) < 0)
        return errset (ENOMEM);
    if ((fd = mkostemp (temporary, O_CLOEXEC)) >= 0) {
        if (fchmod (fd, 0400) == 0 && write_all (fd, text, strlen (text)) == 0 && fsync (fd) == 0)
            rc = link (temporary, path);
        saved = errno;
        close (fd);
        unlink (temporary);
        errno = saved;
    }
    free (temporary);
    return rc;
}

static int check_name (const char *name, idt_error_t *errp)
{
    size_t n = name ? strlen (name) : 0;

    if (n <= 64 && (!name || strspn (name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._ ") == n))
        return 0;
    return errsetf (errp, EINVAL, "the name '%.70s' must have at most 64 letters, digits, blanks, - . or _", name);
}

int certificate_make (const char *path, const char *name, idt_error_t *errp)
{
    char *text;
    int rc;

    if (check_name (name, errp) < 0)
        return -1;
    if (!(text = format (name)))
        return errprintf (errp, "cannot make a key pair: %s",
                          errno == ENOTSUP ? "libzmq was built without CURVE" : zmq_strerror (errno));
    rc = write_file (path, text);
    explicit_bzero (text, strlen (text));
    free (text);
    if (rc < 0 && errno == EEXIST)
        return errprintf (errp,
                          "%s exists: all hosts must have the same certificate, so it is not replaced; remove it "
                          "first if it is not in use",
                          path);
    return rc < 0 ? errprintf (errp, "%s: %s", path, strerror (errno)) : 0;
}

/* --- reading ------------------------------------------------------------------------------------- */

static int check_rights (const struct stat *st, const char *path, idt_error_t *errp)
{
    if (st->st_uid != geteuid () && st->st_uid != 0)
        return errsetf (errp, EPERM,
                        "certificate %s belongs to user %u, not to user %u, who runs this broker: chown "
                        "it",
                        path, (unsigned)st->st_uid, (unsigned)geteuid ());
    if (st->st_mode & 077)
        return errsetf (errp, EPERM, "certificate %s has mode %04o: only its owner may read it, so chmod 0400 %s", path,
                        (unsigned)(st->st_mode & 07777), path);
    return 0;
}

/* Read the secret key of a text. The public key in the text must belong to it. */
static int parse (const char *text, uint8_t secret[CERTIFICATE_SECRET_SIZE])
{
    zconfig_t *root = zconfig_str_load (text);
    const char *secret_key = root ? zconfig_get (root, "/curve/secret-key", "") : "";
    const char *public_key = root ? zconfig_get (root, "/curve/public-key", "") : "";
    char real[KEY_TEXT];
    int rc = -1;

    if (strlen (secret_key) == KEY_TEXT - 1 && zmq_curve_public (real, secret_key) == 0
        && strcmp (real, public_key) == 0 && zmq_z85_decode (secret, secret_key))
        rc = 0;
    zconfig_destroy (&root);
    return rc;
}

static int read_fd (int fd, const char *path, uint8_t secret[CERTIFICATE_SECRET_SIZE], idt_error_t *errp)
{
    char text[MAX_SIZE + 1];
    struct stat st;
    ssize_t n;
    int rc;

    if (fstat (fd, &st) < 0)
        return errprintf (errp, "%s: %s", path, strerror (errno));
    if (!S_ISREG (st.st_mode))
        return errsetf (errp, EINVAL, "%s is not a certificate file", path);
    if ((n = read (fd, text, MAX_SIZE)) < 0)
        return errprintf (errp, "%s: %s", path, strerror (errno));
    text[n] = '\0';
    if ((rc = parse (text, secret)) < 0)
        rc = errsetf (errp, EINVAL, "%s has no secret-key and its public-key: make a certificate by idtree keygen",
                      path);
    explicit_bzero (text, sizeof (text));
    /* Checked after the text: the file may belong to another program, and then the advice to change its mode would be
     * wrong.
     */
    if (rc == 0 && (rc = check_rights (&st, path, errp)) < 0)
        explicit_bzero (secret, CERTIFICATE_SECRET_SIZE);
    return rc;
}

int certificate_read (const char *path, uint8_t secret[CERTIFICATE_SECRET_SIZE], idt_error_t *errp)
{
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc, saved;

    if (fd < 0)
        return errprintf (errp, "certificate %s: %s", path, strerror (errno));
    rc = read_fd (fd, path, secret, errp);
    saved = errno;
    close (fd);
    errno = saved;
    return rc;
}
