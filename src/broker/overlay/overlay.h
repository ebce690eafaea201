/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* overlay.h - the broker's place in the tree: its parent, its children (protocol.md section 7)
 *
 * A broker has one wire to the parent and others for the children.  A wire between processes uses ZeroMQ with CURVE,
 * which accepts only the keys of ranks below the listening broker.  A wire inside a process is of the kind that
 * tbon.transport names; zmq means the same as between processes.  A broker that joins becomes a peer of the router.  A
 * peer is removed when its connection is closed, or when the peer was silent for tbon.timeout (link_is_silent ()).
 *
 * A broker whose parent is lost attaches to the nearest living ancestor, and returns to its parent when it can.  For
 * that purpose the public keys of all descendants are sent up the tree, so that each ancestor knows which brokers may
 * connect.  An ancestor sends messages for a descendant to the attached broker that is nearest to that descendant, on
 * the path down to it.
 */
#ifndef BROKER_OVERLAY_H
#define BROKER_OVERLAY_H

#include <idtree/module.h>

#include "broker/base/attr.h"
#include "broker/base/instance.h"
#include "broker/base/log.h"
#include "broker/base/quorum.h"
#include "broker/route/event.h"
#include "broker/route/router.h"
#include "broker/base/topology.h"
#include "broker/overlay/wire/inside.h"
#include "common/libzmqutil/curve.h"
#include "common/libzmqutil/zwatcher.h"

struct overlay;

#define OVERLAY_KEY_TEXT 41 /* bytes of a CURVE key in Z85 with its NUL */

/* The data that other brokers need to connect to a broker and to accept it. */
struct bizcard {
    uint32_t rank;
    char endpoint[256];
    char host[256];
    uint8_t key[ZAP_KEY_SIZE]; /* CURVE public key */
    char topology[TOPO_NAME_SIZE];
    uint32_t size; /* brokers of the instance; 0: not given */
};

enum health { HEALTH_FULL, HEALTH_PARTIAL, HEALTH_DEGRADED, HEALTH_LOST, HEALTH_OFFLINE };

/* The ZAP domain of the socket of 'rank'.  From this domain the process knows which of its brokers must check a key.
 * Returns 'buf'.
 */
#define OVERLAY_DOMAIN_SIZE 24
const char *overlay_domain (uint32_t rank, char buf[OVERLAY_DOMAIN_SIZE]);

struct overlay_ops {
    /* A request, response or event has arrived from the parent or a child (steals the reference). */
    void (*message) (void *arg, struct peer *from, idt_msg_t *msg);
    /* The parent has accepted this broker ('up'), or is lost. */
    void (*parent) (void *arg, bool up);
    /* The parent, or an ancestor in its place, has refused this broker.  Another attempt follows after the callback. */
    void (*refused) (void *arg, int errnum, const char *text);
    /* At rank 0, before a broker of our own instance has returned: a broker that belongs to another instance's tree
     * takes us for its root.
     */
    void (*intruder) (void *arg, const char *text);
    /* A child has joined ('up'), or is lost. */
    void (*child) (void *arg, uint32_t rank, bool up);
    /* Returns whether all messages that were passed to message () were handled. */
    bool (*heard) (void *arg);
    /* The parent orders this subtree to stop. */
    void (*stop) (void *arg);
    /* The parent, which is now disconnected, has reported that its tree belonged to the wrong instance.  So the
     * instance that it sent us is wrong, too.
     */
    void (*wrong_instance) (void *arg, const char *text);
    /* A client with a streaming request to this service has disconnected.  NULL: no other part of the broker has
     * streams in this service.
     */
    void (*unfollowed) (void *arg, const idt_msg_t *disconnect);
};

struct overlay_conf {
    struct zpoll *zpoll;
    idt_reactor_t *reactor;
    void *zctx;
    struct inside *inside; /* registry of the brokers of this process; NULL: there are no others */
    struct attrs *attrs;
    struct instance *instance; /* sent and learned by hello; NULL: not checked */
    struct router *router;
    struct event *event; /* gets the newest number of the parent, supplies events for children */
    struct log *log;
    const struct topo *topo;
    uint32_t rank;
    const char *uuid; /* incarnation of this broker */
    const char *host;
    const char *public_key; /* in Z85 */
    const char *secret_key;
    /* The list of ancestors was configured.  So their addresses may change, and they may be down for a long time.  A
     * broker that never joined tries all of them immediately.
     */
    bool configured;
    /* At rank 0: the quorum, which overlay.health reports if fewer than all brokers are enough.  May be NULL. */
    const struct quorum *quorum;
    const struct overlay_ops *ops;
    void *arg;
};

/* Copies 'conf'; its pointers are borrowed.  Returns NULL with errno set and 'errp' filled. */
struct overlay *overlay_create (const struct overlay_conf *conf, idt_error_t *errp);
void overlay_destroy (struct overlay *ov);

/* Listen for children.  Listens inside the process unless tbon.transport is zmq.  Listens at 'endpoint' (tcp://HOST:*
 * takes any port) if children may be in other processes ('others') or tbon.transport is zmq.  Returns 0, or -1 with
 * errno set and 'errp' filled. overlay_endpoint () returns the actual endpoint, or NULL if this broker does not listen
 * at an endpoint.
 */
int overlay_bind (struct overlay *ov, const char *endpoint, bool others, idt_error_t *errp);

/* Whether the owner of 'key' may connect to the bound endpoint, because a rank below this one has the key.  Then 'user'
 * becomes this rank as text.
 */
bool overlay_admit (const struct overlay *ov, const uint8_t key[ZAP_KEY_SIZE], char *user, size_t size);
const char *overlay_endpoint (const struct overlay *ov);

/* Set the bizcards.  'ancestors' begins with the parent and is borrowed, because the endpoints may change; 'count' is 0
 * at the root.  'children' are all children, in order of rank.
 */
void overlay_set_bizcards (struct overlay *ov, const struct bizcard *ancestors, uint32_t count,
                           const struct bizcard *children);

/* Set the key of a descendant that all ancestors know without a message.  Returns what keyring_put () returns: false if
 * this rank or another one already has the key.
 */
bool overlay_set_key (struct overlay *ov, uint32_t rank, const uint8_t key[ZAP_KEY_SIZE]);

/* Why the address of the parent is unknown; NULL: the address is known. */
const char *overlay_no_address (const struct overlay *ov, idt_error_t *errp);

/* Join the parent or another ancestor, and keep trying.  Between two attempts this ends the pause.  Does nothing at
 * rank 0.
 */
void overlay_connect (struct overlay *ov);

/* 'accept' true: this broker has joined, so it accepts children from now on, and first the children that have waited.
 * 'accept' false: from now on children are refused with ESHUTDOWN.
 */
void overlay_accept (struct overlay *ov, bool accept);

/* overlay_stop_children (): order the children to stop.  overlay_dismiss_children (): disconnect the children, so that
 * they attach elsewhere.  'errnum' is ESHUTDOWN if this broker stops, or STATE_REFUSED if this broker starts again
 * because its tree belongs to the wrong instance.  overlay_goodbye (): report to the parent that this subtree has
 * stopped.
 */
void overlay_stop_children (struct overlay *ov);
void overlay_dismiss_children (struct overlay *ov, int errnum, const char *why);
void overlay_goodbye (struct overlay *ov);

/* overlay_event_down (): there are new events for the children.  overlay_event_up (): send an event to the parent, to
 * be published.
 */
void overlay_event_down (struct overlay *ov);
int overlay_event_up (struct overlay *ov, const idt_msg_t *msg); /* 0, or -1 with errno of channel_send () */

/* Another stream of events begins.  All children continue at our position in this stream, and are notified of it now.
 */
void overlay_event_position (struct overlay *ov);

uint32_t overlay_children_online (const struct overlay *ov);
bool overlay_has_parent (const struct overlay *ov);
bool overlay_is_leaving (const struct overlay *ov); /* this broker said goodbye, but is not released yet */

/* Carry the clock of a module on hellos and heartbeats.  'ops' NULL: no longer carry it.  Returns 0, or -1 with errno
 * EEXIST: a clock is attached already.
 */
int overlay_attach (struct overlay *ov, const struct idt_overlay_ops *ops, void *arg);

/* Do the work that must not be done while a message is handled.  Call this before the reactor sleeps.  Returns whether
 * there was any work.
 */
bool overlay_turn (struct overlay *ov);

bool overlay_is_full (const struct overlay *ov); /* no broker below is missing */

/* The number of brokers of this subtree that have joined, this broker included.  The reports of distant brokers are
 * some heartbeats old.  A broker that has just moved may be counted twice until its old connection ends.  The result is
 * at most the size of the instance.
 */
uint32_t overlay_joined (const struct overlay *ov);

/* The load of this broker's links: messages in queues, and requests and responses that did not fit. */
struct overlay_load {
    uint32_t links;
    uint32_t adopted;
    uint64_t messages;
    uint64_t bytes, longest_bytes; /* bytes of all links; bytes of the link that has most */
    uint64_t refused;              /* refused requests */
    uint64_t failed;               /* responses that errors replaced */
};
struct overlay_load overlay_load (const struct overlay *ov);

/* overlay_status (): the state of this subtree, with the names of overlay.health.  overlay_child_status (): the state
 * of the subtree of a child proper, as the child last reported it, or "lost" or "offline"; NULL: the rank is not a
 * child proper.
 */
const char *overlay_status (const struct overlay *ov);
const char *overlay_child_status (const struct overlay *ov, uint32_t rank);

/* Write the missing brokers as part of a sentence: "rank 1, ranks below [2,5-7]", with at most 32 ranks of each kind.
 * Truncated to 'size'.
 */
void overlay_name_missing (const struct overlay *ov, char *buf, size_t size);

/* Answer overlay.health, overlay.topology and overlay.stats-get on 'h', the broker's own handle. */
int overlay_serve (struct overlay *ov, idt_t *h);

#endif /* BROKER_OVERLAY_H */
