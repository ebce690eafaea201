/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module_host.c - how messages get to a module and from it
 *
 * Inline: messages to and from the handle pass through one queue, so that neither the router nor the module is ever
 * entered from inside itself; modules_turn () empties it before the reactor sleeps.  In a thread: two mailboxes.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/module_private.h"

#define MAILBOX_LIMIT 100000 /* messages that wait for one module */
#define QUEUE_LIMIT 1000000  /* messages that wait for inline modules */

double module_now (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_MONOTONIC_COARSE, &ts);
    return ts.tv_sec + ts.tv_nsec * 1E-9;
}

/* --- the queue of inline modules ------------------------------------------------------------------ */

static int queue_grow (struct modules *ms)
{
    size_t size = ms->queue_size ? ms->queue_size * 2 : 256;
    struct parcel *queue;

    if (size > QUEUE_LIMIT * 2) {
        errno = ENOBUFS;
        return -1;
    }
    if (!(queue = malloc (size * sizeof (queue[0]))))
        return -1;
    for (size_t i = 0; i < ms->count; i++)
        queue[i] = ms->queue[(ms->head + i) % ms->queue_size];
    free (ms->queue);
    ms->queue = queue;
    ms->queue_size = size;
    ms->head = 0;
    return 0;
}

static int enqueue (struct module *m, const idt_msg_t *msg, enum parcel_way way)
{
    struct modules *ms = m->ms;

    if (ms->count == ms->queue_size && queue_grow (ms) < 0)
        return -1;
    ms->queue[(ms->head + ms->count++) % ms->queue_size] = (struct parcel){ m, idt_msg_ref (msg), way };
    return 0;
}

void module_forget_messages (struct module *m)
{
    struct modules *ms = m->ms;

    for (size_t i = 0; i < ms->count; i++) {
        struct parcel *p = &ms->queue[(ms->head + i) % ms->queue_size];

        if (p->m == m) {
            p->m = NULL;
            idt_msg_unref (p->msg);
        }
    }
}

/* What a module sends comes from the owner, here, unless it says otherwise; what it asks for itself, from a broker. */
static void stamp (idt_msg_t *msg)
{
    struct idt_cred cred = idt_msg_cred (msg);
    uint32_t broker = idt_msg_type (msg) == IDT_MSGTYPE_REQUEST ? IDT_ROLE_BROKER : 0;

    if (cred.userid == IDT_USERID_UNKNOWN)
        cred.userid = geteuid ();
    if (cred.rolemask == IDT_ROLE_NONE)
        cred.rolemask = IDT_ROLE_OWNER | IDT_ROLE_LOCAL | broker;
    else
        cred.rolemask &= ~(uint32_t)IDT_ROLE_BROKER; /* it speaks for somebody */
    idt_msg_set_cred (msg, cred);
}

void module_sent (struct module *m, idt_msg_t *msg)
{
    struct modules *ms = m->ms;

    m->used = module_now ();
    stamp (msg);
    ms->ops->message (ms->arg, m->peer, msg);
}

static void to_module (struct module *m, const idt_msg_t *msg)
{
    m->used = module_now ();
    idt_handle_dispatch (m->h, msg);
    idt_msg_unref (msg);
}

bool modules_turn (struct modules *ms)
{
    int n = 0;

    for (; ms->count > 0 && n < MODULE_TURN_BUDGET; n++) {
        struct parcel p = ms->queue[ms->head];

        ms->head = (ms->head + 1) % ms->queue_size;
        ms->count--;
        if (p.m && p.way == FROM_MODULE)
            module_sent (p.m, (idt_msg_t *)p.msg);
        else if (p.m && !p.m->stopping)
            to_module (p.m, p.msg);
        else if (p.m)
            idt_msg_unref (p.msg); /* the router answers it when it forgets the module */
    }
    return n > 0;
}

bool modules_pending (const struct modules *ms)
{
    return ms->count > 0;
}

/* --- transports -------------------------------------------------------------------------------------- */

static int inline_send (void *impl, const idt_msg_t *msg)
{
    return enqueue (impl, msg, FROM_MODULE);
}

static const char *inline_attr_get (void *impl, const char *name)
{
    struct module *m = impl;

    return attr_get (m->ms->attrs, name, NULL);
}

static const char *inline_attr_define (void *impl, const char *name, const char *value)
{
    struct module *m = impl;

    return attr_default (m->ms->attrs, name, value);
}

static int inline_overlay_attach (void *impl, const struct idt_overlay_ops *ops, void *arg)
{
    struct module *m = impl;

    if (m->ms->ops->overlay_attach (m->ms->arg, ops, arg) < 0)
        return -1;
    m->attached = true;
    return 0;
}

void module_detach (struct module *m)
{
    if (m->attached)
        m->ms->ops->overlay_attach (m->ms->arg, NULL, NULL);
    m->attached = false;
}

static void inline_log (void *impl, int level, const char *name, const char *text)
{
    struct module *m = impl;

    log_print (m->ms->log, level, name, text);
}

static void no_destroy (void *impl)
{
}

static const struct idt_transport inline_transport = {
    .send = inline_send,
    .attr_get = inline_attr_get,
    .attr_define = inline_attr_define,
    .overlay_attach = inline_overlay_attach,
    .log = inline_log,
    .destroy = no_destroy,
};

static int thread_send (void *impl, const idt_msg_t *msg)
{
    struct module *m = impl;

    if (mailbox_push_new (m->out, idt_msg_ref (msg)) < 0) {
        idt_msg_unref (msg);
        return -1;
    }
    return 0;
}

static const idt_msg_t *thread_recv (void *impl)
{
    struct module *m = impl;

    return mailbox_pop (m->in);
}

static int thread_pollfd (void *impl)
{
    struct module *m = impl;

    return mailbox_pollfd (m->in);
}

static int thread_started (void *impl, int errnum, const char *text)
{
    struct module *m = impl;
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_CONTROL);

    if (!msg)
        return -1;
    idt_msg_set_control (msg, 0, errnum);
    if (idt_msg_set_string (msg, text) == 0 && mailbox_push_new (m->out, msg) == 0)
        return 0;
    idt_msg_unref (msg);
    return -1;
}

static const struct idt_transport thread_transport = {
    .send = thread_send,
    .recv = thread_recv,
    .pollfd = thread_pollfd,
    .started = thread_started,
    .destroy = no_destroy,
};

/* --- the router's way to a module --------------------------------------------------------------------- */

static int inline_peer_send (void *arg, const idt_msg_t *msg)
{
    return enqueue (arg, msg, TO_MODULE);
}

static int thread_peer_send (void *arg, const idt_msg_t *msg)
{
    struct module *m = arg;

    m->used = module_now ();
    if (mailbox_push_new (m->in, idt_msg_ref (msg)) < 0) {
        idt_msg_unref (msg);
        return -1;
    }
    return 0;
}

/* --- peers and handles --------------------------------------------------------------------------------- */

int module_make_peer (struct module *m)
{
    zuuid_t *uuid = zuuid_new ();

    if (!uuid)
        return -1;
    m->own = (struct peer){ .kind = PEER_MODULE,
                            .send = m->inline_def ? inline_peer_send : thread_peer_send,
                            .arg = m };
    memcpy (m->own.uuid, zuuid_str_canonical (uuid), sizeof (m->own.uuid));
    zuuid_destroy (&uuid);
    m->peer = &m->own;
    return router_peer_add (m->ms->router, m->peer);
}

int module_make_handle (struct module *m)
{
    if (!m->inline_def
        && (!(m->in = mailbox_create (MAILBOX_LIMIT, idt_msg_unref))
            || !(m->out = mailbox_create (MAILBOX_LIMIT, idt_msg_unref))))
        return -1;
    if (!(m->h = idt_handle_create (m->inline_def ? &inline_transport : &thread_transport, m))
        || idt_handle_set_module (m->h, m->name) < 0)
        return -1;
    return m->inline_def ? idt_set_reactor (m->h, m->ms->reactor) : 0;
}

int module_make_builtin (struct module *m, struct peer *peer)
{
    peer->kind = PEER_BUILTIN;
    peer->send = inline_peer_send;
    peer->arg = m;
    m->peer = peer;
    if (!(m->h = idt_handle_create (&inline_transport, m)) || idt_handle_set_module (m->h, m->name) < 0)
        return -1;
    return idt_set_reactor (m->h, m->ms->reactor);
}
