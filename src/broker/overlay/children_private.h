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

#define ADOPT_US 2000 /* time for adopting descendants in one turn */

#define WITNESSES_MAX 64 /* remembered ranks of another tree; so many are enough to decide */
#define WITNESS_S 60.    /* seconds that a remembered rank counts; a refused broker tries again within 15 s */

/* A hello of a broker.  The strings belong to 'o'. */
struct hello {
    const idt_msg_t *msg; /* NULL: no hello waits */
    struct wire_from from;
    uint64_t came_us; /* instance time on this rank when the hello arrived */
    uint64_t boot_us; /* link_boot_us () when the hello arrived */
    json_t *o;
    json_int_t rank;
    const char *uuid;
    const char *version;
    int protocol; /* version of the messages between brokers */
    const char *host;
    const char *topology; /* NULL: not given */
    const char *status;
    const char *instance, *name; /* instance of the sender; NULL: the sender knows none yet */
    int lived;                   /* the sender has joined that tree in this life, and does not only remember it */
    const char *stream;          /* stream of events that the sender follows; 'seq' is its last event */
    json_int_t seq;
    json_int_t size;   /* number of brokers of the instance, as the sender knows it; 0: not given */
    json_int_t joined; /* joined brokers of the sender's subtree; 0: not given */
    int link;          /* version for channel_open (); 0: not given */
};

struct child {
    struct peer peer;
    struct children *down;
    struct channel channel;
    uint64_t event;      /* newest event that was sent to the child, or that the child did not need */
    uint64_t event_next; /* event that is being sent to the child */
    enum health health;  /* health of the child's subtree, as the child reports it; LOST or OFFLINE if not connected */
    uint32_t joined;     /* joined brokers of the child's subtree, as the child reports it; 0 if not connected */
    double since;        /* link_now () when the health changed */
    double heard;        /* link_now () when the child's last message arrived */
    struct wire *wire;   /* the wire of the child's connection, or NULL */
    int line;            /* number of the child's connection on 'wire' */
    char uuid[IDT_MSG_UUID_LEN + 1]; /* incarnation of the broker that serves the rank */
    char host[256];
    bool adopted;
    double goodbye;     /* link_now () when the child's goodbye arrived; 0: no goodbye */
    struct hello hello; /* waits until this broker accepts children, or until the child's turn to be adopted */
};

struct children {
    struct overlay *ov;
    struct wire *outside;    /* wire for brokers of other processes; NULL: none of them can connect */
    struct wire *inside;     /* wire for brokers of this process; NULL: these connect like others */
    struct child **children; /* children proper in order of rank, then adopted children */
    uint32_t count;          /* number of children proper */
    uint32_t total;
    uint32_t size;   /* size of the array 'children' */
    uint32_t hellos; /* number of adopted children that wait to join */
    bool accept;
    bool is_known; /* a child that has joined already knew this instance */
    double taken;  /* link_now () when the first child joined; 0: no child has joined */
    struct witness {
        uint32_t rank; /* rank that belongs to another instance; 0: unused entry */
        double heard;  /* link_now () when a hello of this rank last arrived */
    } witness[WITNESSES_MAX];
    bool stopping; /* accepts no further child */
    bool doomed;   /* a child must be removed, because its channel is broken, or because it is adopted and has left */
    bool leaving;  /* a child has said goodbye */
};

/* --- children.c ----------------------------------------------------------------------------------- */

/* Make the record of a broker that is not connected.  Returns NULL without memory. */
struct child *child_create (struct children *down, uint32_t rank, bool adopted);

/* The record of a child proper, or NULL. */
struct child *child_proper (const struct children *down, uint32_t rank);

bool child_is_online (const struct child *c);
void child_set_health (struct child *c, enum health health);

/* Store the number of joined brokers that the child reports for its subtree.  The number may be too high;
 * overlay_joined () limits the sum to the size of the instance.
 */
void child_set_joined (struct child *c, uint32_t joined);

/* Remove a connected child.  If 'why' is not NULL, the child is "lost" for this reason, which is logged.  If 'why' is
 * NULL, the child is "offline", because it said goodbye or was dismissed.
 */
void child_remove (struct child *c, const char *why);

/* Send a disconnect to a connection. */
void children_send_disconnect (struct children *down, struct wire *w, const char *identity, int errnum,
                               const char *why);

/* --- hello.c ------------------------------------------------------------------------------- */

/* Handle a message whose identity does not belong to a child (steals the reference). */
void children_stranger (struct children *down, idt_msg_t *msg, const struct wire_from *from);

/* Adopt some of the waiting descendants whose own parent is lost.  Returns whether others still wait. */
bool children_adopt (struct children *down);

/* Drop a hello. */
void hello_clear (struct hello *hello);

/* Answer a waiting hello, so that the child joins. */
void child_take_in (struct child *c);

#endif /* BROKER_CHILDREN_PRIVATE_H */
