/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wire.h - messages to and from other brokers, over any transport
 *
 * A wire is the lower end of one connection, to a broker above (wire_connect ()), or the upper end of any number of
 * connections (wire_listen (), wire_listen_inside ()).  Kinds:
 *
 *   zmq     a DEALER and a ROUTER over tcp or ipc with CURVE.  The key identifies the connecting broker.
 *   inproc  the same inside a process, without CURVE
 *   memory  queues between objects of a process (inside.h)
 *
 * Inside a process its registry (struct inside) identifies the connecting broker: no other process reaches the registry
 * or an inproc endpoint.  Messages and the trust in them are the same for all kinds.
 *
 * Messages and ends are reported in zpoll_turn (), ends also in wire_read_ends (), and nothing within wire_send ().
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

/* The settings of all wires of a broker.  The wires borrow them. */
struct wire_conf {
    struct zpoll *zpoll;
    void *zctx;
    struct inside *inside; /* NULL: no other broker in this process */
    enum wire_kind kind;   /* of links inside the process; WIRE_ZMQ: as outside */
    uint32_t rank;
    const char *public_key; /* in Z85 */
    const char *secret_key;
    const char *domain; /* of ZAP */
    uint32_t hwm;       /* messages queued in one connection, each way */
    size_t max_queue;   /* bytes of them; only for kind memory */
    size_t max_message; /* bytes of one, as idt_msg_encode_size () counts */
    size_t max_frame;
    int timeout_ms; /* until a connection is closed that takes nothing (tcp), or shows no key (at most 5000) */
};

/* The sender of a message.  At a lower end the sender is known; 'identity' and 'line' are unused there. */
struct wire_from {
    struct wire *wire;
    char identity[IDT_MSG_UUID_LEN + 1]; /* of the connection; "" if unknown */
    uint32_t rank;                       /* by its key, or the registry; TOPO_NONE: unknown */
    int line;                            /* of the connection, as in 'closed' */
};

struct wire_ops {
    /* A message arrived (steals the reference).  NULL: a message is lost, with errno EPROTO (malformed), EMSGSIZE or
     * ENOMEM; the messages of that connection are then incomplete.
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

/* Connect to a broker above under an identity that was never used, inside the process if the broker is there.  Returns
 * NULL with errno set.
 */
struct wire *wire_connect (const struct wire_conf *conf, const struct wire_target *to, const char *identity,
                           const struct wire_ops *ops, void *arg);

/* Listen at an endpoint of tcp or ipc; or for brokers of this process, by conf->kind.  Returns NULL with errno set. */
struct wire *wire_listen (const struct wire_conf *conf, const char *endpoint, const struct wire_ops *ops, void *arg);
struct wire *wire_listen_inside (const struct wire_conf *conf, const struct wire_ops *ops, void *arg);

/* Close a wire; sent messages may still leave for 'linger_ms'.  May be called from callbacks.  NULL is allowed; errno
 * is kept.
 */
void wire_close (struct wire *w, int linger_ms);

enum wire_kind wire_kind (const struct wire *w);
const char *wire_endpoint (const struct wire *w); /* the actual endpoint of wire_listen () */

/* The form of a message in ZeroMQ: a frame for each part, which any peer takes, or one frame. */
enum wire_form { WIRE_PARTS, WIRE_WHOLE };

/* 'identity' is the receiver; NULL at a lower end.  Returns 0, or -1 with errno set: EAGAIN (full), EHOSTUNREACH (no
 * such connection) or others.
 */
int wire_send (struct wire *w, const char *identity, const idt_msg_t *msg, enum wire_form form);

/* wire_look (): check for input even without an event.  wire_is_dry (): whether all input was read since then. */
void wire_look (struct wire *w);
bool wire_is_dry (const struct wire *w);

/* Whether the other side took the connection, even if it refused afterwards.  For a lower end over tcp or ipc. */
bool wire_was_reached (const struct wire *w);

/* Call back for the ends that are known by now: the number of a line may be in use again. */
void wire_read_ends (struct wire *w);

#endif /* BROKER_WIRE_H */
