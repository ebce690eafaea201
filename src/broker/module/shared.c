/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* shared.c - the thread of a process in which modules of all its brokers run
 *
 * A module gets the order to begin, and then messages, through its mailbox 'in'; it ends when 'in' is closed. The
 * thread serves the modules in turn, one message each. Messages of a module, and the report that it has ended, go out
 * as from a module with a thread of its own. The thread owns the handle from shared_start () until it closes 'out'.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker/module/private.h"
#include "broker/module/shared.h"
#include "libidtree/reactor/loop.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define BATCH 16 /* messages before timers get a turn */

struct shared {
    idt_reactor_t *brokers;
    struct bell *in;  /* for messages to modules; the thread reads */
    struct bell *out; /* for messages from modules; the brokers read */
    idt_watcher_t *out_w;
    bool running;
    unsigned left_behind; /* modules that did not end */
    pthread_t thread;
    struct mailbox *end; /* closed: the thread ends */
    idt_reactor_t *reactor;
    idt_watcher_t *in_w;
};

/* --- in the thread ------------------------------------------------------------------------------------ */

/* A module ends itself. It is destroyed later, not inside its callback. */
static void stop_cb (void *arg)
{
    struct module *m = arg;
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_CONTROL);

    if (!msg)
        return;
    idt_msg_set_control (msg, MODULE_CONTROL_END, 0);
    if (mailbox_push_new (m->in, msg, false) < 0)
        idt_msg_unref (msg);
}

static void woke_cb (void *arg)
{
}

static const struct view_ops view_ops = { woke_cb, stop_cb };

/* The last use of the module in this thread. */
static void end (struct module *m, int errnum)
{
    if (m->begun)
        m->def->fini (m->h, m->ctx);
    idt_close (m->h);
    m->h = NULL;
    idt_reactor_destroy (m->view);
    mailbox_mute (m->in);
    m->result = errnum;
    mailbox_close (m->out);
}

static int init (struct shared *s, struct module *m, idt_error_t *errp)
{
    if (!(m->view = idt_view_create (s->reactor, &view_ops, m)) || idt_set_reactor (m->h, m->view) < 0)
        return errprintf (errp, "cannot make a reactor: %s", strerror (errno));
    return m->def->init (m->h, m->argc, m->argv, &m->ctx, errp);
}

static void begin (struct shared *s, struct module *m)
{
    idt_error_t err = { .text = "" };
    int errnum = 0;

    if (init (s, m, &err) < 0)
        errnum = errno ? errno : EIO;
    m->begun = errnum == 0;
    if (module_tell_started (m, errnum, err.text) < 0 || errnum)
        end (m, errnum ? errnum : ENOMEM);
}

static void serve (struct shared *s, struct module *m)
{
    const idt_msg_t *msg = mailbox_pop (m->in);

    if (!msg && errno == EPIPE)
        end (m, 0);
    else if (__atomic_load_n (&m->left_behind, __ATOMIC_RELAXED))
        ; /* no broker waits for its work, or even its start */
    else if (msg && idt_msg_type (msg) != IDT_MSGTYPE_CONTROL)
        idt_handle_dispatch (m->h, msg);
    else if (msg && idt_msg_control_type (msg) == MODULE_CONTROL_BEGIN)
        begin (s, m);
    else if (msg)
        end (m, 0);
    idt_msg_unref (msg);
}

static void in_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct shared *s = arg;
    void *next;

    for (int i = 0; i < BATCH && (next = bell_next (s->in)); i++)
        if (next == s)
            idt_reactor_stop (s->reactor);
        else
            serve (s, next);
}

static void *thread_main (void *arg)
{
    struct shared *s = arg;

    idt_watcher_start (s->in_w);
    idt_reactor_run (s->reactor, IDT_REACTOR_DEFAULT);
    idt_watcher_stop (s->in_w);
    return NULL;
}

/* --- the brokers' side --------------------------------------------------------------------------------- */

/* Messages of a module that was left behind are dropped, except its end. */
static void hear_left_behind (struct shared *s, struct module *m)
{
    const idt_msg_t *msg = mailbox_pop (m->out);

    if (!msg && errno == EPIPE) {
        s->left_behind--;
        module_destroy (m);
    }
    idt_msg_unref (msg);
}

static void hear (struct shared *s, struct module *m)
{
    if (m->left_behind) {
        hear_left_behind (s, m);
        return;
    }
    m->ms->conf.ops->woke (m->ms->conf.arg);
    module_heard (m);
}

static void out_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct shared *s = arg;
    uint64_t since_us = 0;
    struct module *m;

    while ((m = bell_next (s->out))) {
        hear (s, m);
        if (clock_is_over (&since_us, MODULE_TURN_US))
            break;
    }
}

static int start_thread (struct shared *s, idt_error_t *errp)
{
    int rc;

    if (s->running)
        return 0;
    if ((!s->reactor && !(s->reactor = idt_reactor_create ()))
        || (!s->in_w && !(s->in_w = idt_fd_watcher_create (s->reactor, bell_fd (s->in), IDT_POLLIN, in_cb, s))))
        return errprintf (errp, "cannot start a thread: %s", strerror (errno));
    if ((rc = pthread_create (&s->thread, NULL, thread_main, s)) != 0)
        return errsetf (errp, rc, "cannot start a thread: %s", strerror (rc));
    s->running = true;
    return 0;
}

int shared_make_mailboxes (struct shared *s, struct module *m, size_t limit)
{
    m->in = mailbox_create_at (s->in, m, limit, idt_msg_unref);
    m->out = mailbox_create_at (s->out, m, limit, idt_msg_unref);
    return m->in && m->out ? 0 : -1;
}

int shared_start (struct shared *s, struct module *m, idt_error_t *errp)
{
    idt_msg_t *msg;

    if (start_thread (s, errp) < 0)
        return -1;
    if (!(msg = idt_msg_create (IDT_MSGTYPE_CONTROL)))
        return errprintf (errp, "out of memory");
    idt_msg_set_control (msg, MODULE_CONTROL_BEGIN, 0);
    if (mailbox_push_new (m->in, msg, false) == 0)
        return 0;
    idt_msg_unref (msg);
    return errprintf (errp, "out of memory");
}

void shared_leave_behind (struct shared *s)
{
    s->left_behind++;
}

bool shared_is_stuck (const struct shared *s)
{
    return s->left_behind > 0;
}

struct shared *shared_create (idt_reactor_t *r)
{
    struct shared *s = calloc (1, sizeof (*s));

    if (!s)
        return NULL;
    s->brokers = r;
    if ((s->in = bell_create ()) && (s->out = bell_create ())
        && (s->end = mailbox_create_at (s->in, s, 1, idt_msg_unref))
        && (s->out_w = idt_fd_watcher_create (r, bell_fd (s->out), IDT_POLLIN, out_cb, s))) {
        idt_watcher_start (s->out_w);
        return s;
    }
    shared_destroy (s);
    return NULL;
}

void shared_destroy (struct shared *s)
{
    int saved_errno = errno;
    struct module *m;

    if (!s)
        return;
    idt_watcher_destroy (s->out_w);
    while (s->left_behind > 0 && (m = bell_next (s->out)))
        hear (s, m);
    if (s->left_behind > 0)
        return;
    if (s->running) {
        mailbox_close (s->end);
        pthread_join (s->thread, NULL);
    }
    idt_watcher_destroy (s->in_w);
    idt_reactor_destroy (s->reactor);
    mailbox_destroy (s->end);
    bell_destroy (s->in);
    bell_destroy (s->out);
    free (s);
    errno = saved_errno;
}
