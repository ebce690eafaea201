/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_zap.c - requests to the ZAP handler with any frames, from a real socket of the same context
 *
 * The input is frames: a byte for the length, then the bytes. A length of 255 begins the next request. Afterwards a
 * valid request is sent and must be granted, which shows that the handler still works.
 */
#include <zmq.h>

#include "common/libzmqutil/curve.h"
#include "fuzz.h"

#define REQUESTS_MAX 16
#define PATIENCE_MS 60000

static const uint8_t good_key[ZAP_KEY_SIZE] = "the key of rank 1, 32 bytes long";

static bool zap_cb (const char *domain, const uint8_t key[ZAP_KEY_SIZE], char *user, size_t size, void *arg)
{
    must (strlen (domain) < 64);
    if (memcmp (key, good_key, ZAP_KEY_SIZE) != 0)
        return false;
    user[0] = '1';
    user[1] = '\0';
    return true;
}

struct rig {
    idt_reactor_t *r;
    void *ctx;
    struct zpoll *zp;
    struct zap *zap;
};

static void setup (struct rig *rig)
{
    must ((rig->r = idt_reactor_create ()) && (rig->ctx = zmq_ctx_new ()) && (rig->zp = zpoll_create (rig->r)));
    must ((rig->zap = zap_create (rig->zp, rig->ctx, zap_cb, NULL)) != NULL);
}

static void turn (struct rig *rig)
{
    do
        must (idt_reactor_run (rig->r, IDT_REACTOR_NOWAIT) == 0);
    while (zpoll_turn (rig->zp));
}

static void send_frames (void *sock, struct input *in)
{
    uint8_t buf[256], len = input_byte (in);

    while (in->left > 0 && len != 255) {
        uint8_t next;

        input_bytes (in, buf, len);
        next = input_byte (in);
        zmq_send (sock, buf, len, ZMQ_DONTWAIT | (in->left > 0 && next != 255 ? ZMQ_SNDMORE : 0));
        len = next;
    }
}

static void send_good (void *sock)
{
    static const char *const frames[] = { "", "1.0", "last", "idtree", "127.0.0.1", "", "CURVE" };

    for (size_t i = 0; i < sizeof (frames) / sizeof (frames[0]); i++)
        zmq_send (sock, frames[i], strlen (frames[i]), ZMQ_SNDMORE | ZMQ_DONTWAIT);
    zmq_send (sock, good_key, sizeof (good_key), ZMQ_DONTWAIT);
}

/* Read a reply. Sets '*n' to the number of frames, 'id' to the request's id, and 'status' to the status. */
static bool get_reply (void *sock, int *n, char id[8], char status[8])
{
    int more;
    size_t size = sizeof (more);
    char buf[256];

    *n = 0;
    do {
        int len = zmq_recv (sock, buf, sizeof (buf), ZMQ_DONTWAIT);
        if (len < 0)
            return *n > 0;
        char *to = *n == 2 ? id : *n == 3 ? status : NULL;
        if (to) {
            len = len < 7 ? len : 7;
            memcpy (to, buf, len);
            to[len] = '\0';
        }
        ++*n;
        must (zmq_getsockopt (sock, ZMQ_RCVMORE, &more, &size) == 0);
    } while (more);
    return true;
}

/* Make a socket. This may fail for a while, because closed sockets count until ZeroMQ's own thread has removed them. */
static void *make_socket (struct rig *rig)
{
    void *sock;

    for (int i = 0; i < PATIENCE_MS && !(sock = zmq_socket (rig->ctx, ZMQ_DEALER)); i++) {
        turn (rig);
        zmq_poll (NULL, 0, 1);
    }
    return sock;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static struct rig rig; /* made only once, because a context has threads */
    struct input in = { data, size };
    char id[8] = "", status[8] = "";
    bool granted = false;
    int n, linger = 0;

    if (!rig.zap)
        setup (&rig);
    void *sock = make_socket (&rig);
    must (sock && zmq_setsockopt (sock, ZMQ_LINGER, &linger, sizeof (linger)) == 0
          && zmq_connect (sock, "inproc://zeromq.zap.01") == 0);
    for (int i = 0; i < REQUESTS_MAX && in.left > 0; i++)
        send_frames (sock, &in);
    send_good (sock);
    for (int i = 0; i < PATIENCE_MS && !granted; i++) {
        turn (&rig);
        zmq_poll (&(zmq_pollitem_t){ .socket = sock, .events = ZMQ_POLLIN }, 1, 1);
        while (get_reply (sock, &n, id, status)) {
            must (n == 7 && (strcmp (status, "200") == 0 || strcmp (status, "400") == 0));
            granted = granted || (strcmp (id, "last") == 0 && strcmp (status, "200") == 0);
        }
    }
    must (granted);
    zmq_close (sock);
    turn (&rig);
    return 0;
}
