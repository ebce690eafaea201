/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wire.h - messages to and from other brokers, over any transport
 *
 * A wire is the lower end of one connection, to a broker above (wire_connect ()), or the upper end of any number of
 * connections from brokers below (wire_listen (), wire_listen_inside ()).  There are three kinds:
 *
 *   zmq     a DEALER and a ROUTER over tcp or ipc with CURVE.  The key identifies the connecting broker.
 *   inproc  the same sockets inside a process, without CURVE
 *   memory  queues between objects of a process (inside.h)
 *
 * Inside a process, the registry of the process (struct inside) identifies the connecting broker.  No other process
 * reaches the registry or an inproc endpoint, so the registry can be trusted.  The messages, and how far they are
 * trusted, are the same for all kinds.
 *
 * Messages and the ends of connections are reported in zpoll_turn (), ends also in wire_read_ends ().  Nothing is
 * reported within wire_send ().
 */
#ifndef BROKER_WIRE_H
#define BROKER_WIRE_H

#include <idtree/msg.h>

#include "broker/overlay/wire/inside.h"
#include "common/libzmqutil/curve.h"
#include "common/libzmqutil/zwatcher.h"

struct wire;

enum wire_kind { WIRE_ZMQ, WIRE_INPROC, WIRE_MEMORY };

const char *wire_kind_name (enum wire_kind kind); /* "zmq", ... */

/* Returns 0, or -1 with errno EINVAL for an unknown name. */
int wire_kind_decode (const char *name, enum wire_kind *kind);

/* The settings of all wires of a broker.  The wires borrow this object. */
struct wire_conf {
    struct zpoll *zpoll;
    void *zctx;
    struct inside *inside; /* registry of the process; NULL: the process has no other broker */
    enum wire_kind kind;   /* kind of links inside the process; WIRE_ZMQ: like links to other processes */
    uint32_t rank;
    const char *public_key; /* text in Z85 */
    const char *secret_key;
    const char *domain; /* ZAP domain */
    uint32_t hwm;       /* largest number of messages queued in one connection, in each direction */
    size_t max_queue;   /* largest number of bytes of these messages; only for kind memory */
    size_t max_message; /* largest number of bytes of a message, as idt_msg_encode_size () counts */
    size_t max_frame;
    int timeout_ms; /* until a connection is closed that takes nothing (tcp), or that has shown no key (at most 5000) */
};

/* The sender of a message.  At a lower end there is only one sender, so 'identity' and 'line' are unused. */
struct wire_from {
    struct wire *wire;
    char identity[IDT_MSG_UUID_LEN + 1]; /* identity of the connection; "" if unknown */
    uint32_t rank;                       /* rank that the key or the registry gives; TOPO_NONE: unknown */
    int line;                            /* number of the connection, the same as in 'closed' */
};

struct wire_ops {
    /* A message has arrived (steals the reference).  'msg' NULL: a message was lost, with errno EPROTO (malformed),
     * EMSGSIZE or ENOMEM.  The messages of this connection are then incomplete.
     */
    void (*received) (void *arg, idt_msg_t *msg, const struct wire_from *from);
    /* A connection is closed. */
    void (*closed) (void *arg, struct wire *w, int line);
};

struct wire_target {
    uint32_t rank;
    const char *endpoint;
    const uint8_t *key; /* ZAP_KEY_SIZE bytes */
};

/* Connect to a broker above, inside the process if that broker is in it.  'identity' must never have been used before.
 * Returns NULL with errno set.
 */
struct wire *wire_connect (const struct wire_conf *conf, const struct wire_target *to, const char *identity,
                           const struct wire_ops *ops, void *arg);

/* wire_listen (): listen at an endpoint of tcp or ipc.  wire_listen_inside (): listen for brokers of this process;
 * conf->kind selects the kind.  Both return NULL with errno set.
 */
struct wire *wire_listen (const struct wire_conf *conf, const char *endpoint, const struct wire_ops *ops, void *arg);
struct wire *wire_listen_inside (const struct wire_conf *conf, const struct wire_ops *ops, void *arg);

/* Close a wire.  Messages that were sent may still leave for 'linger_ms'.  May be called from callbacks.  NULL is
 * allowed; errno is kept.
 */
void wire_close (struct wire *w, int linger_ms);

enum wire_kind wire_kind (const struct wire *w);
const char *wire_endpoint (const struct wire *w); /* the endpoint at which wire_listen () actually listens */

/* The form of a message in ZeroMQ.  WIRE_PARTS: a frame for each part, which any peer takes.  WIRE_WHOLE: one frame. */
enum wire_form { WIRE_PARTS, WIRE_WHOLE };

/* Send a message.  'identity' names the receiver; NULL at a lower end.  Returns 0, or -1 with errno set: EAGAIN (full),
 * EHOSTUNREACH (no such connection) or others.
 */
int wire_send (struct wire *w, const char *identity, const idt_msg_t *msg, enum wire_form form);

/* wire_look (): check for input, even without an event.  wire_is_dry (): whether all input was read since the last
 * wire_look ().
 */
void wire_look (struct wire *w);
bool wire_is_dry (const struct wire *w);

/* Whether the other side took the connection, even if it refused us afterwards.  Only for a lower end over tcp or ipc.
 */
bool wire_was_reached (const struct wire *w);

/* Report the ends of connections that are known by now.  Must be called before the number of a connection is used,
 * because a closed connection may have had the same number.
 */
void wire_read_ends (struct wire *w);

#endif /* BROKER_WIRE_H */
