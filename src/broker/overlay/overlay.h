/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* overlay.h - the broker's place in the tree: its parent, its children (protocol.md section 7)
 *
 * A broker has one wire to the parent and others for the children.  A wire uses ZeroMQ, always with CURVE, where only
 * the keys of ranks below are accepted; inside a process it is of the kind that tbon.transport names.  A broker that
 * joins becomes a peer of the router.  It is removed when its connection closes, or when it was silent for tbon.timeout
 * (link_is_silent ()).
 *
 * A broker whose parent is lost attaches to the nearest living ancestor, and returns when its parent does.  For that
 * the public keys of all descendants are sent up the tree, so that any ancestor knows which brokers may connect.  An
 * ancestor routes to a descendant through the nearest attached broker on the way to it.
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

#define OVERLAY_KEY_TEXT 41 /* a CURVE key in Z85 with its NUL */

/* The data that others need to connect to a broker and to accept it. */
struct bizcard {
    uint32_t rank;
    char endpoint[256];
    char host[256];
    uint8_t key[ZAP_KEY_SIZE]; /* CURVE public key */
    char topology[TOPO_NAME_SIZE];
    uint32_t size; /* brokers of its instance; 0: not given */
};

enum health { HEALTH_FULL, HEALTH_PARTIAL, HEALTH_DEGRADED, HEALTH_LOST, HEALTH_OFFLINE };

/* The ZAP domain of a broker's socket.  The process finds the broker that must check a key by it.  Returns 'buf'. */
#define OVERLAY_DOMAIN_SIZE 24
const char *overlay_domain (uint32_t rank, char buf[OVERLAY_DOMAIN_SIZE]);

struct overlay_ops {
    /* A request, response or event from the parent or a child (steals the reference). */
    void (*message) (void *arg, struct peer *from, idt_msg_t *msg);
    /* The parent accepted this broker, or is lost. */
    void (*parent) (void *arg, bool up);
    /* The parent, or an ancestor in its place, refused this broker.  Another attempt follows after the callback. */
    void (*refused) (void *arg, int errnum, const char *text);
    /* At rank 0, before a broker of its own instance returned: a broker of another instance's tree takes us for its
     * root.
     */
    void (*intruder) (void *arg, const char *text);
    /* A child joined, or is lost. */
    void (*child) (void *arg, uint32_t rank, bool up);
    /* Returns whether all messages that were passed to message () have been handled. */
    bool (*heard) (void *arg);
    /* The parent requests that this subtree stops. */
    void (*stop) (void *arg);
    /* The parent, which is now disconnected, reports that its tree belonged to the wrong instance.  The instance that
     * we learned from it is wrong, too.
     */
    void (*wrong_instance) (void *arg, const char *text);
    /* A requester of a stream of this service disconnected.  NULL: no other part of the broker has streams there. */
    void (*unfollowed) (void *arg, const idt_msg_t *disconnect);
};

struct overlay_conf {
    struct zpoll *zpoll;
    idt_reactor_t *reactor;
    void *zctx;
    struct inside *inside; /* the brokers of this process; NULL: no others */
    struct attrs *attrs;
    struct instance *instance; /* sent and learned in hello; NULL: not checked */
    struct router *router;
    struct event *event; /* gets the parent's newest number, supplies the children's events */
    struct log *log;
    const struct topo *topo;
    uint32_t rank;
    const char *uuid; /* incarnation of this broker */
    const char *host;
    const char *public_key; /* in Z85 */
    const char *secret_key;
    /* The list of ancestors was configured: their addresses may change, and they may be down for long.  A broker that
     * never joined tries all of them immediately.
     */
    bool configured;
    /* At rank 0: the quorum that overlay.health reports if fewer than all brokers are enough.  May be NULL. */
    const struct quorum *quorum;
    const struct overlay_ops *ops;
    void *arg;
};

/* Copies 'conf'; its pointers are borrowed.  Returns NULL with errno and 'errp' set. */
struct overlay *overlay_create (const struct overlay_conf *conf, idt_error_t *errp);
void overlay_destroy (struct overlay *ov);

/* Listen for children in this process, and at 'endpoint' (tcp://HOST:* takes any port) if there may be children in
 * other processes ('others') or tbon.transport is zmq.  Returns 0, or -1 with errno set and 'errp' filled.
 * overlay_endpoint () returns the actual endpoint, or NULL if not bound.
 */
int overlay_bind (struct overlay *ov, const char *endpoint, bool others, idt_error_t *errp);

/* Whether the owner of 'key' may connect to the bound endpoint: a rank below this one has the key.  Then 'user' becomes
 * its rank as text.
 */
bool overlay_admit (const struct overlay *ov, const uint8_t key[ZAP_KEY_SIZE], char *user, size_t size);
const char *overlay_endpoint (const struct overlay *ov);

/* Set the bizcards of the ancestors, parent first (none at the root; borrowed, because their endpoints may change), and
 * of all children in order of rank.
 */
void overlay_set_bizcards (struct overlay *ov, const struct bizcard *ancestors, uint32_t count,
                           const struct bizcard *children);

/* Set the key of a descendant that all ancestors know without a message.  Returns as keyring_put (): false if this rank
 * or another one has the key already.
 */
bool overlay_set_key (struct overlay *ov, uint32_t rank, const uint8_t key[ZAP_KEY_SIZE]);

/* The reason why the address of the parent is unknown, or NULL if it is known. */
const char *overlay_no_address (const struct overlay *ov, idt_error_t *errp);

/* Join the parent and keep trying.  While it waits between two attempts, try now.  Does nothing at rank 0. */
void overlay_connect (struct overlay *ov);

/* Accept children from now on, because this broker has joined; earlier ones wait.  'accept' false: refuse further ones
 * with ESHUTDOWN.
 */
void overlay_accept (struct overlay *ov, bool accept);

/* overlay_stop_children (): request the children to stop.  overlay_dismiss_children (): disconnect them, so that they
 * attach elsewhere: 'errnum' ESHUTDOWN if this broker stops, STATE_REFUSED if its tree belongs to the wrong instance
 * and it starts again.  overlay_goodbye (): report to the parent that this subtree has stopped.
 */
void overlay_stop_children (struct overlay *ov);
void overlay_dismiss_children (struct overlay *ov, int errnum, const char *why);
void overlay_goodbye (struct overlay *ov);

/* overlay_event_down (): there are events for the children.  overlay_event_up (): send an event up to be published. */
void overlay_event_down (struct overlay *ov);
int overlay_event_up (struct overlay *ov, const idt_msg_t *msg); /* 0, or -1 as channel_send (): EHOSTUNREACH, ... */

/* Another stream of events begins: all children continue from our position in it, and are notified now. */
void overlay_event_position (struct overlay *ov);

uint32_t overlay_children_online (const struct overlay *ov);
bool overlay_has_parent (const struct overlay *ov);
bool overlay_is_leaving (const struct overlay *ov); /* said goodbye, not released yet */

/* Carry a module's clock on hellos and heartbeats.  'ops' NULL: detach.  Returns 0, or -1 with errno EEXIST. */
int overlay_attach (struct overlay *ov, const struct idt_overlay_ops *ops, void *arg);

/* Do the work that was deferred until no message is being handled.  Called before the reactor sleeps.  Returns whether
 * there was any.
 */
bool overlay_turn (struct overlay *ov);

bool overlay_is_full (const struct overlay *ov); /* no broker below is missing */

/* The number of joined brokers of this subtree, this one included.  Numbers of distant ones are some heartbeats old.  A
 * broker that has just moved may be counted twice until its old connection ends.  At most the size of the instance.
 */
uint32_t overlay_joined (const struct overlay *ov);

/* The queues of this broker's links, and requests refused because of them. */
struct overlay_load {
    uint32_t links;
    uint32_t adopted;
    uint64_t messages;
    uint64_t bytes, longest_bytes; /* of all links; of the fullest link */
    uint64_t refused;              /* requests */
    uint64_t failed;               /* responses replaced by errors */
};
struct overlay_load overlay_load (const struct overlay *ov);

/* The state of this subtree as in overlay.health; and of the subtree of a child proper, as it reported last, or "lost"
 * or "offline".  NULL: the rank is not a child proper.
 */
const char *overlay_status (const struct overlay *ov);
const char *overlay_child_status (const struct overlay *ov, uint32_t rank);

/* Write the missing brokers for a sentence: "rank 1, ranks below [2,5-7]", at most 32 ranks of each kind.  Truncated to
 * 'size'.
 */
void overlay_name_missing (const struct overlay *ov, char *buf, size_t size);

/* Serve overlay.health, overlay.topology and overlay.stats-get on the broker's own handle. */
int overlay_serve (struct overlay *ov, idt_t *h);

#endif /* BROKER_OVERLAY_H */
