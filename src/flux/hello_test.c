/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* hello_test.c - the hellos of a rank to its parent, and which hellos the parent accepts */
#include <errno.h>
#include <string.h>
#include <time.h>

#include <idtree/idtree.h>

#include "flux/ending.h"
#include "flux/hello.h"
#include "libidtree/transport.h"
#include "libutil/clock.h"
#include "test/tap.h"

#define NAME(n) "0000000" n "-0000-4000-8000-000000000000"
#define US NAME ("0")
#define CHILD NAME ("3")
#define OTHER NAME ("4")
#define MODULE NAME ("5")
#define CLIENT NAME ("6")

/* --- the test plays broker and module -------- */

struct world {
    idt_t *h;
    const idt_msg_t *answer;  /* the last answer of this test */
    const idt_msg_t *request; /* the last request of this test */
    int answers, requests, lines;
    bool knows_time;
    int ups, downs, samples;
    struct idt_clock_sample sample;
};

static int world_send (void *impl, const idt_msg_t *msg)
{
    struct world *w = impl;
    bool is_answer = idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE;
    const idt_msg_t **last = is_answer ? &w->answer : &w->request;

    *(is_answer ? &w->answers : &w->requests) += 1;
    idt_msg_unref (*last);
    *last = idt_msg_ref (msg);
    return 0;
}

static const char *world_attr_get (void *impl, const char *name)
{
    return strcmp (name, "rank") == 0 ? "3" : NULL;
}

static void world_log (void *impl, int level, const char *name, const char *text)
{
    struct world *w = impl;

    w->lines++;
}

static void world_destroy (void *impl)
{
    struct world *w = impl;

    idt_msg_unref (w->answer);
    idt_msg_unref (w->request);
}

static const struct idt_transport transport = {
    .send = world_send,
    .attr_get = world_attr_get,
    .log = world_log,
    .destroy = world_destroy,
};

static bool read_clock_cb (void *arg, uint64_t *now_us, uint64_t *bound_us)
{
    struct world *w = arg;

    *now_us = 5000;
    *bound_us = 7;
    return w->knows_time;
}

static void sample_cb (void *arg, const struct idt_clock_sample *sample)
{
    struct world *w = arg;

    w->samples++;
    w->sample = *sample;
}

static void flux_parent_cb (void *arg, bool up)
{
    struct world *w = arg;

    *(up ? &w->ups : &w->downs) += 1;
}

static const struct idt_overlay_ops ops = { .read_clock = read_clock_cb,
                                            .sample = sample_cb,
                                            .parent = flux_parent_cb };

static void begin (struct world *w)
{
    *w = (struct world){ 0 };
    if (!(w->h = idt_handle_create (&transport, w)) || !idt_get_reactor (w->h))
        bail_out ("no memory");
}

/* Send an answer to the last request. */
static void answer (struct world *w, int errnum, const char *payload)
{
    idt_msg_t *msg = idt_msg_respond (w->request, (uint32_t)errnum);

    if (!msg || idt_msg_set_string (msg, payload) < 0)
        bail_out ("no memory");
    idt_handle_dispatch (w->h, msg);
    idt_msg_unref (msg);
}

static void run_until_request (struct world *w, int n)
{
    while (w->requests < n && idt_reactor_run (idt_get_reactor (w->h), IDT_REACTOR_ONCE) == 0)
        ;
}

static bool is_asked (const struct world *w, const char *topic, const char *payload)
{
    return w->request && strcmp (idt_msg_topic (w->request), topic) == 0
           && strcmp (idt_msg_string (w->request), payload) == 0;
}

/* --- the rank that sends hellos -------------------------------------------------------------------------- */

static void check_parent (void)
{
    struct world w;

    begin (&w);
    struct flux_parent *p = flux_parent_create (w.h, 3, &ops, &w);
    run_until_request (&w, 1);
    ok (is_asked (&w, "fluid.hello", "{\"rank\":3}") && idt_msg_has_flag (w.request, IDT_MSGFLAG_UPSTREAM)
            && w.ups == 0,
        "a rank sends a hello to its parent");
    answer (&w, ENOSYS, NULL);
    ok (w.ups == 0 && w.downs == 0 && w.lines == 0,
        "if the parent has no service for hellos, nothing is reported or logged");
    run_until_request (&w, 2);
    answer (&w, 0, "{}");
    ok (w.ups == 1 && w.samples == 0, "a response to a hello without a time reports the parent as connected");
    run_until_request (&w, 3);
    answer (&w, 0, "{\"clock_us\":[1000,1010],\"bound_us\":5}");
    ok (w.ups == 1 && w.samples == 1 && w.sample.peer_received_us == 1000 && w.sample.peer_sent_us == 1010
            && w.sample.peer_bound_us == 5 && w.sample.sent_us > 0 && w.sample.received_us >= w.sample.sent_us,
        "a response to a hello with a time gives a sample, with the times of request and response");
    run_until_request (&w, 4);
    answer (&w, 0, "{\"clock_us\":[-1,1010],\"bound_us\":5}");
    ok (w.ups == 1 && w.samples == 1, "a response to a hello with a malformed time gives no sample");
    run_until_request (&w, 5);
    answer (&w, EPERM, "unknown sender");
    ok (w.downs == 1 && w.lines == 1, "an error response to a hello reports the parent as lost, and is logged");
    run_until_request (&w, 6);
    answer (&w, EPERM, "unknown sender");
    ok (w.downs == 1 && w.lines == 1, "a parent that is lost is reported and logged once");
    run_until_request (&w, 7);
    flux_parent_destroy (p);
    flux_parent_destroy (NULL);
    ok (w.ups == 1 && w.downs == 1, "after flux_parent_destroy () nothing is reported");
    idt_close (w.h);
}

/* --- the rank that answers --------------------------------------------------------------------------------- */

/* Receive a hello from a module of the broker 'uuid', with the route that sender_mark () makes. */
static void say_hello (struct world *w, const char *uuid, const char *payload, uint32_t roles)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    if (!msg || idt_msg_set_topic (msg, "fluid.hello") < 0 || idt_msg_set_string (msg, payload) < 0
        || idt_msg_route_push (msg, MODULE) < 0 || idt_msg_route_push (msg, uuid) < 0
        || idt_msg_route_push (msg, uuid) < 0)
        bail_out ("no memory");
    idt_msg_set_cred (msg, (struct idt_cred){ .userid = 1, .rolemask = roles });
    idt_handle_dispatch (w->h, msg);
    idt_msg_unref (msg);
}

static bool answered (const struct world *w, int n, int errnum, const char *payload)
{
    return w->answers == n && idt_msg_errnum (w->answer) == (uint32_t)errnum
           && (!payload || strcmp (idt_msg_string (w->answer), payload) == 0);
}

#define OWNER IDT_ROLE_OWNER

static void check_greeter (void)
{
    static const char hello[] = "{\"rank\":3}";
    json_t *tree = json_loads ("{\"rank\":1,\"children\":[{\"rank\":3,\"children\":[{\"rank\":7}]},{\"rank\":4}]}", 0,
                               NULL);
    struct flux_children *below = flux_children_create (tree, 8, NULL);
    struct world w;
    uint32_t rank = 0;

    begin (&w);
    struct greeter *g = greeter_create (w.h, below);
    say_hello (&w, CHILD, hello, OWNER);
    ok (w.answers == 0 && is_asked (&w, "attr.get", "{\"name\":\"broker.uuid\"}") && idt_msg_nodeid (w.request) == 3,
        "the receiver of a hello asks the broker of the rank in the hello for its UUID");
    say_hello (&w, OTHER, hello, OWNER);
    ok (answered (&w, 1, EBUSY, NULL) && w.requests == 1, "while one hello is checked, another one gets EBUSY");
    answer (&w, 0, "{\"value\":\"" CHILD "\",\"flags\":1}");
    ok (answered (&w, 2, 0, "{}") && flux_children_find (below, CHILD, &rank) && rank == 3,
        "a hello is answered if its sender has the UUID of the broker of its rank");
    greeter_set_clock (g, &ops, &w);
    say_hello (&w, CHILD, hello, OWNER);
    ok (answered (&w, 3, 0, "{}") && w.requests == 1,
        "later hellos of a child are answered without asking for the UUID; without a clock the response has no time");
    w.knows_time = true;
    say_hello (&w, CHILD, hello, OWNER);
    ok (answered (&w, 4, 0, "{\"clock_us\":[5000,5000],\"bound_us\":7}"),
        "the response to a hello has the time if the clock is known");
    say_hello (&w, OTHER, hello, OWNER);
    answer (&w, 0, "{\"value\":\"" CHILD "\",\"flags\":1}");
    ok (answered (&w, 5, EPERM, NULL) && !flux_children_find (below, OTHER, &rank)
            && flux_children_find (below, CHILD, &rank),
        "a hello whose sender is not the broker of the rank in the hello is refused");
    say_hello (&w, CHILD, "{\"rank\":4}", OWNER);
    answer (&w, 0, "{\"value\":\"" OTHER "\",\"flags\":1}");
    ok (answered (&w, 6, EPERM, NULL) && flux_children_find (below, CHILD, &rank) && rank == 3,
        "a hello with the rank of another child is refused, even if its sender is known as a child");
    int requests = w.requests;
    say_hello (&w, OTHER, "{\"rank\":7}", OWNER);
    ok (answered (&w, 7, EPERM, NULL) && w.requests == requests, "a hello of a grandchild is refused");
    say_hello (&w, OTHER, "{}", OWNER);
    ok (answered (&w, 8, EPROTO, NULL), "a hello without a rank is malformed");
    say_hello (&w, CHILD, hello, IDT_ROLE_USER);
    ok (answered (&w, 9, EPERM, NULL), "a guest's hello is refused");
    say_hello (&w, OTHER, hello, OWNER | IDT_ROLE_LOCAL);
    ok (answered (&w, 10, EPERM, NULL) && w.requests == requests, "a client's hello is refused");
    say_hello (&w, OTHER, hello, OWNER);
    answer (&w, EHOSTUNREACH, NULL);
    ok (answered (&w, 11, EHOSTUNREACH, NULL), "if the rank in a hello does not answer, the hello fails");
    say_hello (&w, OTHER, hello, OWNER);
    greeter_destroy (g);
    ok (answered (&w, 12, EHOSTUNREACH, NULL), "at the end each hello that waits gets one response");
    greeter_destroy (NULL);
    idt_close (w.h);
    flux_children_destroy (below);
    json_decref (tree);
}

/* --- requests that passed a rank without the module ----------------------------------------------------------- */

static bool holds_off (const struct greeter *g, const char *topic, uint32_t nodeid, uint32_t roles, const char *uuid,
                       uint64_t now_us)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    if (!msg || idt_msg_set_topic (msg, topic) < 0 || idt_msg_route_push (msg, uuid) < 0)
        bail_out ("no memory");
    idt_msg_set_nodeid (msg, nodeid);
    idt_msg_set_cred (msg, (struct idt_cred){ .userid = 1, .rolemask = roles });
    bool held = greeter_holds_off (g, msg, now_us);
    idt_msg_unref (msg);
    return held;
}

static void check_passing (void)
{
    json_t *tree = json_loads ("{\"rank\":1,\"children\":[{\"rank\":3},{\"rank\":4}]}", 0, NULL);
    struct flux_children *below = flux_children_create (tree, 8, NULL);
    struct world w;

    begin (&w);
    struct greeter *g = greeter_create (w.h, below);
    uint64_t soon_us = clock_us (CLOCK_BOOTTIME), later_us = soon_us + GREETER_HOLD_US;
    if (flux_children_add (below, 3, CHILD) < 0)
        bail_out ("no memory");
    ok (holds_off (g, "fluid.block", IDT_NODEID_ANY, OWNER, CHILD, later_us)
            && holds_off (g, "fluid.generate", IDT_NODEID_ANY, IDT_ROLE_USER, CHILD, later_us),
        "a request for ids is refused if it passed a child that has said hello");
    ok (!holds_off (g, "fluid.block", IDT_NODEID_ANY, OWNER, OTHER, later_us),
        "a request for ids is served if it passed a rank without the module");
    ok (holds_off (g, "fluid.block", IDT_NODEID_ANY, OWNER, OTHER, soon_us),
        "a request for ids is refused as long as a rank that it passed may still say hello");
    ok (!holds_off (g, "fluid.block", 1, OWNER, CHILD, soon_us), "a request for ids to this rank is served");
    ok (!holds_off (g, "fluid.block", IDT_NODEID_ANY, OWNER | IDT_ROLE_LOCAL, CLIENT, soon_us),
        "a request for ids of a client of this broker is served");
    ok (!holds_off (g, "fluid.block", IDT_NODEID_ANY, OWNER | IDT_ROLE_BROKER, CHILD, later_us),
        "a request for ids of a broker is served");
    ok (!holds_off (g, "fluid.info", IDT_NODEID_ANY, OWNER, CHILD, soon_us),
        "a request of another topic than ids is served");
    greeter_destroy (g);
    idt_close (w.h);
    flux_children_destroy (below);
    json_decref (tree);
}

/* --- the end ----------------------------------------------------------------------------------------------- */

static void over_cb (void *arg)
{
    *(int *)arg += 1;
}

/* Send the event that the state has changed, and answer the request for the state's name. */
static void change (struct world *w, const idt_msg_t *monitor, const char *state)
{
    idt_msg_t *msg = idt_msg_respond (monitor, 0);
    char payload[64];
    int n = w->requests;

    snprintf (payload, sizeof (payload), "{\"state\":\"%s\"}", state);
    if (!msg || idt_msg_set_string (msg, "{\"state\":5}") < 0)
        bail_out ("no memory");
    idt_handle_dispatch (w->h, msg);
    idt_msg_unref (msg);
    if (w->requests != n + 1 || strcmp (idt_msg_topic (w->request), "state-machine.get") != 0)
        bail_out ("the name of the state was not requested");
    answer (w, 0, payload);
}

static void check_ending (void)
{
    struct world w;
    int over = 0;

    begin (&w);
    struct ending *e = ending_create (w.h, over_cb, &over);
    ok (is_asked (&w, "state-machine.monitor", "{}") && idt_msg_has_flag (w.request, IDT_MSGFLAG_STREAMING),
        "the module watches the state of its Flux broker");
    const idt_msg_t *monitor = idt_msg_ref (w.request);
    change (&w, monitor, "run");
    change (&w, monitor, "cleanup");
    change (&w, monitor, "shutdown");
    ok (over == 0, "the module continues until the Flux broker is in state finalize");
    change (&w, monitor, "finalize");
    ok (over == 1, "the module ends when the Flux broker is in state finalize");
    ending_destroy (e);
    ending_destroy (NULL);
    idt_msg_unref (monitor);
    idt_close (w.h);
}

int main (void)
{
    check_parent ();
    check_greeter ();
    check_passing ();
    check_ending ();
    return done_testing ();
}
