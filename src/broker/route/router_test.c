/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* router_test.c - the rules of routing (protocol.md section 3), with peers that only record their messages
 *
 * The router under test is rank 1 of a tree of 7 ranks with fanout 2.  Its parent is 0, its children are 3 and 4.
 * Ranks 2, 5 and 6 are reached through the parent.
 */
#include <errno.h>
#include <string.h>

#include "broker/route/router.h"
#include "test/tap.h"

#define RANK 1
#define MAX_GOT 4096

struct fake {
    struct peer peer;
    const idt_msg_t *got[MAX_GOT];
    int count;
    int errnum; /* errno with which its send () fails; 0: success */
    int hung_up;
};

/* The linker replaces the function below (--wrap), so that the test can simulate a lack of memory. */
static bool no_memory;

idt_msg_t *__real_idt_msg_respond (const idt_msg_t *request, uint32_t errnum);
idt_msg_t *__wrap_idt_msg_respond (const idt_msg_t *request, uint32_t errnum);
idt_msg_t *__wrap_idt_msg_respond (const idt_msg_t *request, uint32_t errnum)
{
    if (!no_memory)
        return __real_idt_msg_respond (request, errnum);
    errno = ENOMEM;
    return NULL;
}

static void make_uuid (char buf[IDT_MSG_UUID_LEN + 1], const char *name)
{
    snprintf (buf, IDT_MSG_UUID_LEN + 1, "%-8.8s-0000-4000-8000-000000000000", name);
    for (int i = 0; i < 8; i++)
        if (buf[i] == ' ')
            buf[i] = '0';
}

static int fake_send (void *arg, const idt_msg_t *msg)
{
    struct fake *f = arg;

    if (f->errnum) {
        errno = f->errnum;
        return -1;
    }
    if (f->count == MAX_GOT)
        bail_out ("a fake peer gets too much");
    f->got[f->count++] = idt_msg_copy (msg, true); /* a copy, like a message that comes over a network */
    return 0;
}

static void fake_hang_up (void *arg)
{
    ((struct fake *)arg)->hung_up++;
}

static void fake_init (struct fake *f, enum peer_kind kind, const char *name, uint32_t rank)
{
    memset (f, 0, sizeof (*f));
    f->peer = (struct peer){ .kind = kind, .rank = rank, .send = fake_send, .arg = f };
    if (kind == PEER_CLIENT || kind == PEER_CHILD || kind == PEER_PARENT)
        f->peer.hang_up = fake_hang_up;
    make_uuid (f->peer.uuid, name);
}

static void fake_clear (struct fake *f)
{
    while (f->count > 0)
        idt_msg_unref (f->got[--f->count]);
}

/* A router, and peers of each kind. */
struct world {
    struct topo *topo;
    struct router *r;
    struct fake parent, child3, child4, mod, other, builtin, c1, c2;
};

static void add (struct world *w, struct fake *f, enum peer_kind kind, const char *name, uint32_t rank)
{
    fake_init (f, kind, name, rank);
    if (router_peer_add (w->r, &f->peer) < 0)
        bail_out ("a peer cannot be added");
}

static struct world *world_create (uint32_t rank, size_t max_pending)
{
    struct world *w = calloc (1, sizeof (*w));

    if (!(w->topo = topo_create ("kary:2", 7, NULL)) || !(w->r = router_create (rank, w->topo, max_pending)))
        bail_out ("no router");
    if (rank > 0)
        add (w, &w->parent, PEER_PARENT, "parent", (rank - 1) / 2);
    add (w, &w->child3, PEER_CHILD, "child3", 2 * rank + 1);
    add (w, &w->child4, PEER_CHILD, "child4", 2 * rank + 2);
    add (w, &w->mod, PEER_MODULE, "mod", 0);
    add (w, &w->other, PEER_MODULE, "other", 0);
    add (w, &w->builtin, PEER_BUILTIN, "builtin", 0);
    add (w, &w->c1, PEER_CLIENT, "client1", 0);
    add (w, &w->c2, PEER_CLIENT, "client2", 0);
    if (router_service_add (w->r, "mod", &w->mod.peer) < 0 || router_service_add (w->r, "other", &w->other.peer) < 0
        || router_service_add (w->r, "log", &w->builtin.peer) < 0)
        bail_out ("no services");
    return w;
}

static void world_clear (struct world *w)
{
    struct fake *all[] = { &w->parent, &w->child3, &w->child4, &w->mod, &w->other, &w->builtin, &w->c1, &w->c2 };

    for (size_t i = 0; i < sizeof (all) / sizeof (all[0]); i++)
        fake_clear (all[i]);
}

static void world_destroy (struct world *w)
{
    struct fake *all[] = { &w->c1, &w->c2, &w->builtin, &w->mod, &w->other, &w->child3, &w->child4, &w->parent };

    for (size_t i = 0; i < sizeof (all) / sizeof (all[0]); i++)
        router_peer_remove (w->r, &all[i]->peer);
    world_clear (w);
    router_destroy (w->r);
    topo_destroy (w->topo);
    free (w);
}

/* --- messages ------------------------------------------------------------------------------------------- */

static idt_msg_t *make_request (const char *topic, uint32_t nodeid, uint32_t tag, int flags)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    if (topic)
        idt_msg_set_topic (msg, topic);
    idt_msg_set_nodeid (msg, nodeid);
    idt_msg_set_matchtag (msg, tag);
    if (flags)
        idt_msg_set_flag (msg, flags);
    idt_msg_set_cred (msg, (struct idt_cred){ 1000, IDT_ROLE_OWNER });
    idt_msg_route_clear (msg);
    return msg;
}

static void ask (struct world *w, struct fake *from, const char *topic, uint32_t nodeid, uint32_t tag, int flags)
{
    router_request_new (w->r, &from->peer, make_request (topic, nodeid, tag, flags));
}

/* The same as ask (), for a requester behind 'from' whose UUID begins with 'name'. */
static void ask_for (struct world *w, struct fake *from, const char *name, const char *topic, uint32_t nodeid,
                     uint32_t tag)
{
    idt_msg_t *msg = make_request (topic, nodeid, tag, 0);
    char uuid[IDT_MSG_UUID_LEN + 1];

    make_uuid (uuid, name);
    idt_msg_route_push (msg, uuid);
    router_request_new (w->r, &from->peer, msg);
}

static void reply (struct world *w, struct fake *from, const idt_msg_t *request, int errnum)
{
    router_response_new (w->r, &from->peer, idt_msg_respond (request, errnum));
}

static const idt_msg_t *last (const struct fake *f)
{
    return f->count > 0 ? f->got[f->count - 1] : NULL;
}

static bool is_answer (const struct fake *f, uint32_t tag, uint32_t errnum)
{
    const idt_msg_t *msg = last (f);

    return f->count == 1 && idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE && idt_msg_matchtag (msg) == tag
           && idt_msg_errnum (msg) == errnum && idt_msg_route_count (msg) == 0;
}

static bool is_request (const struct fake *f, const char *topic, const struct fake *from)
{
    const idt_msg_t *msg = last (f);

    return f->count == 1 && idt_msg_type (msg) == IDT_MSGTYPE_REQUEST && strcmp (idt_msg_topic (msg), topic) == 0
           && strcmp (idt_msg_route_newest (msg), from->peer.uuid) == 0;
}

static size_t pending (struct world *w)
{
    return router_stats (w->r).pending;
}

/* --- peers and services ----------------------------------------------------------------------------------- */

static void test_peers (void)
{
    struct world *w = world_create (RANK, 100);
    struct fake f;

    fake_init (&f, PEER_CLIENT, "client1", 0);
    ok (router_peer_add (w->r, &f.peer) < 0 && errno == EEXIST, "a second peer with the UUID of another is refused");
    fake_init (&f, PEER_CHILD, "new", 3);
    ok (router_peer_add (w->r, &f.peer) < 0 && errno == EEXIST, "a second child with the rank of another is refused");
    fake_init (&f, PEER_PARENT, "new", 0);
    ok (router_peer_add (w->r, &f.peer) < 0 && errno == EEXIST, "a second parent is refused");
    ok (router_peer (w->r, w->c1.peer.uuid) == &w->c1.peer && !router_peer (w->r, "nobody"), "peers are found by UUID");
    router_peer_remove (w->r, &f.peer);
    ok (router_peer (w->r, w->parent.peer.uuid) == &w->parent.peer
            && router_peer (w->r, w->child3.peer.uuid) == &w->child3.peer,
        "removing an unknown peer changes nothing");
    world_destroy (w);
}

static void test_services (void)
{
    struct world *w = world_create (RANK, 100);
    char name[80];

    memset (name, 'x', sizeof (name));
    name[64] = '\0';
    ok (router_service_add (w->r, name, &w->mod.peer) == 0, "a service name may have 64 characters");
    ok (router_service (w->r, name) == &w->mod.peer, "a service with a name of 64 characters is found");
    name[64] = 'x';
    name[65] = '\0';
    ok (router_service_add (w->r, name, &w->mod.peer) < 0 && errno == EINVAL,
        "a service name of 65 characters is refused");
    ok (router_service_add (w->r, "a.b", &w->mod.peer) < 0 && errno == EINVAL, "a service name with a dot is refused");
    ok (router_service_add (w->r, "", &w->mod.peer) < 0 && errno == EINVAL, "an empty service name is refused");
    ok (router_service_add (w->r, "other", &w->mod.peer) < 0 && errno == EEXIST,
        "a service of one peer cannot be taken over by another peer");
    ok (router_service_remove (w->r, "other", &w->mod.peer) < 0 && errno == ENOENT,
        "a service of one peer cannot be removed by another peer");
    ok (router_service (w->r, "mod.x.y") == &w->mod.peer && router_service (w->r, "mod") == &w->mod.peer
            && !router_service (w->r, "mode") && !router_service (w->r, "mo.d") && !router_service (w->r, ".mod"),
        "the topic of a request up to the first dot names the service");
    ok (router_service_remove (w->r, "mod", &w->mod.peer) == 0 && !router_service (w->r, "mod"),
        "a service can be removed");
    world_destroy (w);
}

/* --- where requests go ------------------------------------------------------------------------------------ */

static void ask_as_broker (struct world *w, struct fake *from, const char *topic, uint32_t nodeid, uint32_t tag)
{
    idt_msg_t *msg = make_request (topic, nodeid, tag, 0);

    idt_msg_set_cred (msg, (struct idt_cred){ 1000, IDT_ROLE_OWNER | IDT_ROLE_BROKER });
    router_request_new (w->r, &from->peer, msg);
}

static void test_brokers_only (void)
{
    struct world *w = world_create (RANK, 100);

    if (router_service_add (w->r, "gone", &w->c1.peer) < 0)
        bail_out ("no service");
    ask (w, &w->child3, "gone.x", IDT_NODEID_ANY, 1, 0);
    ok (is_request (&w->c1, "gone.x", &w->child3), "a client may serve requests of other clients");
    world_clear (w);
    ask_as_broker (w, &w->child3, "gone.x", IDT_NODEID_ANY, 2);
    ok (is_request (&w->parent, "gone.x", &w->child3) && w->c1.count == 0,
        "a request of a broker for a service of a client is passed to the parent");
    ask_as_broker (w, &w->child3, "gone.x", RANK, 3);
    ok (is_answer (&w->child3, 3, ENOSYS) && w->c1.count == 0,
        "a request of a broker to this rank for a service of a client fails with ENOSYS");
    ask_as_broker (w, &w->child3, "mod.x", IDT_NODEID_ANY, 4);
    ok (is_request (&w->mod, "mod.x", &w->child3), "modules serve requests of brokers");
    world_destroy (w);
}

static void test_any (void)
{
    struct world *w = world_create (RANK, 100);

    ask (w, &w->c1, "mod.x", IDT_NODEID_ANY, 1, 0);
    ok (is_request (&w->mod, "mod.x", &w->c1), "a request to nodeid ANY goes to the service of this broker");
    ask (w, &w->c1, "far.x", IDT_NODEID_ANY, 2, 0);
    ok (is_request (&w->parent, "far.x", &w->c1),
        "a request to nodeid ANY goes to the parent if this broker does not have the service");
    world_clear (w);
    ask (w, &w->child3, "far.x", IDT_NODEID_ANY, 3, 0);
    ok (is_request (&w->parent, "far.x", &w->child3),
        "a child's request to nodeid ANY goes to the parent if this broker does not have the service");
    ask (w, &w->parent, "far.x", IDT_NODEID_ANY, 4, 0);
    ok (w->parent.count == 2 && is_answer (&(struct fake){ .got = { w->parent.got[1] }, .count = 1 }, 4, EHOSTUNREACH),
        "a request from the parent for a service that this broker does not have fails with EHOSTUNREACH, and is not "
        "sent back");
    router_peer_remove (w->r, &w->parent.peer);
    world_clear (w);
    ask (w, &w->c2, "far.x", IDT_NODEID_ANY, 5, 0);
    ok (is_answer (&w->c2, 5, EHOSTUNREACH),
        "a request for a service that this broker does not have fails with EHOSTUNREACH if the parent is not "
        "connected");
    ask (w, &w->c2, "mod.x", IDT_NODEID_ANY, 6, 0);
    ok (w->mod.count == 1, "if the parent is not connected, requests for services of this broker are still routed");
    world_destroy (w);
}

static void test_root (void)
{
    struct world *w = world_create (0, 100);

    ask (w, &w->c1, "far.x", IDT_NODEID_ANY, 1, 0);
    ok (is_answer (&w->c1, 1, ENOSYS)
            && strcmp (idt_msg_string (last (&w->c1)), "No service matching far.x is registered") == 0,
        "rank 0 answers ENOSYS with a text if no rank has the service");
    world_clear (w);
    ask (w, &w->c1, "mod.x", 0, 2, IDT_MSGFLAG_UPSTREAM);
    ok (is_answer (&w->c1, 2, EHOSTUNREACH),
        "a request of a client of rank 0 with flag UPSTREAM fails with EHOSTUNREACH");
    ask (w, &w->child3, "mod.x", 1, 3, IDT_MSGFLAG_UPSTREAM);
    ok (is_request (&w->mod, "mod.x", &w->child3),
        "a request of a child of rank 0 with flag UPSTREAM is served by rank 0");
    world_destroy (w);
}

static void test_rank (void)
{
    static const struct {
        uint32_t nodeid;
        int to; /* expected peer: 0 parent; 3, 4 child; 1 service here; -1 none */
    } ways[] = { { 0, 0 }, { 1, 1 }, { 2, 0 }, { 3, 3 }, { 4, 4 }, { 5, 0 }, { 6, 0 }, { 7, -1 }, { 0xfffffffe, -1 } };

    for (size_t i = 0; i < sizeof (ways) / sizeof (ways[0]); i++) {
        struct world *w = world_create (RANK, 100);
        int to = ways[i].to;

        ask (w, &w->c1, "mod.x", ways[i].nodeid, 9, 0);
        ok (w->parent.count == (to == 0) && w->mod.count == (to == 1) && w->child3.count == (to == 3)
                && w->child4.count == (to == 4) && (to >= 0 || is_answer (&w->c1, 9, EHOSTUNREACH)),
            "a request to nodeid %u of 7 is routed by the tree", ways[i].nodeid);
        world_destroy (w);
    }
}

static void test_rank_failures (void)
{
    struct world *w = world_create (RANK, 100);

    ask (w, &w->c1, "nosuch.x", RANK, 1, 0);
    ok (is_answer (&w->c1, 1, ENOSYS),
        "a request to this rank for a service that it does not have fails with ENOSYS, and is not sent to the parent");
    world_clear (w);
    ask (w, &w->parent, "mod.x", 2, 2, 0);
    ok (is_answer (&w->parent, 2, EHOSTUNREACH),
        "a request from the parent for a rank that is not below this one fails");
    router_peer_remove (w->r, &w->child3.peer);
    world_clear (w);
    ask (w, &w->c1, "mod.x", 3, 3, 0);
    ok (w->parent.count == 1 && w->c1.count == 0,
        "a request for the rank of a child that is not connected goes to the parent");
    world_clear (w);
    ask (w, &w->parent, "mod.x", 3, 5, 0);
    ok (is_answer (&w->parent, 5, EHOSTUNREACH),
        "a request from the parent for the rank of a child that is not connected fails with EHOSTUNREACH");
    router_peer_remove (w->r, &w->parent.peer);
    world_clear (w);
    ask (w, &w->child4, "mod.x", 3, 4, 0);
    ok (is_answer (&w->child4, 4, EHOSTUNREACH),
        "a request for the rank of a child that is not connected fails if the broker has no parent");
    world_destroy (w);
}

static void test_upstream (void)
{
    struct world *w = world_create (RANK, 100);

    ask (w, &w->c1, "mod.x", RANK, 1, IDT_MSGFLAG_UPSTREAM);
    ok (is_request (&w->parent, "mod.x", &w->c1) && w->mod.count == 0
            && idt_msg_has_flag (last (&w->parent), IDT_MSGFLAG_UPSTREAM) && idt_msg_nodeid (last (&w->parent)) == RANK,
        "a request with flag UPSTREAM and this rank as nodeid skips the services of this broker, and is passed to "
        "the parent unchanged");
    ask (w, &w->child3, "mod.x", 3, 2, IDT_MSGFLAG_UPSTREAM);
    ok (is_request (&w->mod, "mod.x", &w->child3),
        "a child's request with flag UPSTREAM is served by this broker if it has the service");
    world_clear (w);
    ask (w, &w->child3, "far.x", 3, 3, IDT_MSGFLAG_UPSTREAM);
    ok (is_request (&w->parent, "far.x", &w->child3),
        "a child's request with flag UPSTREAM is passed to the parent if this broker does not have the service");
    world_destroy (w);
}

static void test_malformed (void)
{
    struct world *w = world_create (RANK, 100);
    idt_msg_t *msg = make_request ("mod.x", IDT_NODEID_ANY, 2, 0);
    char topic[IDT_MSG_MAX_TOPIC + 1];

    ask (w, &w->c1, NULL, IDT_NODEID_ANY, 1, 0);
    ok (is_answer (&w->c1, 1, EPROTO), "a request without a topic fails with EPROTO");
    world_clear (w);
    while (idt_msg_route_push (msg, w->c2.peer.uuid) == 0)
        ;
    router_request_new (w->r, &w->c1.peer, msg);
    ok (w->c1.count == 1 && idt_msg_errnum (last (&w->c1)) == EPROTO,
        "a request with too many routes fails with EPROTO");
    world_clear (w);
    memset (topic, 'x', sizeof (topic) - 1);
    topic[sizeof (topic) - 1] = '\0';
    ask (w, &w->c1, "mod.x", IDT_NODEID_ANY, 3, 0);
    ask (w, &w->c1, topic, IDT_NODEID_ANY, 4, 0);
    ok (w->parent.count == 1, "a request with the longest topic is routed like any other");
    world_destroy (w);
}

/* --- answers ---------------------------------------------------------------------------------------------- */

static void test_once (void)
{
    struct world *w = world_create (RANK, 100);
    const idt_msg_t *request;

    ask (w, &w->c1, "mod.x", IDT_NODEID_ANY, 7, 0);
    request = last (&w->mod);
    ok (pending (w) == 1, "a request that was passed on is remembered");
    reply (w, &w->other, request, 0);
    ok (w->c1.count == 0 && pending (w) == 1, "a response of a peer to which the request was not sent is dropped");
    reply (w, &w->mod, request, 0);
    ok (is_answer (&w->c1, 7, 0) && pending (w) == 0,
        "the response of the peer to which the request was sent reaches the requester");
    reply (w, &w->mod, request, 0);
    ok (w->c1.count == 1 && router_stats (w->r).unroutable == 2, "a second response to a request is dropped");
    world_destroy (w);
}

static void test_no_response (void)
{
    struct world *w = world_create (RANK, 100);

    ask (w, &w->c1, "mod.x", IDT_NODEID_ANY, 7, IDT_MSGFLAG_NORESPONSE);
    ok (w->mod.count == 1 && pending (w) == 0, "a request with NORESPONSE is passed on and not remembered");
    ask (w, &w->c1, "nosuch.x", RANK, 7, IDT_MSGFLAG_NORESPONSE);
    ok (w->c1.count == 0, "a request with NORESPONSE gets no error response when it fails");
    reply (w, &w->mod, w->mod.got[0], 0);
    ok (w->c1.count == 0, "a response to a request with NORESPONSE is dropped");
    world_destroy (w);
}

/* The flag says that a request wants no response, not the matchtag (RFC 6). */
static void test_no_tag (void)
{
    struct world *w = world_create (RANK, 100);

    ask (w, &w->c1, "mod.x", IDT_NODEID_ANY, 0, 0);
    ask (w, &w->c1, "mod.x", IDT_NODEID_ANY, 0, 0);
    ok (w->mod.count == 2 && pending (w) == 2, "requests with matchtag 0 are remembered");
    reply (w, &w->mod, w->mod.got[0], 0);
    ok (is_answer (&w->c1, 0, 0) && pending (w) == 1,
        "the response to a request with matchtag 0 is sent to the requester");
    reply (w, &w->mod, w->mod.got[1], 0);
    reply (w, &w->mod, w->mod.got[1], 0);
    ok (w->c1.count == 2 && pending (w) == 0, "each request with matchtag 0 gets one response");
    fake_clear (&w->c1);
    ask (w, &w->c1, "nosuch.x", RANK, 0, 0);
    ok (is_answer (&w->c1, 0, ENOSYS), "a request with matchtag 0 for an unknown service fails with ENOSYS");
    fake_clear (&w->c1);
    ask (w, &w->c1, "log.x", RANK, 0, 0);
    reply (w, &w->builtin, w->builtin.got[0], 0);
    ok (is_answer (&w->c1, 0, 0),
        "a request with matchtag 0 to a service that is built into the broker gets its response");
    fake_clear (&w->c1);
    ask (w, &w->c1, "mod.x", IDT_NODEID_ANY, 0, 0);
    router_peer_remove (w->r, &w->mod.peer);
    ok (is_answer (&w->c1, 0, ENOSYS) && pending (w) == 0,
        "a request with matchtag 0 fails with ENOSYS when its service ends");
    world_destroy (w);
}

static void test_tags (void)
{
    struct world *w = world_create (RANK, 100);
    const char *who;

    ask_for (w, &w->child3, "aaaa", "mod.x", IDT_NODEID_ANY, 1);
    ask_for (w, &w->child3, "bbbb", "mod.x", IDT_NODEID_ANY, 1);
    ok (pending (w) == 2, "two clients below one child may use the same matchtag");
    reply (w, &w->mod, w->mod.got[1], 0);
    who = idt_msg_route_oldest (last (&w->child3));
    ok (pending (w) == 1 && w->child3.count == 1 && strncmp (who, "bbbb", 4) == 0,
        "of two clients below one child with the same matchtag, the right one gets the response");
    reply (w, &w->mod, w->mod.got[0], 0);
    who = idt_msg_route_oldest (last (&w->child3));
    ok (pending (w) == 0 && w->child3.count == 2 && strncmp (who, "aaaa", 4) == 0,
        "two clients below one child with the same matchtag may get their responses in any order");
    world_clear (w);
    ask (w, &w->c1, "mod.x", IDT_NODEID_ANY, 1, 0);
    ask (w, &w->c1, "mod.x", IDT_NODEID_ANY, 1, 0);
    ok (pending (w) == 2, "two requests of a client with the same matchtag are both remembered");
    reply (w, &w->mod, w->mod.got[0], 0);
    reply (w, &w->mod, w->mod.got[1], 0);
    reply (w, &w->mod, w->mod.got[1], 0);
    ok (pending (w) == 0 && w->c1.count == 2,
        "two requests of a client with the same matchtag get exactly two responses");
    world_destroy (w);
}

static void test_streaming (void)
{
    struct world *w = world_create (RANK, 100);
    const idt_msg_t *request;

    ask (w, &w->c1, "mod.x", IDT_NODEID_ANY, 1, IDT_MSGFLAG_STREAMING);
    request = w->mod.got[0];
    reply (w, &w->mod, request, 0);
    reply (w, &w->mod, request, 0);
    ok (w->c1.count == 2 && pending (w) == 1, "a streaming request may be answered many times");
    reply (w, &w->mod, request, ENODATA);
    ok (w->c1.count == 3 && pending (w) == 0, "a streaming request is forgotten when an error ends its stream");
    reply (w, &w->mod, request, 0);
    ok (w->c1.count == 3, "a response after the end of a stream is dropped");
    world_clear (w);
    ask (w, &w->c1, "mod.x", 3, 2, IDT_MSGFLAG_STREAMING);
    reply (w, &w->child3, w->child3.got[0], 0);
    router_peer_remove (w->r, &w->child3.peer);
    ok (w->c1.count == 2 && idt_msg_errnum (last (&w->c1)) == EHOSTUNREACH && pending (w) == 0,
        "a stream whose service is on a disconnected peer ends with EHOSTUNREACH");
    world_destroy (w);
}

/* --- the end of a peer ------------------------------------------------------------------------------------ */

static void test_target_gone (void)
{
    struct world *w = world_create (RANK, 100);

    ask (w, &w->c1, "mod.x", 0, 1, 0);
    ask (w, &w->c2, "mod.x", 3, 2, 0);
    ask (w, &w->child4, "other.x", IDT_NODEID_ANY, 3, 0);
    router_peer_remove (w->r, &w->parent.peer);
    ok (is_answer (&w->c1, 1, EHOSTUNREACH) && w->c2.count == 0, "when the parent is lost, requests sent to it fail "
                                                                 "with EHOSTUNREACH");
    router_peer_remove (w->r, &w->child3.peer);
    ok (is_answer (&w->c2, 2, EHOSTUNREACH), "when a child is lost, requests sent to it fail with EHOSTUNREACH");
    router_peer_remove (w->r, &w->other.peer);
    ok (is_answer (&w->child4, 3, ENOSYS) && !router_service (w->r, "other"),
        "when a module ends, requests sent to it fail with ENOSYS, and its service is removed");
    ok (pending (w) == 0, "no request is remembered after all peers that had to answer have ended");
    world_destroy (w);
}

static void test_send_fails (void)
{
    struct world *w = world_create (RANK, 100);

    w->parent.errnum = EAGAIN;
    ask (w, &w->c1, "far.x", IDT_NODEID_ANY, 1, 0);
    ok (is_answer (&w->c1, 1, EHOSTUNREACH) && pending (w) == 0, "a request that cannot be sent to a broker fails "
                                                                 "with EHOSTUNREACH");
    w->other.errnum = EPIPE;
    ask (w, &w->c2, "other.x", IDT_NODEID_ANY, 3, 0);
    ok (is_answer (&w->c2, 3, ENOSYS) && pending (w) == 0,
        "a request that cannot be sent to a module or client that is ending fails with ENOSYS");
    fake_clear (&w->c2);
    w->builtin.errnum = ENOBUFS;
    ask (w, &w->c2, "log.x", IDT_NODEID_ANY, 4, 0);
    ok (is_answer (&w->c2, 4, ENOSYS), "a request that cannot be delivered to the broker itself fails with ENOSYS");
    fake_clear (&w->c2);
    w->mod.errnum = EXFULL;
    ask (w, &w->c2, "mod.x", IDT_NODEID_ANY, 2, 0);
    ok (is_answer (&w->c2, 2, EAGAIN) && strstr (idt_msg_string (last (&w->c2)), "service mod is full"),
        "a request to a service with a full queue fails with EAGAIN, not with ENOSYS");
    w->c1.errnum = EPIPE;
    ask (w, &w->c1, "nosuch.x", RANK, 2, 0);
    ok (router_stats (w->r).unroutable == 1, "a response that cannot be sent to the requester is dropped and counted");
    world_destroy (w);
}

static bool is_disconnect (const idt_msg_t *msg, const char *topic, const char *uuid)
{
    return idt_msg_type (msg) == IDT_MSGTYPE_REQUEST && strcmp (idt_msg_topic (msg), topic) == 0
           && idt_msg_has_flag (msg, IDT_MSGFLAG_NORESPONSE) && strcmp (idt_msg_route_oldest (msg), uuid) == 0;
}

static void test_client_gone (void)
{
    struct world *w = world_create (RANK, 100);

    ask (w, &w->c1, "mod.x", IDT_NODEID_ANY, 1, 0);
    ask (w, &w->c1, "mod.y", IDT_NODEID_ANY, 2, 0);
    ask (w, &w->c1, "far.x", IDT_NODEID_ANY, 3, 0);
    ask (w, &w->c1, "mod.x", 3, 4, 0);
    ask (w, &w->c1, "mod.x", RANK, 5, IDT_MSGFLAG_UPSTREAM);
    ask (w, &w->c2, "mod.x", IDT_NODEID_ANY, 1, 0);
    router_peer_remove (w->r, &w->c1.peer);
    ok (w->mod.count == 4 && is_disconnect (last (&w->mod), "mod.disconnect", w->c1.peer.uuid),
        "when a client disconnects, a service that the client used gets one disconnect");
    ok (w->child3.count == 2 && is_disconnect (last (&w->child3), "mod.disconnect", w->c1.peer.uuid)
            && idt_msg_nodeid (last (&w->child3)) == 3,
        "when a client disconnects, a service that the client used on another rank gets one disconnect");
    ok (w->parent.count == 4 && is_disconnect (w->parent.got[2], "mod.disconnect", w->c1.peer.uuid)
            && idt_msg_has_flag (w->parent.got[2], IDT_MSGFLAG_UPSTREAM)
            && is_disconnect (w->parent.got[3], "far.disconnect", w->c1.peer.uuid),
        "when a client disconnects, a service that the client used on a rank above gets one disconnect");
    ok (w->other.count == 0, "when a client disconnects, a service that the client did not use gets no disconnect");
    ok (pending (w) == 1, "when a client disconnects, its requests are forgotten, and requests of others are not");
    reply (w, &w->mod, w->mod.got[0], 0);
    ok (w->c1.count == 0 && router_stats (w->r).unroutable == 1,
        "a response to a client that has disconnected is dropped");
    world_destroy (w);
}

/* A module whose queue is full takes only disconnects, like a module of module/host.c. */
static int full_send (void *arg, const idt_msg_t *msg)
{
    struct fake *f = arg;

    if (!router_is_disconnect (msg)) {
        errno = EXFULL;
        return -1;
    }
    f->count++;
    return 0;
}

/* Clients connect, send requests to a module that takes none, and disconnect.  The module then gets no disconnect. */
static void test_refused_client_gone (void)
{
    struct world *w = world_create (RANK, 100);
    static struct fake guest;

    w->mod.peer.send = full_send;
    for (int i = 0; i < 5000; i++) {
        add (w, &guest, PEER_CLIENT, "guest", 0);
        ask (w, &guest, "mod.x", IDT_NODEID_ANY, 1, 0);
        ask (w, &guest, "mod.disconnect", IDT_NODEID_ANY, 0, IDT_MSGFLAG_NORESPONSE);
        w->mod.count--;
        router_peer_remove (w->r, &guest.peer);
        fake_clear (&guest);
    }
    ok (w->mod.count == 0,
        "a full module that refused the requests of 5,000 clients gets no disconnect of these clients: %d",
        w->mod.count);
    w->mod.count = 0;
    world_destroy (w);
}

/* A disconnect is passed on.  On its way each broker forgets the requests that it ends. */
static void test_disconnect_passes (void)
{
    struct world *w = world_create (RANK, 100);
    idt_msg_t *msg = make_request ("far.disconnect", IDT_NODEID_ANY, 0, IDT_MSGFLAG_NORESPONSE);
    char uuid[IDT_MSG_UUID_LEN + 1];

    make_uuid (uuid, "aaaa");
    ask_for (w, &w->child3, "aaaa", "far.x", IDT_NODEID_ANY, 1);
    ask_for (w, &w->child3, "aaaa", "mod.x", IDT_NODEID_ANY, 2);
    ask_for (w, &w->child3, "bbbb", "far.x", IDT_NODEID_ANY, 1);
    idt_msg_route_push (msg, uuid);
    router_request_new (w->r, &w->child3.peer, msg);
    ok (w->parent.count == 3 && is_disconnect (last (&w->parent), "far.disconnect", uuid) && pending (w) == 2,
        "a disconnect is passed on, and this broker forgets the requests of the disconnect's sender for that service");
    world_destroy (w);
}

static void test_child_gone (void)
{
    struct world *w = world_create (RANK, 100);
    char uuid[IDT_MSG_UUID_LEN + 1];

    make_uuid (uuid, "aaaa");
    ask_for (w, &w->child3, "aaaa", "mod.x", IDT_NODEID_ANY, 1);
    ask_for (w, &w->child4, "bbbb", "other.x", IDT_NODEID_ANY, 1);
    router_peer_remove (w->r, &w->child3.peer);
    ok (w->mod.count == 2 && is_disconnect (last (&w->mod), "mod.disconnect", uuid),
        "when a child is lost, a service that works for a requester below that child gets a disconnect");
    ok (idt_msg_route_count (last (&w->mod)) == 2
            && strcmp (idt_msg_route_newest (last (&w->mod)), w->child3.peer.uuid) == 0,
        "the disconnect after the loss of a child has the route of the request that it ends");
    ok (w->other.count == 1 && pending (w) == 1,
        "after the loss of a child, services that work for no requester below that child get no disconnect");
    world_destroy (w);
}

/* The broker's own services answer immediately, so only streaming requests to them are remembered. */
static void test_builtin (void)
{
    struct world *w = world_create (RANK, 100);
    idt_msg_t *msg = make_request ("log.dmesg", IDT_NODEID_ANY, 2, IDT_MSGFLAG_STREAMING);
    char uuid[IDT_MSG_UUID_LEN + 1];

    ask (w, &w->c1, "log.x", IDT_NODEID_ANY, 1, 0);
    ok (pending (w) == 0, "a request to the broker itself is not remembered");
    reply (w, &w->builtin, last (&w->builtin), 0);
    ok (is_answer (&w->c1, 1, 0), "the response to a request to the broker itself is sent to the requester");
    make_uuid (uuid, "aaaa");
    idt_msg_route_push (msg, uuid);
    router_request_new (w->r, &w->child3.peer, msg);
    reply (w, &w->builtin, last (&w->builtin), 0);
    ok (w->child3.count == 1 && pending (w) == 1, "a stream of the broker itself is remembered");
    router_peer_remove (w->r, &w->child3.peer);
    ok (w->builtin.count == 3 && is_disconnect (last (&w->builtin), "log.disconnect", uuid) && pending (w) == 0,
        "a stream of the broker itself ends when the child to which it is sent is lost");
    world_destroy (w);
}

/* A streaming request is no longer remembered after its final response. */
static void test_streams_answered_once (void)
{
    struct world *w = world_create (RANK, 100);
    struct fake *servers[] = { &w->mod, &w->builtin };
    const char *topics[] = { "mod.x", "log.x" };

    for (int i = 0; i < 2; i++) {
        idt_msg_t *response;

        ask (w, &w->c1, topics[i], IDT_NODEID_ANY, 1, IDT_MSGFLAG_STREAMING);
        response = idt_msg_respond (last (servers[i]), 0);
        idt_msg_clear_flag (response, IDT_MSGFLAG_STREAMING);
        router_response_new (w->r, &servers[i]->peer, response);
        ok (w->c1.count == 1 && pending (w) == 0, "a streaming request to %s that is answered once is not remembered",
            topics[i]);
        fake_clear (&w->c1);
    }
    world_destroy (w);
}

/* A client may put any routes into a request.  When this client disconnects, the request still ends. */
static void test_proxy (void)
{
    struct world *w = world_create (RANK, 100);
    idt_msg_t *msg = make_request ("far.x", IDT_NODEID_ANY, 1, IDT_MSGFLAG_STREAMING);
    char uuid[IDT_MSG_UUID_LEN + 1];

    make_uuid (uuid, "inner");
    idt_msg_route_push (msg, uuid);
    router_request_new (w->r, &w->c1.peer, msg);
    ok (idt_msg_route_count (last (&w->parent)) == 3
            && strcmp (idt_msg_route_oldest (last (&w->parent)), w->c1.peer.uuid) == 0,
        "the oldest route of a client's request is the client's, even if the client added other routes");
    reply (w, &w->parent, last (&w->parent), 0);
    ok (w->c1.count == 1 && idt_msg_route_count (last (&w->c1)) == 1
            && strcmp (idt_msg_route_oldest (last (&w->c1)), uuid) == 0,
        "the routes that a client added to its request are in the response");
    router_peer_remove (w->r, &w->c1.peer);
    ok (pending (w) == 0 && is_disconnect (last (&w->parent), "far.disconnect", w->c1.peer.uuid),
        "when a client that added routes to its request disconnects, its streams end");
    world_destroy (w);
}

/* If a client serves its own request and disconnects, it gets no response to that request. */
static void test_self (void)
{
    struct world *w = world_create (RANK, 100);

    router_service_add (w->r, "self", &w->c1.peer);
    ask (w, &w->c1, "self.x", IDT_NODEID_ANY, 1, 0);
    ask (w, &w->c2, "self.x", IDT_NODEID_ANY, 1, 0);
    ok (w->c1.count == 2, "a client may serve requests, even requests of its own");
    router_peer_remove (w->r, &w->c1.peer);
    ok (w->c1.count == 2 && is_answer (&w->c2, 1, ENOSYS) && pending (w) == 0,
        "when a client that serves requests disconnects, only requests of others get an error");
    world_destroy (w);
}

/* --- limits ----------------------------------------------------------------------------------------------- */

static void test_limits (void)
{
    struct world *w = world_create (RANK, 3);
    char topic[32];

    for (uint32_t tag = 1; tag <= 3; tag++)
        ask (w, &w->c1, "mod.x", IDT_NODEID_ANY, tag, 0);
    ok (w->mod.count == 2 && is_answer (&w->c1, 3, EAGAIN) && strstr (idt_msg_string (last (&w->c1)), "max-pending"),
        "a request above the requester's share of router.max-pending is refused with EAGAIN and the attribute's name");
    ask (w, &w->child3, "mod.x", IDT_NODEID_ANY, 1, 0);
    ok (w->mod.count == 3 && w->child3.count == 0,
        "when a requester has reached its share of router.max-pending, the first request of another requester is "
        "accepted");
    reply (w, &w->mod, w->mod.got[0], 0);
    ask (w, &w->c1, "mod.x", IDT_NODEID_ANY, 4, 0);
    ok (w->mod.count == 3,
        "a requester that has many pending requests does not get the last place of router.max-pending");
    reply (w, &w->mod, w->mod.got[1], 0);
    ask (w, &w->c1, "mod.x", IDT_NODEID_ANY, 5, 0);
    ok (w->mod.count == 4, "a requester with pending requests gets a place when others are free, too");
    world_clear (w);
    for (int i = 0; i < ROUTER_MAX_USES + 10; i++) {
        snprintf (topic, sizeof (topic), "far%d.x", i);
        ask (w, &w->c2, topic, IDT_NODEID_ANY, 0, IDT_MSGFLAG_NORESPONSE);
    }
    fake_clear (&w->parent);
    router_peer_remove (w->r, &w->c2.peer);
    ok (w->parent.count == ROUTER_MAX_USES, "%d services get a disconnect when a client disconnects", ROUTER_MAX_USES);
    world_destroy (w);
}

/* --- a random history ------------------------------------------------------------------------------------- */

#define HISTORY 30000
#define REQUESTERS 5
#define MAX_TAG 20000

/* The requesters of the history: two clients, two requesters behind child 3, and one behind child 4.  All use the same
 * matchtags.
 */
struct requester {
    const char *name;
    struct fake *via;
    bool direct;
    uint32_t tag;
    bool up;
    uint8_t *asked; /* by matchtag: 0 not sent, 1 sent, 2 sent before the requester disconnected */
    uint8_t *answers;
};

struct history {
    struct world *w;
    struct requester requesters[REQUESTERS];
    unsigned seed;
    unsigned names;
    int wrong;
};

static int draw (struct history *h, int n)
{
    return rand_r (&h->seed) % n;
}

static struct requester *requester_of (struct history *h, const struct fake *via, const idt_msg_t *answer)
{
    char uuid[IDT_MSG_UUID_LEN + 1];
    const char *oldest = idt_msg_route_oldest (answer);

    for (int i = 0; i < REQUESTERS; i++) {
        make_uuid (uuid, h->requesters[i].name);
        if (h->requesters[i].via == via && (h->requesters[i].direct ? !oldest : oldest && strcmp (oldest, uuid) == 0))
            return &h->requesters[i];
    }
    return NULL;
}

/* Check that each response is the first one to its request, and that the requester is still connected. */
static void check_answers (struct history *h, struct fake *via)
{
    int kept = 0;

    for (int i = 0; i < via->count; i++) {
        const idt_msg_t *msg = via->got[i];

        if (idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE) {
            struct requester *a = requester_of (h, via, msg);
            uint32_t tag = idt_msg_matchtag (msg);

            if (!a || tag > MAX_TAG || a->asked[tag] != 1 || a->answers[tag]++ != 0) {
                if (h->wrong++ < 3)
                    diag ("%s: tag %u, error %u, asked %d, answered %d", a ? a->name : "?", tag, idt_msg_errnum (msg),
                          a ? a->asked[tag] : 0, a ? a->answers[tag] : 0);
            }
            idt_msg_unref (msg);
        }
        else
            via->got[kept++] = msg;
    }
    via->count = kept;
}

static void check_all (struct history *h)
{
    for (int i = 0; i < REQUESTERS; i++)
        check_answers (h, h->requesters[i].via);
}

static void step_ask (struct history *h)
{
    static const char *topics[] = { "mod.x", "other.x", "far.x", "log.x" };
    struct requester *a = &h->requesters[draw (h, REQUESTERS)];
    const char *topic = topics[draw (h, 4)];
    uint32_t nodeid = draw (h, 2) ? IDT_NODEID_ANY : (uint32_t)draw (h, 8);

    if (!a->up || a->tag == MAX_TAG)
        return;
    a->asked[++a->tag] = 1;
    if (a->direct)
        ask (h->w, a->via, topic, nodeid, a->tag, 0);
    else
        ask_for (h->w, a->via, a->name, topic, nodeid, a->tag);
}

/* A peer that has got requests answers one of them.  Sometimes it keeps the request, and answers it again later. */
static void step_reply (struct history *h)
{
    struct world *w = h->w;
    struct fake *servers[] = { &w->mod, &w->other, &w->parent, &w->child3, &w->child4, &w->builtin };
    struct fake *f = servers[draw (h, 6)];
    const idt_msg_t *msg;
    int i;

    if (f->count == 0 || !router_peer (w->r, f->peer.uuid))
        return;
    i = draw (h, f->count);
    msg = f->got[i];
    if (!idt_msg_has_flag (msg, IDT_MSGFLAG_NORESPONSE))
        reply (w, f, msg, draw (h, 3) ? 0 : EIO);
    if (f->peer.kind != PEER_BUILTIN && draw (h, 10) == 0)
        return;
    idt_msg_unref (msg);
    f->got[i] = f->got[--f->count];
}

/* A peer disconnects.  This ends its own requests, and the requests of requesters behind it. */
static void step_leave (struct history *h)
{
    struct world *w = h->w;
    struct fake *all[] = { &w->mod, &w->other, &w->parent, &w->child3, &w->child4, &w->c1, &w->c2 };
    struct fake *f = all[draw (h, 7)];

    check_all (h);
    for (int i = 0; i < REQUESTERS; i++) {
        struct requester *a = &h->requesters[i];

        if (a->via == f) {
            a->up = false;
            for (uint32_t tag = 1; tag <= a->tag; tag++)
                if (a->asked[tag] == 1 && a->answers[tag] == 0)
                    a->asked[tag] = 2;
        }
    }
    router_peer_remove (w->r, &f->peer);
    fake_clear (f);
}

/* A peer connects again, with another name. */
static void step_return (struct history *h)
{
    struct world *w = h->w;
    struct fake *all[] = { &w->mod, &w->other, &w->parent, &w->child3, &w->child4, &w->c1, &w->c2 };
    struct fake *f = all[draw (h, 7)];
    char name[16];

    if (router_peer (w->r, f->peer.uuid) == &f->peer)
        return;
    snprintf (name, sizeof (name), "%08x", ++h->names);
    make_uuid (f->peer.uuid, name);
    if (router_peer_add (w->r, &f->peer) < 0)
        bail_out ("a peer cannot come back");
    if (f == &w->mod || f == &w->other)
        router_service_add (w->r, f == &w->mod ? "mod" : "other", &f->peer);
    for (int i = 0; i < REQUESTERS; i++)
        if (h->requesters[i].via == f)
            h->requesters[i].up = true;
}

static void history_end (struct history *h, unsigned seed)
{
    struct world *w = h->w;
    struct fake *servers[] = { &w->mod, &w->other, &w->builtin, &w->parent };
    int unanswered = 0;

    while (w->builtin.count > 0) {
        if (!idt_msg_has_flag (last (&w->builtin), IDT_MSGFLAG_NORESPONSE))
            reply (w, &w->builtin, last (&w->builtin), 0);
        idt_msg_unref (w->builtin.got[--w->builtin.count]);
    }
    for (int i = 0; i < 4; i++)
        router_peer_remove (w->r, &servers[i]->peer);
    for (struct fake *f = &w->child3; f; f = f == &w->child3 ? &w->child4 : NULL)
        for (int i = f->count - 1; i >= 0; i--)
            if (idt_msg_type (f->got[i]) == IDT_MSGTYPE_REQUEST && router_peer (w->r, f->peer.uuid))
                reply (w, f, f->got[i], 0);
    check_all (h);
    for (int i = 0; i < REQUESTERS; i++)
        for (uint32_t tag = 1; tag <= h->requesters[i].tag; tag++)
            unanswered += h->requesters[i].asked[tag] == 1 && h->requesters[i].answers[tag] != 1;
    ok (h->wrong == 0, "history %u: no response is wrong or repeated", seed);
    ok (unanswered == 0, "in a random history every request of a connected requester is answered (%d not)", unanswered);
    ok (pending (w) == 0, "at the end of a random history no request is remembered");
}

static void test_history (unsigned seed)
{
    struct world *w = world_create (RANK, 1000);
    struct history h = {
        .w = w,
        .requesters = { { .name = "client1", .via = &w->c1, .direct = true },
                        { .name = "client2", .via = &w->c2, .direct = true },
                        { .name = "aaaa", .via = &w->child3 },
                        { .name = "bbbb", .via = &w->child3 },
                        { .name = "cccc", .via = &w->child4 } },
        .seed = seed,
    };

    for (int i = 0; i < REQUESTERS; i++) {
        h.requesters[i].up = true;
        h.requesters[i].asked = calloc (MAX_TAG + 1, 1);
        h.requesters[i].answers = calloc (MAX_TAG + 1, 1);
    }
    for (int i = 0; i < HISTORY; i++) {
        int what = draw (&h, 1000);

        if (what < 480)
            step_ask (&h);
        else if (what < 980)
            step_reply (&h);
        else if (what < 987)
            step_leave (&h);
        else
            step_return (&h);
        check_all (&h);
    }
    history_end (&h, seed);
    for (int i = 0; i < REQUESTERS; i++) {
        free (h.requesters[i].asked);
        free (h.requesters[i].answers);
    }
    world_destroy (w);
}

static bool covers (struct world *w, struct fake *from, uint32_t rank)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    idt_msg_route_clear (msg);
    if (from && idt_msg_route_push (msg, from->peer.uuid) < 0)
        bail_out ("no route");
    bool rc = router_covers (w->r, msg, rank);
    idt_msg_unref (msg);
    return rc;
}

/* Of seven ranks, 3 and 4 are below rank 1, and all others are below rank 0. */
static void test_covers (void)
{
    struct world *w = world_create (0, 100);
    struct fake stranger;
    int bad = 0;

    fake_init (&stranger, PEER_CHILD, "stranger", 1);
    for (uint32_t rank = 0; rank < 9; rank++) {
        bad += covers (w, &w->child3, rank) != (rank == 1 || rank == 3 || rank == 4);
        bad += covers (w, &w->child4, rank) != (rank == 2 || rank == 5 || rank == 6);
        bad += covers (w, &w->mod, rank) != (rank == 0) || covers (w, &w->builtin, rank) != (rank == 0);
        bad += covers (w, &w->c1, rank) || covers (w, &stranger, rank) || covers (w, NULL, rank);
    }
    ok (bad == 0, "a child may act for the ranks of its subtree, a module for its own rank, other peers for no rank");
    world_destroy (w);
    w = world_create (1, 100);
    ok (!covers (w, &w->parent, 0) && !covers (w, &w->parent, 3) && covers (w, &w->child3, 3),
        "the parent may act for no rank");
    world_destroy (w);
}

/* --- without memory ----------------------------------------------------------------------------------------- */

static void test_no_memory (void)
{
    struct world *w = world_create (RANK, 100);

    ask (w, &w->c1, "mod.x", IDT_NODEID_ANY, 1, 0);
    ask (w, &w->child3, "mod.x", RANK, 1, 0);
    no_memory = true;
    ask (w, &w->c2, "nobody.x", RANK, 2, 0);
    ok (w->c2.count == 0 && w->c2.hung_up == 1,
        "if the error response to a requester cannot be made, the requester's connection is closed");
    ask (w, &w->c2, NULL, RANK, 3, 0);
    ok (w->c2.count == 0 && w->c2.hung_up == 2,
        "if the error response to an invalid request cannot be made, the requester's connection is closed, too");
    ask (w, &w->c2, "nobody.x", RANK, 0, IDT_MSGFLAG_NORESPONSE);
    ok (w->c2.hung_up == 2, "a requester that wants no response keeps its connection when a request of it fails");
    ask (w, &w->other, "nobody.x", RANK, 4, 0);
    ok (w->other.count == 0, "a module whose error response cannot be made has no connection that could be closed");
    router_peer_remove (w->r, &w->mod.peer);
    ok (w->c1.hung_up == 1 && w->child3.hung_up == 1 && w->parent.hung_up == 0,
        "if a service ends and the error responses cannot be made, the connections of its requesters are closed, "
        "and no others");
    no_memory = false;
    world_destroy (w);
}

int main (void)
{
    test_covers ();
    test_peers ();
    test_services ();
    test_brokers_only ();
    test_any ();
    test_root ();
    test_rank ();
    test_rank_failures ();
    test_upstream ();
    test_malformed ();
    test_once ();
    test_no_response ();
    test_no_tag ();
    test_tags ();
    test_streaming ();
    test_target_gone ();
    test_send_fails ();
    test_client_gone ();
    test_refused_client_gone ();
    test_disconnect_passes ();
    test_child_gone ();
    test_builtin ();
    test_streams_answered_once ();
    test_proxy ();
    test_self ();
    test_limits ();
    test_no_memory ();
    for (unsigned seed = 1; seed <= 5; seed++)
        test_history (seed);
    return done_testing ();
}
