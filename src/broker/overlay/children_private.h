/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* children_private.h - what the two files of the children share
 *
 *   children.c  connections, loss, messages, events, descriptions
 *   hello.c     which brokers may join
 */
#ifndef BROKER_CHILDREN_PRIVATE_H
#define BROKER_CHILDREN_PRIVATE_H

#include "broker/overlay/link.h"

#define ADOPT_US 2000 /* for adopting descendants, per turn */

#define WITNESSES_MAX 64 /* ranks of another tree that are remembered: enough to decide */
#define WITNESS_S 60.    /* how long each counts: a refused broker tries again within 15 s */

/* A hello of a broker.  Its texts belong to 'o'. */
struct hello {
    const idt_msg_t *msg; /* NULL: none waits */
    struct wire_from from;
    uint64_t came_us; /* instance time here when it arrived */
    uint64_t boot_us; /* link_boot_us () at that time */
    json_t *o;
    json_int_t rank;
    const char *uuid;
    const char *version;
    const char *host;
    const char *topology; /* NULL: not given */
    const char *status;
    const char *instance, *name; /* its instance; NULL: it knows none yet */
    int lived;                   /* it has joined that tree in this life, and does not only remember it */
    const char *stream;          /* of events, with its last event in 'seq' */
    json_int_t seq;
    json_int_t size;   /* of its instance, as it knows; 0: not given */
    json_int_t joined; /* brokers of its subtree; 0: not given */
    int link;          /* version of the link, as channel_open (); 0: not given */
};

struct child {
    struct peer peer;
    struct children *down;
    struct channel channel;
    uint64_t event;                  /* last event sent to it, or that it does not need */
    uint64_t event_next;             /* event that is being sent */
    enum health health;              /* of its subtree, as it reports; LOST or OFFLINE if not connected */
    uint32_t joined;                 /* joined brokers of its subtree, as it reports; 0 if not connected */
    double since;                    /* link_now () of the last change of health */
    double heard;                    /* link_now () of its last message */
    struct wire *wire;               /* of its connection, or NULL */
    int line;                        /* number of its connection on the wire */
    char uuid[IDT_MSG_UUID_LEN + 1]; /* incarnation of the broker */
    char host[256];
    bool adopted;
    double goodbye;     /* link_now () of its goodbye; 0: none yet */
    struct hello hello; /* waits until this broker accepts children */
};

struct children {
    struct overlay *ov;
    struct wire *outside;    /* NULL: no other process can connect */
    struct wire *inside;     /* NULL: brokers of this process connect as others do */
    struct child **children; /* children proper in order of rank, then adopted ones */
    uint32_t count;          /* of the children proper */
    uint32_t total;
    uint32_t size;   /* of the array */
    uint32_t hellos; /* adopted children that wait to join */
    bool accept;
    bool is_known; /* a child that joined knew this instance */
    double taken;  /* link_now () when the first child joined; 0: none has */
    struct witness {
        uint32_t rank; /* of another instance's tree; 0: unused entry */
        double heard;  /* link_now () of its last hello */
    } witness[WITNESSES_MAX];
    bool stopping; /* accepts no further child */
    bool doomed;   /* a child is to be removed: its channel is broken, or it is adopted and has left */
    bool leaving;  /* a child has said goodbye */
};

/* --- children.c ----------------------------------------------------------------------------------- */

/* Create the record of a broker that is not connected.  Returns NULL without memory. */
struct child *child_create (struct children *down, uint32_t rank, bool adopted);

/* The record of a child proper, or NULL. */
struct child *child_proper (const struct children *down, uint32_t rank);

bool child_is_online (const struct child *c);
void child_set_health (struct child *c, enum health health);

/* Record the number of joined brokers that the child reports for its subtree.  It may be too high: the sum, which
 * overlay_joined () returns, is limited to the size of the instance.
 */
void child_set_joined (struct child *c, uint32_t joined);

/* Remove a connected child: it is "lost" for the reason 'why', which is logged; or NULL: it is "offline", because it
 * said goodbye or was dismissed.
 */
void child_remove (struct child *c, const char *why);

/* Send a disconnect to a connection. */
void children_send_disconnect (struct children *down, struct wire *w, const char *identity, int errnum,
                               const char *why);

/* --- hello.c ------------------------------------------------------------------------------- */

/* Handle a message of an identity that is no child's (steals the reference). */
void children_stranger (struct children *down, idt_msg_t *msg, const struct wire_from *from);

/* Adopt some of the waiting descendants whose parent is lost.  Returns whether others still wait. */
bool children_adopt (struct children *down);

/* Drop a hello. */
void hello_clear (struct hello *hello);

/* Answer a waiting hello: the child joins. */
void child_take_in (struct child *c);

#endif /* BROKER_CHILDREN_PRIVATE_H */
