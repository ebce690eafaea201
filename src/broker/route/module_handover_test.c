/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module_handover_test.c - requests for a module that is not loaded wait, within limits, and each is answered once */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker/route/module_handover.h"
#include "test/tap.h"

struct fake {
    struct peer peer;
    int count, errnum; /* number of messages; errno of the last response */
    char text[256];
    uint32_t tag; /* matchtag of the last response */
};

struct world {
    struct topo *topo;
    idt_reactor_t *reactor;
    struct router *r;
    struct module_handovers *as;
    struct fake parent, child, client, greedy, module;
};

static int fake_send (void *arg, const idt_msg_t *msg)
{
    struct fake *f = arg;
    const char *text = idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE ? idt_msg_string (msg) : NULL;

    f->count++;
    f->errnum = idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE ? idt_msg_errnum (msg) : 0;
    f->tag = idt_msg_matchtag (msg);
    snprintf (f->text, sizeof (f->text), "%s", text ? text : "");
    return 0;
}

static void add (struct world *w, struct fake *f, enum peer_kind kind, const char *uuid, uint32_t rank)
{
    f->peer = (struct peer){ .kind = kind, .rank = rank, .send = fake_send, .arg = f };
    snprintf (f->peer.uuid, sizeof (f->peer.uuid), "%s-0000-4000-8000-000000000000", uuid);
    if (router_peer_add (w->r, &f->peer) < 0)
        bail_out ("no peer");
}

static struct world *world_create (void)
{
    struct world *w = calloc (1, sizeof (*w));

    if (!(w->reactor = idt_reactor_create ()) || !(w->topo = topo_create ("kary:2", 7, NULL))
        || !(w->r = router_create (1, w->topo, 100)) || !(w->as = module_handovers_create (w->reactor, w->r, 1)))
        bail_out ("no world");
    add (w, &w->parent, PEER_PARENT, "00000001", 0);
    add (w, &w->child, PEER_CHILD, "00000002", 3);
    add (w, &w->client, PEER_CLIENT, "00000003", 0);
    add (w, &w->greedy, PEER_CLIENT, "00000004", 0);
    add (w, &w->module, PEER_MODULE, "00000005", 0);
    module_handovers_add_new (w->as, "fluid", strdup ("past"), 5);
    return w;
}

static void world_destroy (struct world *w)
{
    struct fake *all[] = { &w->client, &w->greedy, &w->child, &w->module, &w->parent };

    for (size_t i = 0; i < sizeof (all) / sizeof (all[0]); i++)
        router_peer_remove (w->r, &all[i]->peer);
    module_handovers_destroy (w->as);
    router_destroy (w->r);
    topo_destroy (w->topo);
    idt_reactor_destroy (w->reactor);
    free (w);
}

static void ask (struct world *w, struct fake *from, uint32_t tag, uint32_t roles, size_t size)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    idt_msg_set_topic (msg, "fluid.block");
    idt_msg_set_matchtag (msg, tag);
    idt_msg_set_nodeid (msg, IDT_NODEID_ANY);
    idt_msg_set_cred (msg, (struct idt_cred){ 1000, IDT_ROLE_OWNER | roles });
    idt_msg_route_clear (msg);
    if (size > 0)
        idt_msg_alloc_payload (msg, size);
    router_request_new (w->r, &from->peer, msg);
}

static void test_waits (void)
{
    struct world *w = world_create ();
    size_t size = 0;

    ask (w, &w->client, 1, 0, 0);
    ask (w, &w->child, 2, 0, 0);
    ok (w->client.count == 0 && w->child.count == 0 && w->parent.count == 0,
        "during a reload requests of clients of this rank and of ranks below wait");
    ask (w, &w->child, 3, IDT_ROLE_BROKER, 0);
    ok (w->parent.count == 1 && w->parent.tag == 3,
        "during a reload a request that a module of a broker sent is passed on");
    ok (router_service_add (w->r, "fluid", &w->greedy.peer) < 0 && errno == EEXIST,
        "during a reload a client cannot take over the service");
    const char *left = module_handovers_pause (w->as, "fluid", &size);
    ok (left && size == 5 && strcmp (left, "past") == 0, "the reloaded module gets the handover of the previous one");
    module_handovers_resume (w->as, "fluid");
    ask (w, &w->client, 4, 0, 0);
    ok (w->client.count == 0 && w->parent.count == 1,
        "if the reloaded module fails to start, the handover and the waiting requests are kept");
    module_handovers_pause (w->as, "fluid", &size);
    router_service_add (w->r, "fluid", &w->module.peer);
    module_handovers_end (w->as, "fluid");
    ok (w->module.count == 3 && w->module.tag == 4,
        "when the reloaded module starts, it gets all waiting requests in order");
    ok (!module_handovers_pause (w->as, "fluid", &size), "a handover is deleted when a module has started with it");
    ask (w, &w->client, 5, 0, 0);
    ok (w->module.count == 4, "after a reload requests go to the new module");
    world_destroy (w);
}

static void test_bounds (void)
{
    struct world *w = world_create ();

    for (uint32_t i = 1; i <= MODULE_HANDOVER_MAX_EACH + 10; i++)
        ask (w, &w->greedy, i, 0, 0);
    ok (w->greedy.count == 10 && w->greedy.errnum == EAGAIN,
        "the number of requests that wait during a reload is limited for each requester: %s", w->greedy.text);
    ask (w, &w->client, 1, 0, 0);
    ok (w->client.count == 0, "requests of other requesters still wait when one requester has reached the limit");
    ask (w, &w->client, 2, 0, MODULE_HANDOVER_MAX_BYTES);
    ok (w->client.count == 1 && w->client.errnum == EAGAIN,
        "the bytes of requests that wait during a reload are limited");
    router_peer_remove (w->r, &w->greedy.peer);
    module_handovers_stop (w->as);
    ok (w->greedy.count == 10 && w->client.count == 2 && w->client.tag == 1 && strstr (w->client.text, "stopping"),
        "waiting requests of a disconnected client are dropped; if no module starts, the others fail: %s",
        w->client.text);
    ask (w, &w->client, 3, 0, 0);
    ok (w->client.count == 3 && w->client.tag == 3, "requests that arrive after a failed reload fail, too");
    world_destroy (w);
}

static void stop_cb (idt_watcher_t *watcher, int revents, void *arg)
{
    struct world *w = arg;

    if (w->client.count > 0)
        idt_reactor_stop (w->reactor);
}

static void test_deadline (void)
{
    struct world *w = world_create ();
    idt_watcher_t *look = idt_timer_watcher_create (w->reactor, 10., 10., stop_cb, w);

    ask (w, &w->client, 1, 0, 0);
    idt_watcher_start (look);
    idt_reactor_run (w->reactor, IDT_REACTOR_DEFAULT);
    ok (w->client.count == 1 && w->client.errnum == ENOSYS
            && strcmp (w->client.text, "fluid is not loaded on rank 1: idtree module load -r 1 fluid") == 0,
        "a request that waited too long for a reload fails with a text that says what to do: %s", w->client.text);
    idt_watcher_destroy (look);
    world_destroy (w);
}

int main (void)
{
    test_waits ();
    test_bounds ();
    test_deadline ();
    return done_testing ();
}
