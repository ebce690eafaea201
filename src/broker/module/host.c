/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* host.c - the paths of messages to and from a module
 *
 * The router must not be called while it handles a message, and a module must not be called while it handles one. So
 * messages between them wait until modules_turn ().
 *
 * Modules take turns of one message each. The messages of a module have this order. First come the messages that the
 * module sent. Then come responses and events for the module, whose number is not limited (except events for a module
 * in a thread: MAILBOX_LIMIT). Last come requests for the module. Requesters take turns, and all connections of a user
 * share one turn, but each connection of the owner has its own turn (drr_queue.h). The number of waiting requests of a
 * module is limited, and a requester may hold at most as many slots as are free. A request above a limit fails with
 * EXFULL.
 *
 * A module in a thread has at most MODULE_MAX_INSIDE requests in its mailbox at a time. So if the module waits for a
 * response in its handler, it still finds the response.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libutil/errprintf.h"
#include "broker/module/private.h"
#include "libmsg/access.h"
#include "broker/base/uuid_key.h"

#define MAX_ASKS 16384       /* largest number of requests that wait for one module */
#define MAX_BYTES (16 << 20) /* largest number of bytes of memory for requests that wait for one module */
#define QUANTUM 4096         /* bytes of requests that are served in a requester's turn */
#define ASK_OVERHEAD 256     /* bytes of memory for a request beside the encoded message */

/* --- waiting messages ---------------------------------------------------------------------------------------- */

static bool has_work (const struct module *m)
{
    if (m->said.count > 0 || m->replies.count > 0)
        return true;
    return m->asks && drr_queue_waiting (m->asks)
           && (!m->in || __atomic_load_n (&m->inside, __ATOMIC_RELAXED) < MODULE_MAX_INSIDE);
}

void module_check_active (struct module *m)
{
    bool active = has_work (m);

    if (active && !m->active)
        TAILQ_INSERT_TAIL (&m->ms->active, m, link);
    else if (!active && m->active)
        TAILQ_REMOVE (&m->ms->active, m, link);
    m->active = active;
}

static int enqueue (struct module *m, struct fifo *q, const idt_msg_t *msg)
{
    if (fifo_push (q, msg) < 0)
        return -1;
    idt_msg_ref (msg);
    module_check_active (m);
    return 0;
}

/* Queue a request under its requester. Disconnect messages are accepted even at a limit, because modules hold data for
 * requesters. There are few disconnect messages, because each follows an accepted request of the same requester
 * (router.c).
 */
static int enqueue_ask (struct module *m, const idt_msg_t *msg)
{
    uint64_t key = uuid_key (m->ms->seed, idt_msg_route_oldest (msg));
    uint32_t cost = idt_msg_encode_size (msg) + ASK_OVERHEAD;
    uint64_t user = access_share (idt_msg_cred (msg));
    int rc = drr_queue_put_of (m->asks, user, key, (void *)msg, cost);

    if (rc < 0 && errno == EXFULL && router_is_disconnect (msg))
        rc = drr_queue_force (m->asks, user, key, (void *)msg, cost);
    if (rc < 0)
        return -1;
    idt_msg_ref (msg);
    module_check_active (m);
    return 0;
}

static void unref_ask (void *item, void *arg)
{
    idt_msg_unref (item);
}

static void forget_fifo (struct fifo *q)
{
    const idt_msg_t *msg;

    while ((msg = fifo_pop (q)))
        idt_msg_unref (msg);
    fifo_fini (q);
}

void module_forget_messages (struct module *m)
{
    forget_fifo (&m->said);
    forget_fifo (&m->replies);
    if (m->asks)
        drr_queue_drain (m->asks, unref_ask, NULL);
    drr_queue_destroy (m->asks);
    m->asks = NULL;
    module_check_active (m);
    assert (!m->active);
}

static void set_ready (struct module *m, const char *uuid, bool ready)
{
    drr_queue_ready (m->asks, uuid_key (m->ms->seed, uuid), ready);
    module_check_active (m);
}

void modules_requester_ready (struct modules *ms, const char *uuid, bool ready)
{
    for (struct module *m = zlistx_first (ms->list); m; m = zlistx_next (ms->list))
        set_ready (m, uuid, ready);
    if (ms->builtin)
        set_ready (ms->builtin, uuid, ready);
}

/* Set the sender. If a message of a module names no user, its user is the instance owner. If a message has no roles, it
 * gets the roles of the owner on this host, and a request also gets the role of a broker.
 */
static void stamp (const struct modules *ms, idt_msg_t *msg)
{
    struct idt_cred cred = idt_msg_cred (msg);
    uint32_t broker = idt_msg_type (msg) == IDT_MSGTYPE_REQUEST ? IDT_ROLE_BROKER : 0;

    if (cred.userid == IDT_USERID_UNKNOWN)
        cred.userid = ms->owner;
    if (cred.rolemask == IDT_ROLE_NONE)
        cred.rolemask = IDT_ROLE_OWNER | IDT_ROLE_LOCAL | broker;
    else
        cred.rolemask &= ~(uint32_t)IDT_ROLE_BROKER; /* the module sends this message for a user */
    idt_msg_set_cred (msg, cred);
}

void module_sent (struct module *m, idt_msg_t *msg)
{
    struct modules *ms = m->ms;

    m->used = module_now ();
    stamp (ms, msg);
    ms->conf.ops->message (ms->conf.arg, m->peer, msg);
}

static void to_module (struct module *m, const idt_msg_t *msg)
{
    m->used = module_now ();
    if (!m->stopping) /* the router answers requests of a stopping module when it removes the module */
        idt_handle_dispatch (m->h, msg);
    idt_msg_unref (msg);
}

static void to_thread (struct module *m, const idt_msg_t *msg)
{
    m->used = module_now ();
    __atomic_add_fetch (&m->inside, 1, __ATOMIC_RELAXED);
    if (mailbox_push_new (m->in, msg, false) < 0)
        idt_msg_unref (msg); /* the module is ending, so the router answers this request */
}

/* Pass on one message. Handling the message may destroy the module. */
static void step (struct module *m)
{
    const idt_msg_t *said = fifo_pop (&m->said);
    const idt_msg_t *reply = said ? NULL : fifo_pop (&m->replies);
    const idt_msg_t *ask = said || reply ? NULL : drr_queue_next (m->asks);

    module_check_active (m);
    if (m->active) {
        TAILQ_REMOVE (&m->ms->active, m, link);
        TAILQ_INSERT_TAIL (&m->ms->active, m, link);
    }
    if (said)
        module_sent (m, (idt_msg_t *)said);
    else if (ask && m->in)
        to_thread (m, ask);
    else if (reply || ask)
        to_module (m, reply ? reply : ask);
}

bool modules_turn (struct modules *ms)
{
    struct module *m = TAILQ_FIRST (&ms->active);
    bool any = m;
    uint64_t since_us = 0;

    while (m) {
        step (m);
        m = TAILQ_FIRST (&ms->active);
        if (m && clock_is_over (&since_us, MODULE_TURN_US))
            break;
    }
    return any;
}

bool modules_pending (const struct modules *ms)
{
    return !TAILQ_EMPTY (&ms->active);
}

/* --- the handle of a module on the reactor ------------------------------------------------------------------- */

static int inline_send (void *impl, const idt_msg_t *msg)
{
    struct module *m = impl;

    return enqueue (m, &m->said, msg);
}

static const char *inline_attr_get (void *impl, const char *name)
{
    struct module *m = impl;

    return attr_get (m->ms->conf.attrs, name, NULL);
}

static const char *inline_attr_define (void *impl, const char *name, const char *value)
{
    struct module *m = impl;

    return attr_default (m->ms->conf.attrs, name, value, NULL);
}

static int inline_overlay_attach (void *impl, const struct idt_overlay_ops *ops, void *arg)
{
    struct module *m = impl;

    if (overlay_attach (m->ms->conf.overlay, ops, arg) < 0)
        return -1;
    m->attached = true;
    return 0;
}

static bool inline_overlay_covers (void *impl, const idt_msg_t *request, uint32_t rank)
{
    struct module *m = impl;

    return router_covers (m->ms->conf.router, request, rank);
}

void module_detach (struct module *m)
{
    if (m->attached)
        overlay_attach (m->ms->conf.overlay, NULL, NULL);
    m->attached = false;
}

/* While a module's thread runs, only this thread uses 'left'. When the thread has ended, module.c takes it. */
int module_keep (void *impl, const void *data, size_t size)
{
    struct module *m = impl;
    void *copy = malloc (size + 1);

    if (!copy)
        return -1;
    memcpy (copy, data, size);
    free (m->left);
    m->left = copy;
    m->left_size = size;
    return 0;
}

const void *module_kept (void *impl, size_t *size)
{
    struct module *m = impl;

    *size = m->kept_size;
    return m->kept;
}

static void inline_log (void *impl, int level, const char *name, const char *text)
{
    struct module *m = impl;

    log_printf (m->ms->conf.log, level, name, "%s", text);
}

void module_no_destroy (void *impl)
{
}

static const struct idt_transport inline_transport = {
    .send = inline_send,
    .attr_get = inline_attr_get,
    .attr_define = inline_attr_define,
    .overlay_attach = inline_overlay_attach,
    .overlay_covers = inline_overlay_covers,
    .keep = module_keep,
    .kept = module_kept,
    .log = inline_log,
    .destroy = module_no_destroy,
};

/* --- peers and handles --------------------------------------------------------------------------------------- */

static void note (struct module *m)
{
    m->given++;
    m->quiet = false;
}

static int inline_peer_send (void *arg, const idt_msg_t *msg)
{
    struct module *m = arg;

    note (m);
    return idt_msg_type (msg) == IDT_MSGTYPE_REQUEST ? enqueue_ask (m, msg) : enqueue (m, &m->replies, msg);
}

static int thread_peer_send (void *arg, const idt_msg_t *msg)
{
    struct module *m = arg;

    m->used = module_now ();
    note (m);
    if (m->stopping)
        return errset (EPIPE);
    if (idt_msg_type (msg) == IDT_MSGTYPE_REQUEST)
        return enqueue_ask (m, msg);
    return module_push (m->in, msg, idt_msg_type (msg) == IDT_MSGTYPE_EVENT);
}

int module_make_peer (struct module *m)
{
    m->own = (struct peer){ .kind = PEER_MODULE, .send = m->threaded ? thread_peer_send : inline_peer_send, .arg = m };
    m->own.name = m->name;
    m->peer = &m->own;
    return uuid_make (m->own.uuid) < 0 ? -1 : router_peer_add (m->ms->conf.router, m->peer);
}

int module_make_handle (struct module *m)
{
    const struct idt_transport *transport = &inline_transport;

    if (!(m->asks = drr_queue_create (QUANTUM, MAX_ASKS, MAX_BYTES)))
        return -1;
    if (m->threaded && !(transport = module_thread_prepare (m)))
        return -1;
    if (!(m->h = idt_handle_create (transport, m)) || idt_handle_set_module (m->h, m->name) < 0)
        return -1;
    if (m->threaded)
        return 0;
    idt_handle_set_max_json (m->h, m->ms->max_json);
    return idt_set_reactor (m->h, m->ms->conf.reactor);
}

int module_make_builtin (struct module *m, struct peer *peer)
{
    peer->kind = PEER_BUILTIN;
    peer->name = m->name;
    peer->send = inline_peer_send;
    peer->arg = m;
    m->peer = peer;
    return module_make_handle (m);
}
