/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* router.h - where a message goes (RFC 3; protocol.md section 3); part of the core
 *
 * A peer is anything that exchanges messages with this broker: a client, a module, a child, the parent.  Messages come
 * in through router_request_new () and router_response_new () and leave through the peers' send functions.
 *
 * 1. A request is answered exactly once, unless it wants no response or its requester has disconnected.  If there is no
 *    memory for an error response, the router closes the requester's connection, so that the requester does not wait
 *    forever.  Modules have no connection and rely on their timeouts.
 * 2. A request that was passed on to a peer that may disappear is remembered until it is answered.  When that peer
 *    disconnects, the router answers the request with EHOSTUNREACH (the peer was a broker) or ENOSYS (a module or
 *    client).
 * 3. The oldest route of a request names the client or module where the request entered the tree, even if that client
 *    added routes of its own.
 * 4. When a client or module disconnects, each service that took a request of it (the first ROUTER_MAX_USES) gets
 *    SERVICE.disconnect.  When a child is lost, each service that still works for a requester below the child gets
 *    SERVICE.disconnect.
 * 5. Requests that a broker's module sent (IDT_ROLE_BROKER) are for brokers only.  If a client or a PEER_ABSENT has the
 *    service, the router does not pass such a request to it.
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
    PEER_BUILTIN, /* the broker's own services: they answer a request immediately, or keep it alive themselves */
    PEER_ABSENT,  /* has the service of a module that is not loaded, and keeps requests (module_handover.h) */
    PEER_CHILD,
    PEER_PARENT,
};

struct peer {
    char uuid[IDT_MSG_UUID_LEN + 1];
    enum peer_kind kind;
    uint32_t rank;    /* the rank of a child or the parent */
    const char *name; /* the name of a module; may be NULL */
    /* Take a message (with a reference of its own).  Returns 0, or -1 with errno set; EXFULL means that the peer's
     * queue is full now.
     */
    int (*send) (void *arg, const idt_msg_t *msg);
    /* Take back a request that this peer sent, unchanged, because the service has no room for it now (steals the
     * reference).  NULL: the router answers such a request with EAGAIN.
     */
    void (*busy) (void *arg, idt_msg_t *msg);
    /* Close the peer's connection because there is no memory for an error response.  The connection is closed later,
     * not within this call.  NULL: the peer has no connection.
     */
    void (*hang_up) (void *arg);
    void *arg;
    /* For the router only: the services that took requests of this peer, the requests that it sent, and the requests
     * that it must answer.
     */
    struct peer_use *uses;
    struct rpc_track_party pending;
};

#define ROUTER_MAX_USES 64 /* services that get a disconnect when one requester disconnects */

/* 'topo' is borrowed.  'max_pending' limits the number of remembered requests.  Returns NULL with errno ENOMEM. */
struct router *router_create (uint32_t rank, const struct topo *topo, size_t max_pending);
void router_destroy (struct router *r);

/* Add a peer.  'p' still belongs to the caller, who must remove it from the router before freeing it.  Returns 0, or -1
 * with errno EEXIST: the router already has a peer with this UUID, a child with this rank, or a parent.
 */
int router_peer_add (struct router *r, struct peer *p);

/* Remove a peer with its services.  Unanswered requests that the peer has sent, or has to answer, are handled as rules
 * 2 and 4 say.  Does nothing if the peer is unknown.
 */
void router_peer_remove (struct router *r, struct peer *p);

struct peer *router_peer (struct router *r, const char *uuid); /* NULL if unknown */

/* The client or module of this broker that sent a request; NULL: the request came from another broker. */
struct peer *router_local_sender (struct router *r, const idt_msg_t *msg);

/* Let peer 'p' serve requests for service 'name'.  Returns 0, or -1 with errno EEXIST, or EINVAL ('name' has a dot, is
 * empty, or has more than 64 characters).
 */
int router_service_add (struct router *r, const char *name, struct peer *p);
/* Returns 0, or -1 with errno ENOENT if 'p' has no such service. */
int router_service_remove (struct router *r, const char *name, struct peer *p);
struct peer *router_service (struct router *r, const char *topic); /* its name ends at the first dot; NULL: unknown */

/* Call 'cb' for each service of a peer. */
void router_service_foreach (struct router *r, struct peer *p, void (*cb) (const char *name, void *arg), void *arg);

/* Whether a request notifies a service that the request's sender has disconnected. */
bool router_is_disconnect (const idt_msg_t *request);

/* Route a request, or a response, that came from the peer 'from' (steals the reference). */
void router_request_new (struct router *r, struct peer *from, idt_msg_t *msg);

/* Route a request again that a PEER_ABSENT had taken, as if it had just arrived (steals the reference). */
void router_request_again_new (struct router *r, const idt_msg_t *msg);

void router_response_new (struct router *r, struct peer *from, idt_msg_t *msg);

/* Whether the peer that 'request' came from may speak for 'rank' (idt_overlay_covers ()). */
bool router_covers (struct router *r, const idt_msg_t *request, uint32_t rank);

/* Call 'cb' for each message that came from a peer or was sent to one.  'cb' must not call the router.  NULL: call no
 * function.  While no function is set, watching takes one branch for each message.
 */
enum router_way { ROUTER_FROM, ROUTER_TO };
typedef void (*router_watch_f) (void *arg, enum router_way way, const struct peer *p, const idt_msg_t *msg);
void router_watch (struct router *r, router_watch_f cb, void *arg);

/* Call the function of router_watch () for a message that does not pass the router, such as an event or a control
 * message.
 */
void router_show (const struct router *r, enum router_way way, const struct peer *p, const idt_msg_t *msg);

struct router_stats {
    uint64_t requests;
    uint64_t responses;
    uint64_t unroutable; /* responses that were dropped, because no requester waits for them */
    uint64_t failed;     /* requests answered here with an error */
    size_t pending;
};
struct router_stats router_stats (const struct router *r);

#endif /* BROKER_ROUTER_H */
