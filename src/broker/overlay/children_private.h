/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* children_private.h - what children.c (the connection, loss, messages), hello.c (who is taken in) and
 * children_events.c (events) share
 */
#ifndef BROKER_CHILDREN_PRIVATE_H
#define BROKER_CHILDREN_PRIVATE_H

#include "broker/overlay/link.h"

#define ADOPT_US 2000 /* for descendants that are taken in, of a turn */

#define WITNESSES_MAX 64 /* ranks of another tree that are noted: so many are enough */
#define WITNESS_S 60.    /* for which each counts: who is refused asks again each 15 s at least */

struct child {
    struct peer peer;
    struct children *down;
    struct channel channel;
    uint64_t event;      /* number of the last event that was sent to it, or that it has no more need of */
    uint64_t event_next; /* ... of the one that is being sent */
    enum health health;  /* of its subtree, as it says; LOST and OFFLINE: not connected */
    uint32_t joined;     /* brokers of its subtree that are in the tree, as it says; 0: it is not connected */
    double since;        /* link_now () of the last change of health */
    double heard;        /* link_now () of its last message */
    struct wire *wire;   /* it is connected to; NULL: none */
    int line;            /* of its connection there */
    char uuid[IDT_MSG_UUID_LEN + 1]; /* of the broker: its incarnation */
    char host[256];
    bool adopted;
    const char *doomed;       /* why it is to be removed; NULL: it is not */
    double goodbye;           /* link_now () when it said so; 0: it did not */
    idt_msg_t *hello;         /* waits until we take children in */
    enum health hello_health; /* that it told */
    uint32_t hello_joined;    /* the same */
    uint64_t hello_us;        /* our clock's reading (instance) when it came */
    uint64_t hello_boot_us;   /* link_boot_us () then */
    struct wire_from hello_from;
    int hello_link;       /* version of the link that it knows */
    bool hello_knows;     /* it knew the instance */
    uint64_t hello_event; /* where it is in our stream of events */
};

struct children {
    struct overlay *ov;
    struct wire *outside;    /* NULL: nobody of another process can connect */
    struct wire *inside;     /* NULL: nobody of this process but as those of others */
    struct child **children; /* the children proper in order of rank, then the adopted ones */
    uint32_t count;          /* of the children proper */
    uint32_t total;
    uint32_t size;   /* of the array */
    uint32_t hellos; /* of adopted ones that wait */
    bool accept;
    bool is_known; /* to somebody who was taken in: which instance this is */
    double taken;  /* link_now () when the first was taken in; 0: nobody was */
    struct witness {
        uint32_t rank; /* it lives in another instance's tree; 0: none is noted here */
        double heard;  /* link_now () when it said so last */
    } witness[WITNESSES_MAX];
    bool stopping; /* takes no child in any more */
    bool doomed;   /* one of them is */
    bool leaving;  /* one of them has said goodbye */
};

/* --- children.c ----------------------------------------------------------------------------------- */

/* A record of a broker that is not connected.  NULL: no memory. */
struct child *child_create (struct children *down, uint32_t rank, bool adopted);

bool child_is_online (const struct child *c);
void child_set_health (struct child *c, enum health health);

/* It says that so many of its subtree are in the tree, whether there are so many or not: overlay_joined () bounds the
 * sum.
 */
void child_set_joined (struct child *c, uint32_t joined);

/* It is connected no more.  'why' NULL: it said goodbye. */
void child_remove (struct child *c, const char *why);

/* Send to whom a message came from, be it a child or not. */
void children_answer (struct children *down, const struct wire_from *to, const idt_msg_t *msg);

/* The same to a connection: it is ended. */
void children_send_disconnect (struct children *down, struct wire *w, const char *identity, int errnum,
                               const char *why);

/* Send to a child, as channel_send (); what its channel did to it. */
int child_send (void *arg, const idt_msg_t *msg);
void child_check (struct child *c);

/* --- children_events.c ------------------------------------------------------------------------------ */

/* Tell a child in a beat where it is. */
void child_put_position (const struct child *c, struct heartbeat *hb);

/* As channel.h wants it. */
const idt_msg_t *child_event (void *arg);
void child_event_sent (void *arg);

/* --- hello.c ------------------------------------------------------------------------------- */

/* A message of an identity that we do not know (steals the reference). */
void children_stranger (struct children *down, idt_msg_t *msg, const struct wire_from *from);

/* Answer a hello that waits: the child is in. */
void child_take_in (struct child *c);

#endif /* BROKER_CHILDREN_PRIVATE_H */
