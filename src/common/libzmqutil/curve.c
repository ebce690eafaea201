/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* curve.c - CURVE keys: which peers may connect, and the file with an instance's key
 *
 * The ZAP handler of a context (ZeroMQ RFC 27) receives requests and sends replies on a ROUTER socket. Request:
 * [identity, empty,] version, request id, domain, address, identity, mechanism, credentials. Reply: [identity, empty,]
 * version, request id, status code, status text, user id, metadata.
 */
#include "config.h"

#include <czmq.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "common/libzmqutil/curve.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/private_dir.h"

#define ZAP_ENDPOINT "inproc://zeromq.zap.01"
#define MAX_FRAMES 9 /* frames of a request */
#define DOMAIN_SIZE 64
#define FILE_MAX 4096 /* maximum bytes of a certificate's file */
#define KEY_TEXT 41   /* bytes of a key in Z85 with its NUL */

/* --- the ZAP handler ----------------------------------------------------------------------------- */

struct zap {
    struct zwatcher *zs;
    zap_f cb;
    void *arg;
};

struct frames {
    zmq_msg_t msg[MAX_FRAMES];
    int n;
};

static void frames_fini (struct frames *f)
{
    for (int i = 0; i < f->n; i++)
        zmq_msg_close (&f->msg[i]);
}

static bool frames_recv (void *sock, struct frames *f)
{
    f->n = 0;
    do {
        if (f->n == MAX_FRAMES)
            return false;
        zmq_msg_init (&f->msg[f->n]);
        if (zmq_msg_recv (&f->msg[f->n], sock, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close (&f->msg[f->n]);
            return false;
        }
    } while (zmq_msg_more (&f->msg[f->n++]));
    return f->n == MAX_FRAMES;
}

static bool frame_is (zmq_msg_t *frame, const char *s)
{
    return zmq_msg_size (frame) == strlen (s) && memcmp (zmq_msg_data (frame), s, strlen (s)) == 0;
}

static bool frame_text (zmq_msg_t *frame, char text[DOMAIN_SIZE])
{
    size_t n = zmq_msg_size (frame);

    if (n >= DOMAIN_SIZE)
        return false;
    memcpy (text, zmq_msg_data (frame), n);
    text[n] = '\0';
    return true;
}

static void send_text (void *sock, const char *s, int flags)
{
    zmq_send (sock, s, strlen (s), flags | ZMQ_DONTWAIT);
}

static void reply (void *sock, struct frames *f, const char *user)
{
    for (int i = 0; i < 4; i++) /* identity, delimiter, version, request id */
        zmq_send (sock, zmq_msg_data (&f->msg[i]), zmq_msg_size (&f->msg[i]), ZMQ_SNDMORE | ZMQ_DONTWAIT);
    send_text (sock, user ? "200" : "400", ZMQ_SNDMORE);
    send_text (sock, user ? "OK" : "unknown public key", ZMQ_SNDMORE);
    send_text (sock, user ? user : "", ZMQ_SNDMORE);
    send_text (sock, "", 0);
}

static bool zap_cb (struct zwatcher *zs, void *arg)
{
    struct zap *zap = arg;
    void *sock = zwatcher_socket (zs);
    char user[64];
    struct frames f;

    if (frames_recv (sock, &f)) {
        char domain[DOMAIN_SIZE];
        bool good = frame_is (&f.msg[2], "1.0") && frame_text (&f.msg[4], domain) && frame_is (&f.msg[7], "CURVE")
                    && zmq_msg_size (&f.msg[8]) == ZAP_KEY_SIZE
                    && zap->cb (domain, zmq_msg_data (&f.msg[8]), user, sizeof (user), zap->arg);

        reply (sock, &f, good ? user : NULL);
    }
    frames_fini (&f);
    return f.n > 0;
}

struct zap *zap_create (struct zpoll *zp, void *ctx, zap_f cb, void *arg)
{
    struct zap *zap = calloc (1, sizeof (*zap));

    if (!zap || !(zap->zs = zwatcher_create (zp, ctx, ZMQ_ROUTER, zap_cb, zap))
        || zmq_bind (zwatcher_socket (zap->zs), ZAP_ENDPOINT) < 0) {
        zap_destroy (zap);
        return NULL;
    }
    zap->cb = cb;
    zap->arg = arg;
    return zap;
}

void zap_destroy (struct zap *zap)
{
    if (zap) {
        zwatcher_destroy (zap->zs);
        free (zap);
    }
}

/* --- making a certificate -------------------------------------------------------------------------------------- */

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

/* Write a new file. It is written under a temporary name first, so that it appears only when it is complete. link ()
 * does not replace an existing file.
 */
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

/* --- reading a certificate ------------------------------------------------------------------------------------- */

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

/* Read the secret key in a certificate's text. The public key in the text must belong to the secret key. */
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
    char text[FILE_MAX + 1];
    struct stat st;
    ssize_t n;
    int rc;

    if (fstat (fd, &st) < 0)
        return errprintf (errp, "%s: %s", path, strerror (errno));
    if (!S_ISREG (st.st_mode))
        return errsetf (errp, EINVAL, "%s is not a certificate file", path);
    if ((n = read (fd, text, FILE_MAX)) < 0)
        return errprintf (errp, "%s: %s", path, strerror (errno));
    text[n] = '\0';
    if ((rc = parse (text, secret)) < 0)
        rc = errsetf (errp, EINVAL, "%s has no secret-key and its public-key: make a certificate by idtree keygen",
                      path);
    explicit_bzero (text, sizeof (text));
    /* The rights are checked only after the text: a file without keys may belong to another program, and the advice to
     * change its mode would be wrong.
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
