/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wire.h - messages to and from other brokers, whatever carries them
 *
 * A wire is the lower end of one connection, to a broker above (wire_connect ()), or the upper end of any number of
 * them (wire_listen (), wire_listen_inside ()).  Kinds:
 *
 *   zmq     a DEALER and a ROUTER over tcp or ipc with CURVE.  Who connects is known by the key that he showed.
 *   inproc  the same inside of a process, without CURVE
 *   memory  queues between objects of a process (inside.h)
 *
 * Inside of a process who connects is known by the registry of the process (struct inside): no other process reaches
 * that, or an inproc endpoint.  What a message may be, and what is believed of it, is the same in all kinds.
 *
 * Messages and ends are told in zpoll_turn (), never from within wire_send ().
 */
#ifndef BROKER_WIRE_H
#define BROKER_WIRE_H

#include <idtree/msg.h>

#include "broker/overlay/wire/inside.h"
#include "common/libzmqutil/zap.h"
#include "common/libzmqutil/zwatcher.h"

struct wire;

enum wire_kind { WIRE_ZMQ, WIRE_INPROC, WIRE_MEMORY };

const char *wire_kind_name (enum wire_kind kind); /* "zmq", ... */

/* Returns 0, or -1 with errno EINVAL: no kind has that name. */
int wire_kind_decode (const char *name, enum wire_kind *kind);

/* What all wires of a broker have in common.  Borrowed by them. */
struct wire_conf {
    struct zpoll *zpoll;
    void *zctx;
    struct inside *inside; /* NULL: no other broker is in this process */
    enum wire_kind kind;   /* of links inside of it; WIRE_ZMQ: the same as outside */
    uint32_t rank;
    const char *public_key; /* in Z85 */
    const char *secret_key;
    const char *domain; /* of ZAP */
    uint32_t hwm;       /* messages that may wait in one connection, each way */
    size_t max_queue;   /* bytes of them, where that is ours to count: in memory */
    size_t max_message; /* bytes of one, as idt_msg_encode_size () counts */
    size_t max_frame;
    int timeout_ms; /* until a connection is closed that takes nothing (tcp), or that shows no key */
};

/* Whose message it is.  To a lower end the other one is known: 'identity' and 'line' mean nothing there. */
struct wire_from {
    struct wire *wire;
    char identity[IDT_MSG_UUID_LEN + 1]; /* of the connection; "": not even that is known */
    uint32_t rank;                       /* by whose key, or the registry; TOPO_NONE: unknown */
    int line;                            /* of the connection, as 'closed' names it */
};

struct wire_ops {
    /* A message came (steals the reference).  NULL: one is lost, with errno EPROTO (it was malformed), EMSGSIZE or
     * ENOMEM; what came over that connection before and after it is not whole.
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

/* Connect to a broker above under an identity that was never used, inside of the process if it is there.  NULL with
 * errno set.
 */
struct wire *wire_connect (const struct wire_conf *conf, const struct wire_target *to, const char *identity,
                           const struct wire_ops *ops, void *arg);

/* Listen at an endpoint of tcp or ipc; or for those in this process, by conf->kind.  NULL with errno set. */
struct wire *wire_listen (const struct wire_conf *conf, const char *endpoint, const struct wire_ops *ops, void *arg);
struct wire *wire_listen_inside (const struct wire_conf *conf, const struct wire_ops *ops, void *arg);

/* What was sent may still go out for so long.  Also from within callbacks; NULL is fine; errno is kept. */
void wire_close (struct wire *w, int linger_ms);

enum wire_kind wire_kind (const struct wire *w);
const char *wire_endpoint (const struct wire *w); /* of wire_listen (): where that is */

/* How ZeroMQ has a message: in a frame for each part, as any peer takes it, or in one. */
enum wire_form { WIRE_PARTS, WIRE_WHOLE };

/* 'identity': to whom; of a lower end NULL.  Returns 0, or -1 with errno set: EAGAIN (full), EHOSTUNREACH (no such
 * connection) or others.
 */
int wire_send (struct wire *w, const char *identity, const idt_msg_t *msg, enum wire_form form);

/* Look whether there is something to read, told or not; once all of it was read the wire is dry. */
void wire_look (struct wire *w);
bool wire_is_dry (const struct wire *w);

/* Whether somebody took the connection, whatever he said then: of a lower end over tcp or ipc. */
bool wire_was_reached (const struct wire *w);

/* Call back for the ends that are known by now: a line's number may be in use again. */
void wire_read_ends (struct wire *w);

#endif /* BROKER_WIRE_H */
