/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* parent_private.h - what parent.c (connections, loss, beats) and parent_hello.c (who takes us in) share */
#ifndef BROKER_PARENT_PRIVATE_H
#define BROKER_PARENT_PRIVATE_H

#include "broker/overlay/link.h"

#define RETRY_MIN_MS 20.
#define RETRY_MAX_MS 500.
#define REFUSED_MAX_MS 10e3 /* where somebody is there, and does not want us */
#define PROBE_MS 1000.      /* between attempts to return */

enum conn_state { CONN_IDLE, CONN_HELLO, CONN_JOINED, CONN_LEAVING };

struct conn {
    struct parent *up;
    enum conn_state state;
    uint32_t target; /* index in the ancestors */
    struct peer peer;
    struct channel channel;
    struct wire *wire;
    char identity[IDT_MSG_UUID_LEN + 1]; /* of the connection: routes of what came over it have it */
    bool late;                           /* the answer to its hello is, unless it is there already */
    bool refused;                        /* since the last pause: somebody was there who does not want us */
    double heard;                        /* link_now () of its last message */
    uint64_t hello_us;                   /* link_boot_us () when we said hello */
    uint64_t doubt_us;                   /* ... when it became doubtful that the parent still knows us; 0: it is not */
    uint32_t joined;                     /* brokers of our subtree that its other end was told of */
    uint64_t keys_us; /* ... when keys were sent last that it has not answered a beat after; 0: none */
};

struct parent {
    struct overlay *ov;
    struct conn conn[2];
    struct conn *used;
    struct conn *probe;
    idt_watcher_t *retry; /* IDLE: time to try again; HELLO: no answer came */
    idt_watcher_t *probe_timer;
    double probe_ms; /* until it is tried again */
    double retry_ms;
    unsigned seed;   /* of the jitter */
    bool has_joined; /* ever */
    int attempts;    /* that failed since a broker answered */
    /* The ancestor that said last that another broker serves our rank: an index; TOPO_NONE: none did. */
    uint32_t served_at;
    bool stopping;
};

static inline const struct bizcard *conn_target (const struct conn *c)
{
    return &c->up->ov->ancestors[c->target];
}

/* --- parent.c ------------------------------------------------------------------------------------- */

/* As struct peer wants it. */
int conn_send (void *arg, const idt_msg_t *msg);
void conn_hang_up (void *arg);

/* It is connected no more, and what follows from that.  'why' NULL: nothing to be told. */
void conn_lose (struct conn *c, const char *why);

/* Close it, and no more than that. */
void conn_close (struct conn *c, int linger_ms);

double parent_jitter (struct parent *up); /* a factor */
void parent_start_timer (idt_watcher_t *w, double ms);

/* --- parent_hello.c ------------------------------------------------------------------------------- */

idt_msg_t *conn_make_hello (struct conn *c); /* NULL: no memory */

/* The answer came. */
void conn_hello_answered (struct conn *c, const idt_msg_t *msg);

/* Hand a reading of the parent's clock to who attached one. */
void conn_take_time (struct conn *c, const struct idt_clock_sample *sample);

/* Tell what is news of the keys below. */
void conn_send_keys (struct conn *c);

/* Tell everybody inside that the way up is open, or gone. */
void parent_tell (struct parent *up, bool open);

#endif /* BROKER_PARENT_PRIVATE_H */
