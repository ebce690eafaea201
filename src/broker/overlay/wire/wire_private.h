/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wire_private.h - what the kinds of wires share: wire.c, wire_zmq.c, wire_memory.c */
#ifndef BROKER_WIRE_PRIVATE_H
#define BROKER_WIRE_PRIVATE_H

#include "broker/overlay/wire/wire.h"
#include "libutil/listener.h"

struct wire_class {
    int (*send) (struct wire *w, const char *identity, const idt_msg_t *msg, enum wire_form form);
    void (*read_ends) (struct wire *w);
    void (*destroy) (struct wire *w, int linger_ms); /* frees it, too; parts may be missing */
};

struct wire {
    const struct wire_class *class;
    const struct wire_conf *conf;
    const struct wire_ops *ops;
    void *arg;
    enum wire_kind kind;
    struct zwatcher *zs;
    struct monitor *monitor;  /* tells when a connection over tcp or ipc is closed; NULL: it is neither */
    struct inside_port *port; /* where others of this process connect; NULL: none */
    struct inside_line *line; /* to such a one; NULL: none */
    char endpoint[256];
    struct listener_place place; /* of the socket at an endpoint of ipc */
    bool is_above;
    bool dry;     /* nothing was left since wire_look () */
    bool reached; /* the other end's process or its host took the connection */
};

/* One that has no more than that yet.  NULL with errno ENOMEM. */
struct wire *wire_create (const struct wire_class *class, enum wire_kind kind, bool is_above,
                          const struct wire_conf *conf, const struct wire_ops *ops, void *arg);

/* Make the port, or the line, through which those of a process know each other.  Return 0, or -1 with errno set. */
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
