/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* router.c - where a message goes (RFC 3; protocol.md section 3)
 *
 * Every request enters at router_request_new (), which pushes the UUID of the sending peer onto the request's route
 * stack.  Every response leaves through answer (), which pops this UUID; only refuse () sends errors directly.
 * Requests that were passed on to a peer that may disappear are in 'pending'.
 */
#include "config.h"

#include <assert.h>
#include <czmq.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "broker/route/rpc_track.h"
#include "broker/route/router.h"

#define MAX_SERVICE_NAME 64

/* A service that took a request of a client or module.  The service gets SERVICE.disconnect when that client or module
 * disconnects.
 */
struct peer_use {
    struct peer_use *next;
    uint32_t nodeid;
    int upstream; /* IDT_MSGFLAG_UPSTREAM or 0 */
    struct idt_cred cred;
    char service[MAX_SERVICE_NAME + 1];
};

struct router {
    uint32_t rank;
    const struct topo *topo;
    zhashx_t *peers;    /* by UUID; the caller of router_peer_add () owns the peers */
    zhashx_t *services; /* name -> peer */
    zhashx_t *children; /* by rank as text */
    struct peer *parent;
    struct rpc_track *pending;
    bool busy; /* the service's queue is full for the current request, and the sender will repeat the request */
    struct router_stats stats;
    router_watch_f watch; /* function of router_watch (); NULL: none */
    void *watch_arg;
};

struct router *router_create (uint32_t rank, const struct topo *topo, size_t max_pending)
{
    struct router *r = calloc (1, sizeof (*r));

    if (!r)
        return NULL;
    r->rank = rank;
    r->topo = topo;
    r->peers = zhashx_new ();
    r->services = zhashx_new ();
    r->children = zhashx_new ();
    r->pending = rpc_track_create (max_pending);
    if (!r->peers || !r->services || !r->children || !r->pending) {
        router_destroy (r);
        return errset_null (ENOMEM);
    }
    return r;
}

void router_destroy (struct router *r)
{
    if (!r)
        return;
    rpc_track_destroy (r->pending);
    zhashx_destroy (&r->children);
    zhashx_destroy (&r->services);
    zhashx_destroy (&r->peers);
    free (r);
}

/* --- watching messages ---------------------------------------------------------------------- */

void router_watch (struct router *r, router_watch_f cb, void *arg)
{
    r->watch = cb;
    r->watch_arg = arg;
}

void router_show (const struct router *r, enum router_way way, const struct peer *p, const idt_msg_t *msg)
{
    if (__builtin_expect (r->watch != NULL, 0))
        r->watch (r->watch_arg, way, p, msg);
}

/* --- peers --------------------------------------------------------------------------------- */

static char *rank_key (char buf[16], uint32_t rank)
{
    snprintf (buf, 16, "%u", rank);
    return buf;
}

int router_peer_add (struct router *r, struct peer *p)
{
    char key[16];

    assert (p->send && strlen (p->uuid) == IDT_MSG_UUID_LEN);
    if (zhashx_lookup (r->peers, p->uuid) || (p->kind == PEER_PARENT && r->parent)
        || (p->kind == PEER_CHILD && zhashx_lookup (r->children, rank_key (key, p->rank))))
        return errset (EEXIST);
    p->uses = NULL;
    rpc_track_party_init (&p->pending, p);
    zhashx_insert (r->peers, p->uuid, p);
    if (p->kind == PEER_CHILD)
        zhashx_insert (r->children, rank_key (key, p->rank), p);
    else if (p->kind == PEER_PARENT)
        r->parent = p;
    return 0;
}

struct peer *router_peer (struct router *r, const char *uuid)
{
    return zhashx_lookup (r->peers, uuid);
}

struct peer *router_local_sender (struct router *r, const idt_msg_t *msg)
{
    struct peer *p = idt_msg_route_count (msg) == 1 ? router_peer (r, idt_msg_route_newest (msg)) : NULL;

    return p && (p->kind == PEER_CLIENT || p->kind == PEER_MODULE) ? p : NULL;
}

/* --- services ------------------------------------------------------------------------------ */

static size_t service_len (const char *topic)
{
    return strcspn (topic, ".");
}

int router_service_add (struct router *r, const char *name, struct peer *p)
{
    size_t len = strlen (name);

    if (len == 0 || len > MAX_SERVICE_NAME || service_len (name) != len)
        return errset (EINVAL);
    if (zhashx_insert (r->services, name, p) < 0)
        return errset (EEXIST);
    return 0;
}

int router_service_remove (struct router *r, const char *name, struct peer *p)
{
    if (zhashx_lookup (r->services, name) != p)
        return errset (ENOENT);
    zhashx_delete (r->services, name);
    return 0;
}

struct peer *router_service (struct router *r, const char *topic)
{
    char name[MAX_SERVICE_NAME + 1];
    size_t len = topic ? service_len (topic) : 0;

    if (len == 0 || len > MAX_SERVICE_NAME)
        return NULL;
    memcpy (name, topic, len);
    name[len] = '\0';
    return zhashx_lookup (r->services, name);
}

void router_service_foreach (struct router *r, struct peer *p, void (*cb) (const char *name, void *arg), void *arg)
{
    void *item = zhashx_first (r->services);

    for (; item; item = zhashx_next (r->services))
        if (item == p)
            cb (zhashx_cursor (r->services), arg);
}

static void remove_services (struct router *r, struct peer *p)
{
    zlistx_t *names = zhashx_keys (r->services);
    const char *name = names ? zlistx_first (names) : NULL;

    for (; name; name = zlistx_next (names))
        router_service_remove (r, name, p);
    zlistx_destroy (&names);
}

/* --- responses ----------------------------------------------------------------------------- */

/* A client that sends requests for others (a proxy) puts routes of its own into them.  The client's UUID is then also
 * added as the oldest route, so that the oldest route still names the peer where the request entered.  answer ()
 * removes it from the response.
 */
static int sign_routes (idt_msg_t *msg, const char *uuid)
{
    unsigned n = idt_msg_route_count (msg);
    char *routes = n > 0 ? malloc (n * (IDT_MSG_UUID_LEN + 1)) : NULL;
    int rc;

    if (n == 0)
        return 0;
    for (unsigned i = 0; routes && i < n; i++)
        strcpy (routes + i * (IDT_MSG_UUID_LEN + 1), idt_msg_route_at (msg, i));
    idt_msg_route_clear (msg);
    rc = routes ? idt_msg_route_push (msg, uuid) : -1;
    for (unsigned i = n; rc == 0 && i > 0; i--)
        rc = idt_msg_route_push (msg, routes + (i - 1) * (IDT_MSG_UUID_LEN + 1));
    free (routes);
    return rc;
}

static bool is_broker (const struct peer *p)
{
    return p->kind == PEER_CHILD || p->kind == PEER_PARENT;
}

/* Send a response to the peer that its newest route names.  Takes over the caller's reference. */
static void answer (struct router *r, idt_msg_t *msg)
{
    const char *uuid = idt_msg_route_newest (msg);
    struct peer *to = uuid ? router_peer (r, uuid) : NULL;

    if (to) {
        idt_msg_route_pop (msg);
        if (to->kind == PEER_CLIENT)
            idt_msg_route_drop_oldest (msg);
        if (idt_msg_errnum (msg) == EXFULL && !is_broker (to)) /* only brokers know EXFULL */
            idt_msg_set_errnum (msg, EAGAIN);
        if (to->send (to->arg, msg) < 0)
            to = NULL;
        else
            router_show (r, ROUTER_TO, to, msg);
    }
    if (!to)
        r->stats.unroutable++;
    idt_msg_unref (msg);
}

/* Only the flag says that a request wants no response (RFC 6), not matchtag 0: a requester that uses matchtag 0 takes
 * the next response on its connection as the answer.
 */
static bool wants_answer (const idt_msg_t *request)
{
    return !idt_msg_has_flag (request, IDT_MSGFLAG_NORESPONSE);
}

/* Create an error response.  Returns NULL if the request wants no response, or without memory.  Without memory the
 * connection of 'requester' is closed, so that the requester does not wait.  'requester' NULL: it has disconnected.
 */
static idt_msg_t *respond (const struct peer *requester, const idt_msg_t *request, int errnum)
{
    idt_msg_t *msg = wants_answer (request) ? idt_msg_respond (request, errnum) : NULL;

    if (!msg && wants_answer (request) && requester && requester->hang_up)
        requester->hang_up (requester->arg);
    return msg;
}

static void fail (struct router *r, const idt_msg_t *request, int errnum, const char *fmt, ...)
    __attribute__ ((format (printf, 4, 5)));

/* Answer a request with an error.  'fmt' NULL: the response has no text. */
static void fail (struct router *r, const idt_msg_t *request, int errnum, const char *fmt, ...)
{
    const char *uuid = idt_msg_route_newest (request);
    char text[IDT_MSG_MAX_TOPIC + 64];
    idt_msg_t *msg;
    va_list ap;

    r->stats.failed++;
    if (!(msg = respond (uuid ? router_peer (r, uuid) : NULL, request, errnum)))
        return;
    idt_msg_set_cred (msg, idt_msg_cred (request));
    if (fmt) {
        va_start (ap, fmt);
        vsnprintf (text, sizeof (text), fmt, ap);
        va_end (ap);
        idt_msg_set_string (msg, text);
    }
    answer (r, msg);
}

static void fail_lost (struct router *r, const idt_msg_t *request, uint32_t rank)
{
    fail (r, request, EHOSTUNREACH, "rank %u is not connected: idtree overlay status shows since when", rank);
}

/* Whether a request to this peer is remembered until it is answered.  The broker's own services answer each request
 * exactly once, so only their streams are remembered.  A PEER_ABSENT, too, answers each request exactly once, and it
 * has no streams.
 */
static bool is_tracked (const struct peer *to, const idt_msg_t *request)
{
    return to->kind != PEER_ABSENT && (to->kind != PEER_BUILTIN || idt_msg_has_flag (request, IDT_MSGFLAG_STREAMING));
}

/* Whether a requester still waits for this response. */
static bool is_awaited (struct router *r, const struct peer *from, const idt_msg_t *response)
{
    return rpc_track_answered (r->pending, response, &from->pending) || !is_tracked (from, response);
}

void router_response_new (struct router *r, struct peer *from, idt_msg_t *msg)
{
    r->stats.responses++;
    router_show (r, ROUTER_FROM, from, msg);
    if (!is_awaited (r, from, msg)) {
        r->stats.unroutable++;
        idt_msg_unref (msg);
        return;
    }
    answer (r, msg);
}

/* --- requests ------------------------------------------------------------------------------ */

bool router_is_disconnect (const idt_msg_t *msg)
{
    const char *topic = idt_msg_topic (msg);
    size_t len = service_len (topic);

    return idt_msg_has_flag (msg, IDT_MSGFLAG_NORESPONSE) && strcmp (topic + len, ".disconnect") == 0;
}

/* Remember that a service took a request of a client or module: when that client or module disconnects, the service
 * gets a disconnect.  If no request of a client could be sent to a service, the service has no state for that client,
 * and is not remembered.
 */
static void note_use (struct peer *from, const idt_msg_t *msg)
{
    const char *topic = idt_msg_topic (msg);
    size_t len = service_len (topic);
    uint32_t nodeid = idt_msg_nodeid (msg);
    int upstream = idt_msg_flags (msg) & IDT_MSGFLAG_UPSTREAM;
    struct peer_use *u;
    int n = 0;

    if ((from->kind != PEER_CLIENT && from->kind != PEER_MODULE) || len > MAX_SERVICE_NAME
        || router_is_disconnect (msg))
        return;
    for (u = from->uses; u; u = u->next, n++)
        if (u->nodeid == nodeid && u->upstream == upstream && u->service[len] == '\0'
            && memcmp (u->service, topic, len) == 0)
            return;
    if (n >= ROUTER_MAX_USES || !(u = calloc (1, sizeof (*u))))
        return;
    u->nodeid = nodeid;
    u->upstream = upstream;
    u->cred = idt_msg_cred (msg);
    memcpy (u->service, topic, len);
    u->next = from->uses;
    from->uses = u;
}

/* Fail a request because the peer that it was sent to has disconnected or takes no messages. */
static void fail_gone (struct router *r, const struct peer *to, const idt_msg_t *request)
{
    if (is_broker (to))
        fail_lost (r, request, to->rank);
    else
        fail (r, request, ENOSYS, "the service ended before it answered");
}

/* Fail a request that its target did not take.  EXFULL means that the target's queue is full for this requester, not
 * that the target has ended.  A client that can repeat the request gets the request back.  Only brokers are answered
 * with EXFULL, when a link is full; other requesters are answered with EAGAIN.
 */
static void fail_unsent (struct router *r, const struct peer *from, const struct peer *to, const idt_msg_t *request,
                         int errnum)
{
    const char *topic = idt_msg_topic (request);

    if (errnum == EXFULL && from->busy)
        r->busy = true;
    else if (errnum == EMSGSIZE && is_broker (to))
        fail (r, request, EMSGSIZE, "a request of %zu bytes is longer than a link takes",
              idt_msg_encode_size (request));
    else if (errnum == EXFULL && is_broker (to))
        fail (r, request, EXFULL, "too many requests wait for the link from rank %u to rank %u", r->rank, to->rank);
    else if (errnum == EXFULL)
        fail (r, request, EAGAIN, "the queue of service %.*s is full: try again", (int)service_len (topic), topic);
    else
        fail_gone (r, to, request);
}

static void pass_on (struct router *r, struct peer *from, struct peer *to, const idt_msg_t *msg)
{
    bool track = is_tracked (to, msg) && wants_answer (msg);
    int errnum;

    if (router_is_disconnect (msg))
        rpc_track_disconnect (r->pending, msg, &from->pending);
    if (track && rpc_track_add (r->pending, msg, &from->pending, &to->pending) < 0) {
        fail (r, msg, EAGAIN, "too many requests are unanswered (router.max-pending)");
        return;
    }
    if (to->send (to->arg, msg) == 0) {
        router_show (r, ROUTER_TO, to, msg);
        note_use (from, msg);
        return;
    }
    errnum = errno;
    if (!track || rpc_track_forget (r->pending, msg, &to->pending))
        fail_unsent (r, from, to, msg, errnum);
}

static void pass_up (struct router *r, struct peer *from, const idt_msg_t *msg)
{
    if (r->parent && r->parent != from)
        pass_on (r, from, r->parent, msg);
    else
        fail (r, msg, EHOSTUNREACH, r->rank == 0 ? NULL : "this broker has no parent now");
}

/* The peer that serves a request on this broker, or NULL.  A request that a broker's module sent (IDT_ROLE_BROKER)
 * never goes to a client or a PEER_ABSENT.
 */
static struct peer *find_service (struct router *r, const idt_msg_t *msg)
{
    struct peer *to = router_service (r, idt_msg_topic (msg));

    if (to && (to->kind == PEER_CLIENT || to->kind == PEER_ABSENT) && (idt_msg_cred (msg).rolemask & IDT_ROLE_BROKER))
        return NULL;
    return to;
}

/* Give a request to the service on this broker.  If this broker has no such service and 'upstream' is true, pass the
 * request to the parent.
 */
static void route_here (struct router *r, struct peer *from, const idt_msg_t *msg, bool upstream)
{
    struct peer *to = find_service (r, msg);

    if (to)
        pass_on (r, from, to, msg);
    else if (upstream && r->rank > 0)
        pass_up (r, from, msg);
    else
        fail (r, msg, ENOSYS, "No service matching %s is registered", idt_msg_topic (msg));
}

/* The attached child through which 'rank' is reached: 'rank' itself, or its nearest ancestor below this broker that is
 * attached here.
 */
static struct peer *way_down (struct router *r, uint32_t rank)
{
    struct peer *to = NULL;
    char key[16];

    for (; !to && rank != r->rank; rank = topo_parent (r->topo, rank))
        to = zhashx_lookup (r->children, rank_key (key, rank));
    return to;
}

/* Send a request over the tree to one rank. */
static void route_to_rank (struct router *r, struct peer *from, const idt_msg_t *msg, uint32_t rank)
{
    uint32_t below;
    struct peer *to;

    if (rank == r->rank)
        route_here (r, from, msg, false);
    else if (rank >= r->topo->size)
        fail (r, msg, EHOSTUNREACH, NULL);
    else if ((below = topo_child_toward (r->topo, r->rank, rank)) == TOPO_NONE)
        pass_up (r, from, msg);
    else if ((to = way_down (r, rank)) && to != from)
        pass_on (r, from, to, msg);
    else if (r->parent && r->parent != from) /* the rank may be attached to a higher ancestor */
        pass_on (r, from, r->parent, msg);
    else
        fail_lost (r, msg, below);
}

static void route_request (struct router *r, struct peer *from, const idt_msg_t *msg)
{
    uint32_t nodeid = idt_msg_nodeid (msg);
    bool upstream = idt_msg_has_flag (msg, IDT_MSGFLAG_UPSTREAM);

    if (upstream && nodeid == r->rank) /* UPSTREAM with our rank: only services above this broker are meant */
        pass_up (r, from, msg);
    else if (upstream || nodeid == IDT_NODEID_ANY)
        route_here (r, from, msg, true);
    else
        route_to_rank (r, from, msg, nodeid);
}

/* A request cannot be routed: answer it with an error.  The error is sent to 'from' directly, because the routes of the
 * request are not reliable.
 */
static void refuse (struct router *r, struct peer *from, const idt_msg_t *msg)
{
    idt_msg_t *response;

    r->stats.failed++;
    if (!(response = respond (from, msg, EPROTO)))
        return;
    idt_msg_set_string (response, "the request has no topic, or too many routes");
    from->send (from->arg, response);
    idt_msg_unref (response);
}

/* Return a request to its sender, unchanged, because the service did not take it. */
static void give_back (struct router *r, struct peer *from, idt_msg_t *msg)
{
    assert (from->busy && r->stats.requests > 0);
    r->busy = false;
    r->stats.requests--;
    idt_msg_route_pop (msg);
    if (from->kind == PEER_CLIENT)
        idt_msg_route_drop_oldest (msg);
    from->busy (from->arg, msg);
}

void router_request_new (struct router *r, struct peer *from, idt_msg_t *msg)
{
    r->stats.requests++;
    router_show (r, ROUTER_FROM, from, msg);
    if (!idt_msg_topic (msg) || (from->kind == PEER_CLIENT && sign_routes (msg, from->uuid) < 0)
        || idt_msg_route_push (msg, from->uuid) < 0) {
        refuse (r, from, msg);
        idt_msg_unref (msg);
        return;
    }
    route_request (r, from, msg);
    if (r->busy)
        give_back (r, from, msg);
    else
        idt_msg_unref (msg);
}

void router_request_again_new (struct router *r, const idt_msg_t *msg)
{
    struct peer *from = router_peer (r, idt_msg_route_newest (msg));

    if (from)
        route_request (r, from, msg);
    idt_msg_unref (msg);
}

/* --- the end of a peer --------------------------------------------------------------------- */

static void answer_unreachable (const idt_msg_t *request, struct rpc_track_party *to, void *arg)
{
    fail_gone (arg, to->owner, request);
}

static idt_msg_t *make_disconnect (const char *service, uint32_t nodeid, int upstream, struct idt_cred cred)
{
    char topic[MAX_SERVICE_NAME + 16];
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    snprintf (topic, sizeof (topic), "%.*s.disconnect", MAX_SERVICE_NAME, service);
    if (!msg || idt_msg_set_topic (msg, topic) < 0) {
        idt_msg_unref (msg);
        return NULL;
    }
    idt_msg_set_flag (msg, IDT_MSGFLAG_NORESPONSE);
    if (upstream)
        idt_msg_set_flag (msg, IDT_MSGFLAG_UPSTREAM);
    idt_msg_set_nodeid (msg, nodeid);
    idt_msg_set_cred (msg, cred);
    idt_msg_route_clear (msg);
    return msg;
}

static void disconnect_uses (struct router *r, struct peer *p)
{
    while (p->uses) {
        struct peer_use *u = p->uses;
        idt_msg_t *msg = make_disconnect (u->service, u->nodeid, u->upstream, u->cred);

        p->uses = u->next;
        free (u);
        if (msg && idt_msg_route_push (msg, p->uuid) == 0)
            route_request (r, p, msg);
        r->busy = false; /* the peer has disconnected and repeats no request */
        idt_msg_unref (msg);
    }
}

/* A child is lost.  Send a disconnect to a service that still works for a requester below this child, so that the
 * service may stop.
 */
static void disconnect_request (const idt_msg_t *request, struct rpc_track_party *to, void *arg)
{
    const struct peer *service = to->owner;
    const char *topic = idt_msg_topic (request);
    char name[MAX_SERVICE_NAME + 1];
    idt_msg_t *msg;

    snprintf (name, sizeof (name), "%.*s", (int)service_len (topic), topic);
    msg = make_disconnect (name, idt_msg_nodeid (request), idt_msg_flags (request) & IDT_MSGFLAG_UPSTREAM,
                           idt_msg_cred (request));
    for (unsigned i = idt_msg_route_count (request); msg && i > 0; i--)
        idt_msg_route_push (msg, idt_msg_route_at (request, i - 1));
    if (msg)
        service->send (service->arg, msg);
    idt_msg_unref (msg);
}

void router_peer_remove (struct router *r, struct peer *p)
{
    char key[16];

    if (router_peer (r, p->uuid) != p)
        return;
    remove_services (r, p);
    disconnect_uses (r, p);
    rpc_track_take (r->pending, &p->pending.asked, p->kind == PEER_CHILD ? disconnect_request : NULL, r);
    zhashx_delete (r->peers, p->uuid);
    if (p->kind == PEER_CHILD)
        zhashx_delete (r->children, rank_key (key, p->rank));
    else if (p == r->parent)
        r->parent = NULL;
    rpc_track_take (r->pending, &p->pending.owes, answer_unreachable, r);
    assert (LIST_EMPTY (&p->pending.asked) && LIST_EMPTY (&p->pending.owes) && !p->uses);
}

bool router_covers (struct router *r, const idt_msg_t *request, uint32_t rank)
{
    const char *uuid = idt_msg_route_newest (request);
    struct peer *from = uuid ? router_peer (r, uuid) : NULL;

    if (!from || rank >= r->topo->size)
        return false;
    if (from->kind == PEER_CHILD)
        return rank == from->rank || topo_child_toward (r->topo, from->rank, rank) != TOPO_NONE;
    return (from->kind == PEER_MODULE || from->kind == PEER_BUILTIN) && rank == r->rank;
}

struct router_stats router_stats (const struct router *r)
{
    struct router_stats s = r->stats;

    s.pending = rpc_track_count (r->pending);
    return s;
}
