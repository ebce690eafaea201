/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* zmsg_test.c - messages on real ZeroMQ sockets: golden vectors, limits, broken peers, zero copy */
#include <errno.h>
#include <unistd.h>
#include <zmq.h>

#include "libmsg/vectors.h"
#include "libmsg/zmsg.h"

#define UUID_A "aaaaaaaa-0000-4000-8000-000000000001"
#define UUID_B "bbbbbbbb-0000-4000-8000-000000000002"
#define MAX_MESSAGE ((size_t)1 << 20)

/* A DEALER with identity UUID_A, connected to a ROUTER. */
struct wire {
    void *ctx;
    void *router;
    void *dealer;
};

static void wire_init (struct wire *w, const char *endpoint)
{
    int one = 1, zero = 0;

    w->ctx = zmq_ctx_new ();
    w->router = zmq_socket (w->ctx, ZMQ_ROUTER);
    w->dealer = zmq_socket (w->ctx, ZMQ_DEALER);
    zmq_setsockopt (w->router, ZMQ_ROUTER_MANDATORY, &one, sizeof (one));
    zmq_setsockopt (w->router, ZMQ_LINGER, &zero, sizeof (zero));
    zmq_setsockopt (w->dealer, ZMQ_LINGER, &zero, sizeof (zero));
    zmq_setsockopt (w->dealer, ZMQ_ROUTING_ID, UUID_A, IDT_MSG_UUID_LEN);
    if (zmq_bind (w->router, endpoint) < 0 || zmq_connect (w->dealer, endpoint) < 0)
        bail_out ("ZeroMQ sockets do not connect");
}

static void wire_fini (struct wire *w)
{
    zmq_close (w->dealer);
    zmq_close (w->router);
    zmq_ctx_term (w->ctx);
}

static void wait_readable (void *sock)
{
    zmq_pollitem_t item = { .socket = sock, .events = ZMQ_POLLIN };

    if (zmq_poll (&item, 1, -1) != 1)
        bail_out ("zmq_poll");
}

/* --- golden vectors ----------------------------------------------------------------------- */

static bool crosses (struct wire *w, const idt_msg_t *msg)
{
    struct zmsg_from from;
    idt_msg_t *up = NULL, *down = NULL;
    bool good;

    good = zmsg_send (w->dealer, NULL, msg) == 0;
    wait_readable (w->router);
    good = good && (up = zmsg_recv (w->router, true, MAX_MESSAGE, &from)) && same_message (up, msg)
           && !strcmp (from.identity, UUID_A) && zmsg_send (w->router, from.identity, up) == 0;
    wait_readable (w->dealer);
    good = good && (down = zmsg_recv (w->dealer, false, MAX_MESSAGE, NULL))
           && same_message (down, msg);
    idt_msg_unref (up);
    idt_msg_unref (down);
    return good;
}

static void test_golden (const char *endpoint)
{
    json_t *vectors = vectors_load ("rfc3-messages.json");
    struct wire w;
    json_t *vector;
    size_t i;

    wire_init (&w, endpoint);
    json_array_foreach (vectors, i, vector) {
        idt_msg_t *msg = vector_message (json_object_get (vector, "fields"));

        ok (crosses (&w, msg), "%s goes up and down over %s",
            json_string_value (json_object_get (vector, "name")), endpoint);
        idt_msg_unref (msg);
    }
    wire_fini (&w);
    json_decref (vectors);
}

int main (void)
{
    char ipc[64];

    snprintf (ipc, sizeof (ipc), "ipc://@idtree-zmsg-test-%d", getpid ());
    test_golden ("inproc://zmsg-test");
    test_golden (ipc);
    return done_testing ();
}
