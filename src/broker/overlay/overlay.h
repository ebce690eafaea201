/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* overlay.h - the broker's place in the tree: its parent, its children (protocol.md section 7)
 *
 * A wire to the parent (parent), and others for the children (children): over ZeroMQ with CURVE always on, where only
 * the children's keys are let in, and inside of a process as tbon.transport says.  Who is taken in becomes a peer of
 * the router; who is gone is removed from it, at once when its connection closes, within tbon.timeout when it falls
 * silent.
 *
 * A broker whose parent is gone attaches to the nearest ancestor that lives, and returns when its parent does.  For
 * that the public keys of all descendants travel up, so that any ancestor knows whom it may let in; and an ancestor
 * routes to a descendant through the nearest of the brokers on the way to it that is attached.
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
#include "common/libzmqutil/zap.h"
#include "common/libzmqutil/zwatcher.h"

struct overlay;

#define OVERLAY_KEY_TEXT 41 /* a CURVE key in Z85 with its NUL */

/* What others must know of a broker to connect to it and to let it in. */
struct bizcard {
    uint32_t rank;
    char endpoint[256];
    char host[256];
    uint8_t key[ZAP_KEY_SIZE]; /* CURVE public key */
    char topology[TOPO_NAME_SIZE];
    uint32_t size; /* brokers of its instance; 0: it did not say */
};

enum health { HEALTH_FULL, HEALTH_PARTIAL, HEALTH_DEGRADED, HEALTH_LOST, HEALTH_OFFLINE };

/* The ZAP domain of a broker's socket, by which the process finds whom a key is shown to.  Returns 'buf'. */
#define OVERLAY_DOMAIN_SIZE 24
const char *overlay_domain (uint32_t rank, char buf[OVERLAY_DOMAIN_SIZE]);

struct overlay_ops {
    /* A request, response or event from the parent or a child (steals the reference). */
    void (*message) (void *arg, struct peer *from, idt_msg_t *msg);
    /* The parent took us in, or is gone. */
    void (*parent) (void *arg, bool up);
    /* The parent does not want us; it is tried again after this returns. */
    void (*refused) (void *arg, int errnum, const char *text);
    /* Rank 0, before anybody came back to it: a broker that lives in another instance's tree takes us for its root. */
    void (*intruder) (void *arg, const char *text);
    /* A child was taken in, or is gone. */
    void (*child) (void *arg, uint32_t rank, bool up);
    /* Whether nothing that came by message () waits to be heard any more. */
    bool (*heard) (void *arg);
    /* The parent says that this subtree shall stop. */
    void (*stop) (void *arg);
    /* The parent, which is gone now, says that its tree was the wrong instance's, and so is what it told us of that. */
    void (*wrong_instance) (void *arg, const char *text);
    /* The disconnect message of one who had asked this service for a stream.  NULL: nobody else has such. */
    void (*unfollowed) (void *arg, const idt_msg_t *disconnect);
};

struct overlay_conf {
    struct zpoll *zpoll;
    idt_reactor_t *reactor;
    void *zctx;
    struct inside *inside; /* the brokers of this process; NULL: it is alone there */
    struct attrs *attrs;
    struct instance *instance; /* which this is: hello tells it, and learns it; NULL: nobody asks */
    struct router *router;
    struct event *event; /* is told what the parent says of its newest, and has what children are sent */
    struct log *log;
    const struct topo *topo;
    uint32_t rank;
    const char *uuid; /* of this broker: its incarnation */
    const char *host;
    const char *public_key; /* in Z85 */
    const char *secret_key;
    /* Ancestors may have names that change, and be down for long: who never joined tries all at once. */
    bool configured;
    /* Rank 0: overlay.health tells it where fewer than all are enough; NULL: nobody waits. */
    const struct quorum *quorum;
    const struct overlay_ops *ops;
    void *arg;
};

/* Copies 'conf'; what it points to is borrowed.  NULL with errno set and 'errp' filled. */
struct overlay *overlay_create (const struct overlay_conf *conf, idt_error_t *errp);
void overlay_destroy (struct overlay *ov);

/* Listen for children in this process, and at 'endpoint' (tcp://HOST:* takes any port) where some may not be reached
 * inside: 'others' says that there are some in other processes.  Returns 0, or -1 with errno set and 'errp' filled.
 * overlay_endpoint () then tells the real one; NULL: not bound.
 */
int overlay_bind (struct overlay *ov, const char *endpoint, bool others, idt_error_t *errp);

/* Whether the owner of 'key' may connect to what is bound, for it is one of those below.  If so, 'user' is its rank. */
bool overlay_admit (const struct overlay *ov, const uint8_t key[ZAP_KEY_SIZE], char *user, size_t size);
const char *overlay_endpoint (const struct overlay *ov);

/* Tell the bizcards of the ancestors, parent first (none: root; borrowed: their endpoints may change), and of all
 * children, in order of rank.
 */
void overlay_set_bizcards (struct overlay *ov, const struct bizcard *ancestors, uint32_t count,
                           const struct bizcard *children);

/* A key of one below that those above know without being told.  Returns false where it is another rank's already. */
bool overlay_set_key (struct overlay *ov, uint32_t rank, const uint8_t key[ZAP_KEY_SIZE]);

/* Why the address of the parent is not known; NULL: it is. */
const char *overlay_no_address (const struct overlay *ov, idt_error_t *errp);

/* Join the parent, and try that now where it waits for another attempt; keep trying.  Rank 0 has none: nothing. */
void overlay_connect (struct overlay *ov);

/* Take children in from now on (we have joined); until then they wait.  With 'accept' false none more. */
void overlay_accept (struct overlay *ov, bool accept);

/* Tell the children to stop; or to go on below somebody else, for we stop ('errnum' ESHUTDOWN), or begin anew, for this
 * is the tree of the wrong instance (STATE_REFUSED).  Tell the parent that we have.
 */
void overlay_stop_children (struct overlay *ov);
void overlay_dismiss_children (struct overlay *ov, int errnum, const char *why);
void overlay_goodbye (struct overlay *ov);

/* There are events for the children; send one up to be published. */
void overlay_event_down (struct overlay *ov);
int overlay_event_up (struct overlay *ov, const idt_msg_t *msg); /* -1, EHOSTUNREACH: no parent */

/* Another stream of events begins: all children go on from our position in it, and are told that now. */
void overlay_event_position (struct overlay *ov);

uint32_t overlay_children_online (const struct overlay *ov);
bool overlay_has_parent (const struct overlay *ov);
bool overlay_is_leaving (const struct overlay *ov); /* said goodbye, not let go yet */

/* Carry a module's clock on hellos and heartbeats; NULL: none.  Returns 0, or -1 with errno EEXIST. */
int overlay_attach (struct overlay *ov, const struct idt_overlay_ops *ops, void *arg);

/* Do what was put off until no message is in hand.  Called before the reactor sleeps.  Returns whether there was
 * anything.
 */
bool overlay_turn (struct overlay *ov);

bool overlay_is_full (const struct overlay *ov); /* nobody below is missing */

/* Brokers of this subtree that are in the tree, this one included: of those far below as of some beats ago.  One that
 * has just moved may count twice, until the end of its old connection was noticed; never more than there are.
 */
uint32_t overlay_joined (const struct overlay *ov);

/* What waits for this broker's links, and what was refused for that. */
struct overlay_load {
    uint32_t links;
    uint32_t adopted;
    uint64_t messages;
    uint64_t bytes, longest_bytes; /* of all links, of the fullest */
    uint64_t refused;              /* asks */
    uint64_t failed;               /* answers that became errors */
};
struct overlay_load overlay_load (const struct overlay *ov);

/* The state of this subtree, as overlay.health tells it; and of a child proper's, as that said last, or "lost" or
 * "offline"; NULL: it is no child proper.
 */
const char *overlay_status (const struct overlay *ov);
const char *overlay_child_status (const struct overlay *ov, uint32_t rank);

/* Who is missing, for a sentence: "rank 1, ranks below [2,5-7]", the first of each; cut where it does not fit. */
void overlay_name_missing (const struct overlay *ov, char *buf, size_t size);

/* Serve overlay.health, overlay.topology and overlay.stats-get on the broker's own handle. */
int overlay_serve (struct overlay *ov, idt_t *h);

#endif /* BROKER_OVERLAY_H */
