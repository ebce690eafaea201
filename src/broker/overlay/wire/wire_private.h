/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wire_private.h - what the kinds of wires share: wire.c, wire_zmq.c, wire_memory.c */
#ifndef BROKER_WIRE_PRIVATE_H
#define BROKER_WIRE_PRIVATE_H

#include "broker/overlay/wire/wire.h"
#include "libutil/private_dir.h"

struct wire_class {
    int (*send) (struct wire *w, const char *identity, const idt_msg_t *msg, enum wire_form form);
    void (*read_ends) (struct wire *w);
    void (*destroy) (struct wire *w, int linger_ms); /* frees the wire; members may be missing */
};

struct wire {
    const struct wire_class *class;
    const struct wire_conf *conf;
    const struct wire_ops *ops;
    void *arg;
    enum wire_kind kind;
    struct zwatcher *zs;
    struct monitor *monitor;  /* reports closed connections over tcp or ipc; NULL for other kinds */
    struct inside_port *port; /* for brokers of this process; may be NULL */
    struct inside_line *line; /* to a broker of this process; may be NULL */
    char endpoint[256];
    struct listener_place place; /* of the socket at an ipc endpoint */
    bool is_above;
    bool dry;     /* no input was left since wire_look () */
    bool reached; /* the other side's process or host took the connection */
};

/* A wire without port, line or socket yet.  NULL with errno ENOMEM. */
struct wire *wire_create (const struct wire_class *class, enum wire_kind kind, bool is_above,
                          const struct wire_conf *conf, const struct wire_ops *ops, void *arg);

/* Create the port, or the line, that identifies brokers of this process.  Return 0, or -1 with errno set. */
int wire_open_port (struct wire *w);
int wire_open_line (struct wire *w, struct inside_port *port, const char *identity);

/* 'port' NULL: listen. */
struct wire *wire_memory_create (const struct wire_conf *conf, struct inside_port *port, const char *identity,
                                 const struct wire_ops *ops, void *arg);
struct wire *wire_inproc_create (const struct wire_conf *conf, struct inside_port *port, const char *identity,
                                 const struct wire_ops *ops, void *arg);

struct wire *wire_zmq_connect (const struct wire_conf *conf, const struct wire_target *to, const char *identity,
                               const struct wire_ops *ops, void *arg);

#endif /* BROKER_WIRE_PRIVATE_H */
