/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* hello.c - sends hellos to the parent, and answers the hellos of child brokers
 *
 * At most one hello to the parent is pending. From an answer of the parent until a failure, the parent counts as
 * connected. A failure that only means that the parent has not loaded the service is not logged. For each child at most
 * one request for its UUID is pending, so there are never more such requests than children.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>

#include <idtree/idtree.h>
#include <idtree/rpc.h>

#include "flux/hello.h"
#include "flux/sender.h"
#include "libmodule/module.h"
#include "libutil/clock.h"

#define HELLO "fluid.hello"
#define PERIOD_MS 1000
#define SOON_MS 100 /* period while the parent does not answer, or does not know the time */
#define ANSWER_MS 5000

/* --- hellos to the parent ----------------------------------------------------------------------------- */

struct flux_parent {
    idt_t *h;
    uint32_t rank;
    const struct idt_overlay_ops *ops;
    void *arg;
    idt_watcher_t *timer;
    idt_future_t *f; /* the pending hello, or NULL */
    uint64_t sent_us;
    bool up;
    int logged_errnum; /* the errno that was logged last */
};

static void plan (struct flux_parent *p, double after_ms)
{
    idt_watcher_stop (p->timer);
    idt_timer_watcher_reset (p->timer, after_ms, 0);
    idt_watcher_start (p->timer);
}

static void set_up (struct flux_parent *p, bool up)
{
    if (p->up == up)
        return;
    p->up = up;
    p->ops->parent (p->arg, up);
}

static bool is_expected (int errnum)
{
    return errnum == ENOSYS || errnum == EHOSTUNREACH || errnum == ECONNRESET || errnum == EBUSY;
}

static void fail (struct flux_parent *p, int errnum, const char *text)
{
    if (!is_expected (errnum) && errnum != p->logged_errnum) {
        idt_log (p->h, LOG_WARNING, "the fluid service of the parent broker: %s", text);
        p->logged_errnum = errnum;
    }
    set_up (p, false);
    plan (p, SOON_MS);
}

/* Pass the clock in an answer on as a sample. Returns false if the answer has no clock. */
static bool take_clock (struct flux_parent *p, idt_future_t *f)
{
    struct idt_clock_sample s = { .sent_us = p->sent_us, .received_us = clock_us (CLOCK_BOOTTIME) };
    json_int_t received, sent, bound;

    if (idt_rpc_get_unpack (f, "{s:[I,I] s:I}", "clock_us", &received, &sent, "bound_us", &bound) < 0 || received < 0
        || sent < 0 || bound < 0)
        return false;
    s.peer_received_us = (uint64_t)received;
    s.peer_sent_us = (uint64_t)sent;
    s.peer_bound_us = (uint64_t)bound;
    p->ops->sample (p->arg, &s);
    return true;
}

static void answered_cb (idt_future_t *f, void *arg)
{
    struct flux_parent *p = arg;

    p->f = NULL;
    if (idt_future_errnum (f))
        fail (p, idt_future_errnum (f), idt_future_error (f));
    else {
        bool has_clock = take_clock (p, f);

        p->logged_errnum = 0;
        set_up (p, true);
        plan (p, has_clock ? PERIOD_MS : SOON_MS);
    }
    idt_future_destroy (f);
}

static void send_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct flux_parent *p = arg;

    p->sent_us = clock_us (CLOCK_BOOTTIME);
    p->f = idt_rpc_pack (p->h, HELLO, IDT_NODEID_UPSTREAM, 0, "{s:I}", "rank", (json_int_t)p->rank);
    if (p->f && idt_future_then (p->f, ANSWER_MS, answered_cb, p) == 0)
        return;
    idt_future_destroy (p->f);
    p->f = NULL;
    plan (p, SOON_MS);
}

void flux_parent_destroy (struct flux_parent *p)
{
    if (!p)
        return;
    idt_future_destroy (p->f);
    idt_watcher_destroy (p->timer);
    free (p);
}

struct flux_parent *flux_parent_create (idt_t *h, uint32_t rank, const struct idt_overlay_ops *ops, void *arg)
{
    struct flux_parent *p = calloc (1, sizeof (*p));

    if (!p)
        return NULL;
    *p = (struct flux_parent){ .h = h, .rank = rank, .ops = ops, .arg = arg };
    if (!(p->timer = idt_timer_watcher_create (idt_get_reactor (h), 0, 0, send_cb, p))) {
        free (p);
        return NULL;
    }
    idt_watcher_start (p->timer);
    return p;
}

/* --- answers to children -------------------------------------------------------------------------------- */

struct greeter {
    idt_t *h;
    struct flux_children *below;
    struct upcalls ups; /* 'msg' is the hello, 'tag' the rank that it names */
    const struct idt_overlay_ops *ops;
    void *arg;
    uint64_t started_us;
};

void greeter_set_clock (struct greeter *g, const struct idt_overlay_ops *ops, void *arg)
{
    g->ops = ops;
    g->arg = arg;
}

/* --- the answer -------------------------------------------------------------------------------------- */

struct reading {
    bool known;
    uint64_t now_us;
    uint64_t bound_us;
};

static struct reading read_clock (const struct greeter *g)
{
    struct reading r = { 0 };

    r.known = g->ops && g->ops->read_clock (g->arg, &r.now_us, &r.bound_us);
    return r;
}

/* Answer a hello. 'received' is the clock's reading at the time when the hello arrived. */
static void welcome (struct greeter *g, const idt_msg_t *hello, const struct reading *received)
{
    struct reading sent = read_clock (g);

    if (received->known && sent.known)
        module_respond_object (g->h, hello,
                               json_pack ("{s:[I,I] s:I}", "clock_us", (json_int_t)received->now_us,
                                          (json_int_t)sent.now_us, "bound_us", (json_int_t)sent.bound_us));
    else
        module_respond_object (g->h, hello, json_object ());
}

/* --- the check of the sender --------------------------------------------------------------------------- */

static void refuse (struct greeter *g, const idt_msg_t *hello)
{
    module_respond_error (g->h, hello, EPERM,
                          HELLO
                          " is accepted only from the fluid service of a child rank: load the module on all ranks "
                          "between them, too");
}

/* A hello names a rank, and the broker of this rank has answered with its UUID. */
static void named_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct greeter *g = up->owner;
    const char *name, *uuid = NULL;

    if (idt_rpc_get_unpack (f, "{s:s}", "value", &name) < 0)
        module_respond_error (g->h, up->msg, idt_future_errnum (f) ? idt_future_errnum (f) : EPROTO,
                              "cannot get the UUID of the broker of that rank");
    else if (!sender_may_be_child (up->msg, &uuid) || strcmp (name, uuid) != 0)
        refuse (g, up->msg);
    else if (flux_children_add (g->below, up->tag, uuid) < 0)
        module_respond_error (g->h, up->msg, errno, NULL);
    else
        welcome (g, up->msg, &(struct reading){ 0 });
    upcall_destroy (up);
}

static bool is_asked (const struct greeter *g, uint32_t rank)
{
    const struct upcall *up;

    LIST_FOREACH (up, &g->ups.calls, link)
        if (up->tag == rank)
            return true;
    return false;
}

static void ask (struct greeter *g, const idt_msg_t *hello, uint32_t rank)
{
    struct upcall *up = NULL;

    if (is_asked (g, rank)) {
        module_respond_error (g->h, hello, EBUSY, NULL);
        return;
    }
    up = upcall_create (&g->ups, idt_rpc_pack (g->h, "attr.get", rank, 0, "{s:s}", "name", "broker.uuid"), ANSWER_MS,
                        named_cb, g);
    if (!up) {
        module_respond_error (g->h, hello, errno, NULL);
        return;
    }
    up->tag = rank;
    up->msg = idt_msg_ref (hello);
}

static void hello_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct greeter *g = arg;
    struct reading received = read_clock (g);
    const char *uuid;
    json_int_t rank;
    uint32_t known;
    idt_error_t err;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s:I}", "rank", &rank) < 0) {
        module_respond_error (h, msg, EPROTO, err.text);
        return;
    }
    json_decref (o);
    if (!sender_may_be_child (msg, &uuid) || rank < 0 || rank > UINT32_MAX
        || !flux_children_has (g->below, (uint32_t)rank))
        refuse (g, msg);
    else if (flux_children_find (g->below, uuid, &known) && known == rank)
        welcome (g, msg, &received);
    else
        ask (g, msg, (uint32_t)rank);
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST, HELLO, hello_cb, 0 },
    IDT_HANDLERS_END,
};

/* --- requests that passed a rank without the module ----------------------------------------------------------- */

static bool passes_by (const idt_msg_t *request)
{
    const char *topic = idt_msg_topic (request);

    return idt_msg_nodeid (request) == IDT_NODEID_ANY && !idt_msg_has_flag (request, IDT_MSGFLAG_UPSTREAM)
           && !(idt_msg_cred (request).rolemask & (IDT_ROLE_LOCAL | IDT_ROLE_BROKER)) && topic
           && (strcmp (topic, "fluid.block") == 0 || strcmp (topic, "fluid.generate") == 0);
}

bool greeter_holds_off (const struct greeter *g, const idt_msg_t *request, uint64_t now_us)
{
    uint32_t rank;

    return passes_by (request)
           && (now_us - g->started_us < GREETER_HOLD_US
               || flux_children_find (g->below, idt_msg_route_newest (request), &rank));
}

/* --- create and destroy ----------------------------------------------------------------------------------- */

void greeter_destroy (struct greeter *g)
{
    if (!g)
        return;
    idt_handlers_remove (g->h, handlers);
    upcalls_stop (&g->ups, g->h, "the fluid service of this broker is stopping");
    free (g);
}

struct greeter *greeter_create (idt_t *h, struct flux_children *below)
{
    struct greeter *g = calloc (1, sizeof (*g));

    if (!g)
        return NULL;
    *g = (struct greeter){ .h = h, .below = below, .started_us = clock_us (CLOCK_BOOTTIME) };
    if (idt_handlers_add (h, handlers, g) == 0)
        return g;
    free (g);
    return NULL;
}
