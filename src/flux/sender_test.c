/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sender_test.c - the sender of a request in Flux is determined by its routes alone */
#include <string.h>

#include "flux/sender.h"
#include "test/tap.h"

#define NAME(n) "0000000" n "-0000-4000-8000-000000000000"
#define US NAME ("0")
#define CHILD NAME ("3")
#define STRANGER NAME ("4") /* a broker that is not one of the known children */
#define MODULE NAME ("5")
#define CLIENT NAME ("6")
#define CONNECTOR NAME ("7")

#define OWNER IDT_ROLE_OWNER
#define GUEST IDT_ROLE_USER
#define LOCAL IDT_ROLE_LOCAL
#define BROKER IDT_ROLE_BROKER

static struct flux_children *below;

/* Make a marked request with these routes; the oldest is first, and the list ends with NULL. */
static idt_msg_t *request (uint32_t roles, const char *const *routes)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    if (!msg)
        bail_out ("no memory");
    idt_msg_set_cred (msg, (struct idt_cred){ .userid = 100, .rolemask = roles });
    for (; *routes; routes++)
        if (idt_msg_route_push (msg, *routes) < 0)
            bail_out ("no memory");
    if (sender_mark (msg, below) < 0)
        bail_out ("no memory");
    return msg;
}

#define ROUTES(...)       \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }

/* Whether marking the request gives it the roles 'want' and the newest route 'newest', and keeps its other routes. */
static bool is_marked (uint32_t roles, const char *const *routes, uint32_t want, const char *newest)
{
    idt_msg_t *msg = request (roles, routes);
    unsigned n = 0;

    while (routes[n])
        n++;
    bool good = idt_msg_cred (msg).rolemask == want && idt_msg_cred (msg).userid == 100
                && idt_msg_route_count (msg) == n && strcmp (idt_msg_route_newest (msg), newest) == 0
                && (n < 2 || strcmp (idt_msg_route_oldest (msg), routes[0]) == 0);
    idt_msg_unref (msg);
    return good;
}

static void check_brokers (void)
{
    ok (is_marked (OWNER, ROUTES (MODULE, CHILD, US), OWNER | BROKER, CHILD),
        "a child's module gets the role of a broker");
    ok (is_marked (OWNER | LOCAL, ROUTES (MODULE, US), OWNER | LOCAL | BROKER, MODULE),
        "a module of this broker gets the role of a broker");
    ok (is_marked (OWNER, ROUTES (MODULE, STRANGER, US), OWNER, STRANGER),
        "a module of an unknown broker does not get the role of a broker");
    ok (is_marked (OWNER, ROUTES (MODULE, CHILD, STRANGER, US), OWNER, STRANGER),
        "a module of a grandchild does not get the role of a broker");
    ok (is_marked (OWNER | LOCAL, ROUTES (US), OWNER | LOCAL, US),
        "this broker itself does not get the role of a broker");
    ok (is_marked (GUEST, ROUTES (MODULE, CHILD, US), GUEST, CHILD)
            && is_marked (GUEST | LOCAL, ROUTES (MODULE, US), GUEST | LOCAL, MODULE),
        "a guest's request from a module does not get the role of a broker");
}

static void check_clients (void)
{
    ok (is_marked (OWNER | LOCAL, ROUTES (CLIENT, CONNECTOR, US), OWNER | LOCAL, CLIENT),
        "the requester of a client's request is the client itself");
    ok (is_marked (GUEST | LOCAL, ROUTES (CLIENT, CONNECTOR, US), GUEST | LOCAL, CLIENT),
        "the requester of a guest's request is the guest's client");
    ok (is_marked (OWNER, ROUTES (CLIENT, CONNECTOR, US), OWNER, CONNECTOR),
        "a client that removes the role LOCAL gets no role of a broker");
    ok (is_marked (OWNER, ROUTES (CLIENT, CONNECTOR, CHILD, US), OWNER, CHILD),
        "the requester of a request from a child's client is the child");
    ok (is_marked (OWNER, ROUTES (MODULE, CHILD, CLIENT, CONNECTOR, US), OWNER, CONNECTOR),
        "routes that a client adds to its request give no role of a broker");
    ok (is_marked (OWNER | LOCAL, ROUTES (CHILD, CLIENT, CONNECTOR, US), OWNER | LOCAL, CHILD),
        "a single route that a client adds to its request gives no role of a broker");
    ok (is_marked (OWNER | LOCAL | BROKER | 0x18, ROUTES (CLIENT, CONNECTOR, US), OWNER | LOCAL, CLIENT)
            && is_marked (GUEST | BROKER, ROUTES (CLIENT, CONNECTOR, CHILD, US), GUEST, CHILD),
        "the role of a broker that a client claims is removed");
}

static bool speaks_for (uint32_t roles, const char *const *routes, uint32_t rank)
{
    idt_msg_t *msg = request (roles, routes);
    bool covers = sender_covers (msg, below, 1, rank);

    idt_msg_unref (msg);
    return covers;
}

static void check_covers (void)
{
    ok (speaks_for (OWNER, ROUTES (MODULE, CHILD, US), 3) && speaks_for (OWNER, ROUTES (MODULE, CHILD, US), 7),
        "a child may act for itself and its descendants");
    ok (!speaks_for (OWNER, ROUTES (MODULE, CHILD, US), 4) && !speaks_for (OWNER, ROUTES (MODULE, CHILD, US), 1),
        "a child may act for no rank except itself and its descendants");
    ok (speaks_for (OWNER | LOCAL, ROUTES (MODULE, US), 1) && !speaks_for (OWNER | LOCAL, ROUTES (MODULE, US), 3),
        "a module of this broker may act for this rank");
    ok (!speaks_for (OWNER | LOCAL, ROUTES (CLIENT, CONNECTOR, US), 1)
            && !speaks_for (OWNER, ROUTES (CLIENT, CONNECTOR, CHILD, US), 3),
        "a client may act for no rank");
}

static void check_candidates (void)
{
    const char *uuid = NULL;
    idt_msg_t *msg = request (OWNER, ROUTES (MODULE, STRANGER, US));

    ok (sender_may_be_child (msg, &uuid) && strcmp (uuid, STRANGER) == 0,
        "the sender of a request that passed an unknown broker may be a child, and the UUID of that broker is "
        "returned");
    idt_msg_unref (msg);
    msg = request (OWNER | LOCAL, ROUTES (CLIENT, CONNECTOR, US));
    ok (!sender_may_be_child (msg, &uuid), "a client cannot be a child");
    idt_msg_unref (msg);
    msg = idt_msg_create (IDT_MSGTYPE_REQUEST);
    ok (sender_mark (msg, below) == 0 && idt_msg_route_count (msg) == 0 && !sender_may_be_child (msg, &uuid),
        "the sender of a request without routes cannot be a child");
    idt_msg_unref (msg);
}

int main (void)
{
    json_t *tree = json_loads ("{\"rank\":1,\"children\":[{\"rank\":3,\"children\":[{\"rank\":7}]},{\"rank\":4}]}", 0,
                               NULL);

    if (!(below = flux_children_create (tree, 8, NULL)) || flux_children_add (below, 3, CHILD) < 0)
        bail_out ("cannot read the tree");
    check_brokers ();
    check_clients ();
    check_covers ();
    check_candidates ();
    flux_children_destroy (below);
    json_decref (tree);
    return done_testing ();
}
