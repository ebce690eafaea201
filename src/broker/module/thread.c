/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* thread.c - modules in threads: each in a thread of its own, or several in the thread that modules of all brokers of a
 * process share
 *
 * To end a module, the broker closes the mailbox 'in'. When the thread has ended the module, the thread closes 'out'.
 * The thread owns the handle from its start until then.
 *
 * In the shared thread a module gets the order to begin, and then messages, through 'in'. The thread serves the modules
 * in turn, one message each. Messages of a module, and the report that it has ended, go through 'out', as for a module
 * with a thread of its own.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "broker/module/private.h"
#include "libidtree/reactor.h"
#include "libutil/errprintf.h"

#define MAILBOX_LIMIT 100000 /* largest number of events that wait for a thread, and of messages that wait from it */
#define JOIN_TIMEOUT 5       /* seconds after which a thread that does not end is left behind */
#define BATCH 16             /* messages that the shared thread handles before its timers get a turn */

/* Control messages between a thread and its host. */
enum control { CONTROL_STARTED, CONTROL_ROOM, CONTROL_BEGIN, CONTROL_END };

/* The value of an attribute that a module in the shared thread has read. The value is kept until the module reads the
 * attribute again.
 */
struct attr_text {
    struct attr_text *next;
    char *value;
    char name[];
};

struct shared {
    struct bell *in;  /* for messages to modules; the shared thread reads */
    struct bell *out; /* for messages from modules; the brokers read */
    idt_watcher_t *out_w;
    bool running;
    unsigned left_behind; /* number of modules that did not end in time */
    pthread_t thread;
    struct mailbox *end; /* closing it ends the thread */
    idt_reactor_t *reactor;
    idt_watcher_t *in_w;
};

/* --- messages to and from a thread --------------------------------------------------------------------------- */

int module_push (struct mailbox *mb, const idt_msg_t *msg, bool limited)
{
    int rc = mailbox_push_new (mb, idt_msg_ref (msg), limited);

    if (rc < 0)
        idt_msg_unref (msg);
    return rc;
}

/* Send a control message, with a text if 'text' is not NULL. Returns 0, or -1 with errno set. */
static int send_control (struct mailbox *mb, enum control type, int status, const char *text)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_CONTROL);

    if (!msg)
        return -1;
    idt_msg_set_control (msg, type, status);
    if ((!text || idt_msg_set_string (msg, text) == 0) && mailbox_push_new (mb, msg, false) == 0)
        return 0;
    idt_msg_unref (msg);
    return -1;
}

static int thread_send (void *impl, const idt_msg_t *msg)
{
    struct module *m = impl;

    return module_push (m->out, msg, idt_msg_type (msg) != IDT_MSGTYPE_RESPONSE);
}

/* The module has taken a request from its mailbox. When half of MODULE_MAX_INSIDE are left, the host is notified. */
static void thread_served (void *impl)
{
    struct module *m = impl;

    int inside = __atomic_sub_fetch (&m->inside, 1, __ATOMIC_RELAXED);

    assert (inside >= 0);
    if (inside == MODULE_MAX_INSIDE / 2)
        send_control (m->out, CONTROL_ROOM, 0, NULL);
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

    return send_control (m->out, CONTROL_STARTED, errnum, text);
}

/* A module that has only idt_mod_main counts as started when its reactor runs. Other modules report their start
 * themselves.
 */
static void thread_runs (void *impl)
{
    struct module *m = impl;

    if (!m->def && !m->told)
        m->told = thread_started (m, 0, "") == 0;
}

static const struct idt_transport thread_transport = {
    .send = thread_send,
    .recv = thread_recv,
    .served = thread_served,
    .pollfd = thread_pollfd,
    .started = thread_started,
    .runs = thread_runs,
    .keep = module_keep,
    .kept = module_kept,
    .destroy = module_no_destroy,
};

static struct attr_text *find_text (struct module *m, const char *name)
{
    struct attr_text *t = m->texts;
    size_t size = strlen (name) + 1;

    while (t && strcmp (t->name, name) != 0)
        t = t->next;
    if (t || !(t = calloc (1, sizeof (*t) + size)))
        return t;
    memcpy (t->name, name, size);
    t->next = m->texts;
    m->texts = t;
    return t;
}

void module_thread_fini (struct module *m)
{
    struct attr_text *t;

    idt_watcher_destroy (m->w);
    mailbox_destroy (m->in);
    mailbox_destroy (m->out);
    attrs_destroy (m->attrs);
    while ((t = m->texts)) {
        m->texts = t->next;
        free (t->value);
        free (t);
    }
}

static const char *shared_attr_get (void *impl, const char *name)
{
    struct module *m = impl;
    char *value = attr_read (m->attrs, name);
    struct attr_text *t = value ? find_text (m, name) : NULL;

    if (!t) {
        free (value);
        return NULL;
    }
    free (t->value);
    return t->value = value;
}

static const char *shared_attr_define (void *impl, const char *name, const char *value)
{
    struct module *m = impl;

    return attr_default (m->attrs, name, value, NULL) ? shared_attr_get (impl, name) : NULL;
}

static const struct idt_transport shared_transport = {
    .send = thread_send,
    .served = thread_served,
    .attr_get = shared_attr_get,
    .attr_define = shared_attr_define,
    .keep = module_keep,
    .kept = module_kept,
    .destroy = module_no_destroy,
};

/* --- in the shared thread ------------------------------------------------------------------------------------ */

/* A module stops its reactor and so ends itself. The module ends later, not inside its callback. */
static void stop_cb (void *arg)
{
    struct module *m = arg;

    send_control (m->in, CONTROL_END, 0, NULL);
}

static void woke_cb (void *arg)
{
}

static const struct view_ops view_ops = { woke_cb, stop_cb };

/* End the module. This thread does not use the module afterwards. */
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
    if (thread_started (m, errnum, err.text) < 0 || errnum)
        end (m, errnum ? errnum : ENOMEM);
}

static void serve (struct shared *s, struct module *m)
{
    const idt_msg_t *msg = mailbox_pop (m->in);

    if (!msg && errno == EPIPE)
        end (m, 0);
    else if (__atomic_load_n (&m->left_behind, __ATOMIC_RELAXED))
        ; /* no broker waits for what the module does, not even for its start */
    else if (msg && idt_msg_type (msg) != IDT_MSGTYPE_CONTROL)
        idt_handle_dispatch (m->h, msg);
    else if (msg && idt_msg_control_type (msg) == CONTROL_BEGIN)
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

static void *shared_main (void *arg)
{
    struct shared *s = arg;

    idt_watcher_start (s->in_w);
    idt_reactor_run (s->reactor, IDT_REACTOR_DEFAULT);
    idt_watcher_stop (s->in_w);
    return NULL;
}

/* --- the end of a module ------------------------------------------------------------------------------------- */

/* Handle a message from a thread. Control messages are for the host: they report the result of the start, or that the
 * mailbox can take more requests.
 */
static void from_thread (struct module *m, idt_msg_t *msg)
{
    if (idt_msg_type (msg) != IDT_MSGTYPE_CONTROL) {
        module_sent (m, msg);
        return;
    }
    if (idt_msg_control_type (msg) == CONTROL_ROOM)
        module_check_active (m);
    else if (m->status == MODULE_STARTING || idt_msg_control_status (msg) != 0)
        module_started (m, idt_msg_control_status (msg), idt_msg_string (msg));
    idt_msg_unref (msg);
}

/* Handle messages of the thread until it has ended. Returns true when it has ended. Returns false after JOIN_TIMEOUT,
 * or immediately if another module that was left behind blocks the shared thread.
 */
static bool hear_out (struct module *m)
{
    bool stuck = m->shared && m->ms->conf.shared->left_behind > 0;
    double until = module_now () + (stuck ? 0 : JOIN_TIMEOUT);
    const idt_msg_t *msg;

    for (;;) {
        while ((msg = mailbox_pop (m->out)))
            from_thread (m, (idt_msg_t *)msg);
        if (errno == EPIPE)
            return true;
        if (!mailbox_wait (m->out, until - module_now ()))
            return false;
    }
}

/* Leave a module behind that does not end. The thread may still use the module, but not the broker. If the module is in
 * the shared thread, it is freed when it has ended. If the module has a thread of its own, the module is never freed.
 */
static void leave_behind (struct module *m)
{
    log_printf (m->ms->conf.log, LOG_ERR, "module", "%s does not end: it is left behind", m->name);
    __atomic_store_n (&m->left_behind, true, __ATOMIC_RELAXED);
    if (m->shared)
        m->ms->conf.shared->left_behind++;
    else
        idt_watcher_stop (m->w);
    module_forget_messages (m);
    module_forget (m);
    m->ms = NULL;
}

/* Returns the errno with which a module in a thread has ended, or 0. */
static int join (struct module *m)
{
    void *result = NULL;

    if (m->shared)
        return m->result;
    pthread_join (m->thread, &result);
    return (int)(intptr_t)result;
}

/* The module has ended before it reported its start. If the module has only idt_mod_main and has returned success, this
 * is not an error.
 */
static void ended_early (struct module *m, int errnum)
{
    idt_error_t error;

    if (errnum == 0 && !m->def) {
        module_started (m, 0, "");
        return;
    }
    errprintf (&error, "%s ended before it ran: %s", m->name, strerror (errnum ? errnum : EIO));
    module_started (m, errnum ? errnum : EIO, error.text);
}

void module_thread_end (struct module *m)
{
    int errnum;

    assert (m->threaded && !m->left_behind);
    if (!hear_out (m)) {
        leave_behind (m);
        return;
    }
    errnum = join (m);
    if (m->status == MODULE_STARTING)
        ended_early (m, errnum);
    else if (errnum && m->status == MODULE_RUNNING)
        log_printf (m->ms->conf.log, LOG_ERR, "module", "%s ended with an error: %s", m->name, strerror (errnum));
    module_forget (m);
    module_destroy (m);
}

/* Handle a message of a module. If the module has ended, destroy it. Returns whether there was a message. */
static bool hear (struct module *m)
{
    const idt_msg_t *msg = mailbox_pop (m->out);

    if (msg)
        from_thread (m, (idt_msg_t *)msg);
    else if (errno == EPIPE)
        module_thread_end (m);
    return msg;
}

static void thread_cb (idt_watcher_t *w, int revents, void *arg)
{
    uint64_t since_us = 0;

    while (hear (arg))
        if (clock_is_over (&since_us, MODULE_TURN_US))
            break;
}

/* --- the start of a module ----------------------------------------------------------------------------------- */

static void *thread_main (void *arg)
{
    struct module *m = arg;
    int rc = m->mod_main (m->h, m->argc, m->argv);
    int errnum = rc < 0 ? (errno ? errno : EIO) : 0;

    mailbox_close (m->out);
    return (void *)(intptr_t)errnum;
}

static int start_shared_thread (struct shared *s, idt_error_t *errp)
{
    int rc;

    if (s->running)
        return 0;
    if ((!s->reactor && !(s->reactor = idt_reactor_create ()))
        || (!s->in_w && !(s->in_w = idt_fd_watcher_create (s->reactor, bell_fd (s->in), IDT_POLLIN, in_cb, s))))
        return errprintf (errp, "cannot start a thread: %s", strerror (errno));
    if ((rc = pthread_create (&s->thread, NULL, shared_main, s)) != 0)
        return errsetf (errp, rc, "cannot start a thread: %s", strerror (rc));
    s->running = true;
    return 0;
}

int module_thread_start (struct module *m, idt_error_t *errp)
{
    int rc;

    m->status = MODULE_STARTING;
    if (m->shared) {
        m->attrs = attrs_ref (m->ms->conf.attrs);
        if (start_shared_thread (m->ms->conf.shared, errp) < 0)
            return -1;
        return send_control (m->in, CONTROL_BEGIN, 0, NULL) == 0 ? 0 : errprintf (errp, "out of memory");
    }
    if (!(m->w = idt_fd_watcher_create (m->ms->conf.reactor, mailbox_pollfd (m->out), IDT_POLLIN, thread_cb, m)))
        return errprintf (errp, "out of memory");
    if ((rc = pthread_create (&m->thread, NULL, thread_main, m)) != 0)
        return errsetf (errp, rc, "cannot start a thread: %s", strerror (rc));
    idt_watcher_start (m->w);
    return 0;
}

const struct idt_transport *module_thread_prepare (struct module *m)
{
    struct shared *s = m->ms->conf.shared;

    assert (m->threaded && !m->in && !m->out);
    m->in = m->shared ? mailbox_create_at (s->in, m, MAILBOX_LIMIT, idt_msg_unref)
                      : mailbox_create (MAILBOX_LIMIT, idt_msg_unref);
    m->out = m->shared ? mailbox_create_at (s->out, m, MAILBOX_LIMIT, idt_msg_unref)
                       : mailbox_create (MAILBOX_LIMIT, idt_msg_unref);
    if (!m->in || !m->out)
        return NULL;
    return m->shared ? &shared_transport : &thread_transport;
}

/* --- the shared thread --------------------------------------------------------------------------------------- */

/* Drop the messages of a module that was left behind. If it has ended, destroy it. */
static void hear_left_behind (struct shared *s, struct module *m)
{
    const idt_msg_t *msg = mailbox_pop (m->out);

    assert (m->left_behind && s->left_behind > 0);
    if (!msg && errno == EPIPE) {
        s->left_behind--;
        module_destroy (m);
    }
    idt_msg_unref (msg);
}

static void out_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct shared *s = arg;
    uint64_t since_us = 0;
    struct module *m;

    while ((m = bell_next (s->out))) {
        if (m->left_behind)
            hear_left_behind (s, m);
        else {
            m->ms->conf.ops->woke (m->ms->conf.arg);
            hear (m);
        }
        if (clock_is_over (&since_us, MODULE_TURN_US))
            break;
    }
}

struct shared *shared_create (idt_reactor_t *r)
{
    struct shared *s = calloc (1, sizeof (*s));

    if (!s)
        return NULL;
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
        hear_left_behind (s, m);
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
