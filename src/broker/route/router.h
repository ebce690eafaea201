/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* router.h - where a message goes (RFC 3; protocol.md section 3); a thinking part
 *
 * A peer is whoever can send to and receive from this broker: a client, a module, a child, the parent.  Messages come
 * in through router_request_new () and router_response_new () and leave through the peers' send functions.
 *
 * 1. A request that came in is answered exactly once, unless it wants no answer or its asker is gone.  Where there is
 *    no memory for an error, the asker's connection ends, so that it does not wait for ever; a module's limits of time
 *    have to do.
 * 2. Requests that were passed on are remembered until they are answered; when the peer that they went to
 *    goes, each is answered with EHOSTUNREACH.
 * 3. The oldest route of a request tells at which client or module it entered the tree, whatever a client put there.
 * 4. When a client or module goes, each service that took a request of it gets SERVICE.disconnect; when a child goes,
 *    the services that still work for someone below it do.
 * 5. What a broker's module sent (IDT_ROLE_BROKER) is for brokers: whoever serves in the name of a module that is not
 *    there, a client or a PEER_ABSENT, gets none of it.
 */
#ifndef BROKER_ROUTER_H
#define BROKER_ROUTER_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/msg.h>

#include "broker/route/rpc_track.h"
#include "broker/base/topology.h"

struct router;

enum peer_kind {
    PEER_CLIENT,
    PEER_MODULE,
    PEER_BUILTIN, /* the broker's own services: answer at once or keep the request alive themselves */
    PEER_ABSENT,  /* stands in for a module that is not there now: as PEER_BUILTIN (module_handover.h) */
    PEER_CHILD,
    PEER_PARENT,
};

struct peer {
    char uuid[IDT_MSG_UUID_LEN + 1];
    enum peer_kind kind;
    uint32_t rank;    /* of a child or the parent */
    const char *name; /* of a module; NULL: it has none */
    /* Take a message (reference of its own).  Returns 0, or -1 with errno set when it cannot: EXFULL now. */
    int (*send) (void *arg, const idt_msg_t *msg);
    /* Take back a request as it came (steals the reference), which a service has no room for now; NULL: it is answered
     * EAGAIN.
     */
    void (*busy) (void *arg, idt_msg_t *msg);
    /* End the connection, later: an answer cannot be made, for want of memory.  NULL: there is none to end. */
    void (*hang_up) (void *arg);
    void *arg;
    /* The router's: services that it asked; requests that it asked, and was asked. */
    struct peer_use *uses;
    struct rpc_track_party pending;
};

#define ROUTER_MAX_USES 64         /* services of one asker that are told of its end */
#define ROUTER_MAX_PENDING 1048576 /* default of router.max-pending */

/* 'topo' is borrowed.  NULL with errno ENOMEM. */
struct router *router_create (uint32_t rank, const struct topo *topo, size_t max_pending);
void router_destroy (struct router *r);

/* Make a peer known.  It is the caller's, who removes it before it goes.  Returns 0, or -1 with errno
 * EEXIST (the UUID, or for a child the rank, or the parent, is known already) or ENOMEM.
 */
int router_peer_add (struct router *r, struct peer *p);

/* Forget a peer: its services are gone, rules 2 and 3 are carried out. */
void router_peer_remove (struct router *r, struct peer *p);

struct peer *router_peer (struct router *r, const char *uuid); /* NULL: unknown */

/* A peer that requests for service 'name' go to.  Returns 0, or -1 with errno EEXIST, EINVAL (a dot in it,
 * empty, over 64 characters) or ENOMEM.
 */
int router_service_add (struct router *r, const char *name, struct peer *p);
/* Returns 0, or -1 with errno ENOENT: 'p' has no such service. */
int router_service_remove (struct router *r, const char *name, struct peer *p);
struct peer *router_service (struct router *r, const char *topic); /* by the topic up to the first dot */

/* Call 'cb' for each service of a peer. */
void router_service_foreach (struct router *r, struct peer *p, void (*cb) (const char *name, void *arg), void *arg);

/* A request that tells a service that its asker is gone. */
bool router_is_disconnect (const idt_msg_t *request);

/* A request (steals the reference) that came from 'from', or was answered by it. */
void router_request_new (struct router *r, struct peer *from, idt_msg_t *msg);

/* A request that was given to a PEER_ABSENT (steals the reference): route it as if it had come now. */
void router_request_again_new (struct router *r, const idt_msg_t *msg);

void router_response_new (struct router *r, struct peer *from, idt_msg_t *msg);

/* Whether the peer that 'request' came from speaks for 'rank' (idt_overlay_covers ()). */
bool router_covers (struct router *r, const idt_msg_t *request, uint32_t rank);

/* Show each message that comes from a peer, or was given to one, to 'cb', which must not enter the router.  NULL: to
 * nobody, which costs a branch.
 */
enum router_way { ROUTER_FROM, ROUTER_TO };
typedef void (*router_watch_f) (void *arg, enum router_way way, const struct peer *p, const idt_msg_t *msg);
void router_watch (struct router *r, router_watch_f cb, void *arg);

/* Show one that does not pass the router: an event, a control message. */
void router_show (const struct router *r, enum router_way way, const struct peer *p, const idt_msg_t *msg);

struct router_stats {
    uint64_t requests;
    uint64_t responses;
    uint64_t unroutable; /* responses whose asker is gone */
    uint64_t failed;     /* requests answered here with an error */
    size_t pending;
};
struct router_stats router_stats (const struct router *r);

#endif /* BROKER_ROUTER_H */
