/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* zap.c - decide which peers may connect: the ZAP handler of one ZeroMQ context (ZeroMQ RFC 27)
 *
 * Request: [identity, empty,] version, request id, domain, address, identity, mechanism, credentials. Reply:
 * [identity, empty,] version, request id, status code, status text, user id, metadata.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "common/libzmqutil/zap.h"

#define ZAP_ENDPOINT "inproc://zeromq.zap.01"
#define MAX_FRAMES 9 /* of a request */
#define DOMAIN_SIZE 64

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
