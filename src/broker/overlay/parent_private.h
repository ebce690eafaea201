/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* parent_private.h - what parent.c (connections, loss, heartbeats) and parent_hello.c (hello) share */
#ifndef BROKER_PARENT_PRIVATE_H
#define BROKER_PARENT_PRIVATE_H

#include "broker/overlay/link.h"

#define RETRY_MIN_MS 20.
#define RETRY_MAX_MS 500.
#define REFUSED_MAX_MS 10e3 /* longest pause after a refusal */
#define PROBE_MS 1000.      /* between attempts to return */

enum conn_state { CONN_IDLE, CONN_HELLO, CONN_JOINED, CONN_LEAVING };

struct conn {
    struct parent *up;
    enum conn_state state;
    uint32_t target; /* index in the ancestors */
    struct peer peer;
    struct channel channel;
    struct wire *wire;
    char identity[IDT_MSG_UUID_LEN + 1]; /* of the connection: its messages have it in their routes */
    bool late;                           /* no response to its hello in time, unless it is still unread */
    bool refused;                        /* it was refused since the last pause */
    double heard;                        /* link_now () of its last message */
    uint64_t hello_us;                   /* link_boot_us () of our hello */
    uint64_t doubt_us;                   /* ... since when the parent may have given us up; 0: no doubt */
    uint32_t joined;                     /* joined brokers of our subtree, as last reported to it */
    uint64_t keys_us;                    /* ... of the last keys sent, until it answers a later heartbeat; 0: none */
};

struct parent {
    struct overlay *ov;
    struct conn conn[2];
    struct conn *used;
    struct conn *probe;
    idt_watcher_t *retry; /* IDLE: next attempt; HELLO: timeout */
    idt_watcher_t *probe_timer;
    double probe_ms; /* pause before the next probe */
    double retry_ms;
    unsigned seed;   /* of the jitter */
    bool has_joined; /* at least once */
    int attempts;    /* failed since a broker answered */
    /* The index of the ancestor that last reported another broker of our rank, or TOPO_NONE. */
    uint32_t served_at;
    bool stopping;
};

static inline const struct bizcard *conn_target (const struct conn *c)
{
    return &c->up->ov->ancestors[c->target];
}

/* --- parent.c ------------------------------------------------------------------------------------- */

/* Operations of struct peer. */
int conn_send (void *arg, const idt_msg_t *msg);
void conn_hang_up (void *arg);

/* Close a connection and act on its loss.  'why' is logged; NULL: nothing to log. */
void conn_lose (struct conn *c, const char *why);

/* Close a connection, without further action. */
void conn_close (struct conn *c, int linger_ms);

double parent_jitter (struct parent *up); /* a random factor */
void parent_start_timer (idt_watcher_t *w, double ms);

/* --- parent_hello.c ------------------------------------------------------------------------------- */

idt_msg_t *conn_make_hello (struct conn *c); /* NULL without memory */

/* The response to hello arrived. */
void conn_hello_answered (struct conn *c, const idt_msg_t *msg);

/* Pass a reading of the parent's clock to the attached clock. */
void conn_take_time (struct conn *c, const struct idt_clock_sample *sample);

/* Send new keys of descendants. */
void conn_send_keys (struct conn *c);

/* Notify the clock's module and the broker that the way up is open or closed. */
void parent_tell (struct parent *up, bool open);

#endif /* BROKER_PARENT_PRIVATE_H */
