/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* process.c - the objects that all brokers of a process share
 *
 * In each iteration of the reactor's loop, descriptors and timers call back, which wakes members. Then prepare_cb ()
 * gives turns to the members that are awake, in the order in which they woke, until no member is awake or TURN_US is
 * over.
 */
#include "config.h"

#include <assert.h>
#include <czmq.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/resource.h>

#include "broker/module/module.h"
#include "broker/process.h"
#include "broker/route/usock.h"
#include "libidtree/reactor.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define SOCKETS 16 /* ZeroMQ sockets of a member: 2 to ancestors, 2 for children, each with a monitor; doubled */
#define TURN_US 50 /* time for turns before the reactor polls its descriptors again */

struct member {
    struct process *p;
    const struct member_ops *ops;
    void *arg;
    idt_reactor_t *view;
    bool awake;
    bool paused;
    bool ended;
    bool told;                 /* the owner was notified that the member has ended */
    TAILQ_ENTRY (member) link; /* in 'awake', or in 'ended' until the owner is notified */
    char name[];
};

struct process {
    struct process_parts parts;
    idt_reactor_t *reactor;
    struct zpoll *zpoll; /* serves 'zap' */
    size_t expected;     /* announced number of members */
    struct zap *zap;
    zhashx_t *members; /* by name */
    size_t running;    /* members that have not ended; one more while 'held' */
    bool held;
    TAILQ_HEAD (, member) awake;
    TAILQ_HEAD (, member) ended; /* members that have ended and whose owners are not notified yet */
    void (*watch) (void *arg);   /* function of process_watch (); may be NULL */
    void *watch_arg;
    idt_watcher_t *prepare;
    idt_watcher_t *idle; /* active while a member has work left */
};

/* --- turns ------------------------------------------------------------------------------------- */

void member_wake (struct member *m)
{
    if (m->awake || m->ended || m->paused)
        return;
    m->awake = true;
    TAILQ_INSERT_TAIL (&m->p->awake, m, link);
}

static void sleep_again (struct member *m)
{
    if (m->awake)
        TAILQ_REMOVE (&m->p->awake, m, link);
    m->awake = false;
}

static void tell_ended (struct process *p)
{
    struct member *m;

    while ((m = TAILQ_FIRST (&p->ended))) {
        TAILQ_REMOVE (&p->ended, m, link);
        m->told = true;
        if (m->ops->ended)
            m->ops->ended (m->arg);
    }
}

static void idle_cb (idt_watcher_t *w, int revents, void *arg)
{
}

static void prepare_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct process *p = arg;
    uint64_t since_us = 0;
    bool busy = zpoll_turn (p->zpoll);
    struct member *m;

    while ((m = TAILQ_FIRST (&p->awake))) {
        sleep_again (m);
        assert (!m->ended && !m->paused);
        if (m->ops->turn (m->arg))
            member_wake (m);
        if (TAILQ_EMPTY (&p->awake) || clock_is_over (&since_us, TURN_US))
            break;
    }
    tell_ended (p);
    if (p->watch)
        p->watch (p->watch_arg);
    if (busy || !TAILQ_EMPTY (&p->awake))
        idt_watcher_start (p->idle);
    else
        idt_watcher_stop (p->idle);
}

/* --- ZeroMQ ------------------------------------------------------------------------------------ */

static bool zap_cb (const char *domain, const uint8_t key[ZAP_KEY_SIZE], char *user, size_t size, void *arg)
{
    struct process *p = arg;
    struct member *m = zhashx_lookup (p->members, domain);

    return m && !m->ended && m->ops->admit (m->arg, key, user, size);
}

/* The largest number of sockets that 'members' need. Each socket needs a descriptor. ZeroMQ allocates memory for this
 * number in advance, so the number is no larger than necessary.
 */
static int most_sockets (void *zctx, size_t members)
{
    size_t max = (size_t)zmq_ctx_get (zctx, ZMQ_SOCKET_LIMIT), most = members * SOCKETS;
    struct rlimit r;

    if (getrlimit (RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < max)
        max = r.rlim_cur;
    return (int)(most < ZMQ_MAX_SOCKETS_DFLT ? ZMQ_MAX_SOCKETS_DFLT : most < max ? most : max);
}

/* Make the context of ZeroMQ and the handler of keys, before the first socket that needs the handler. */
static int open_zmq (struct process *p)
{
    if (!(p->parts.zctx = zmq_ctx_new ()))
        return -1;
    zmq_ctx_set (p->parts.zctx, ZMQ_MAX_SOCKETS, most_sockets (p->parts.zctx, p->expected));
    return (p->zap = zap_create (p->zpoll, p->parts.zctx, zap_cb, p)) ? 0 : -1;
}

/* --- members ----------------------------------------------------------------------------------- */

static void woke (void *arg)
{
    member_wake (arg);
}

static void one_less (struct process *p)
{
    assert (p->running > 0);
    if (--p->running == 0)
        idt_reactor_stop (p->reactor);
}

static void stop (void *arg)
{
    struct member *m = arg;

    if (m->ended)
        return;
    sleep_again (m);
    m->ended = true;
    TAILQ_INSERT_TAIL (&m->p->ended, m, link);
    one_less (m->p);
}

static const struct view_ops view_ops = { woke, stop };

struct member *member_create (struct process *p, const char *name, const struct member_ops *ops, void *arg)
{
    size_t size = strlen (name) + 1;
    struct member *m = calloc (1, sizeof (*m) + size);

    if (!m)
        return NULL;
    if (!p->zap && open_zmq (p) < 0) {
        free (m);
        return NULL;
    }
    m->p = p;
    m->ops = ops;
    m->arg = arg;
    memcpy (m->name, name, size);
    if (!(m->view = idt_view_create (p->reactor, &view_ops, m)) || zhashx_insert (p->members, name, m) < 0) {
        idt_reactor_destroy (m->view);
        free (m);
        return errset_null (ENOMEM);
    }
    p->running++;
    member_wake (m);
    return m;
}

void member_destroy (struct member *m)
{
    if (!m)
        return;
    stop (m);
    if (!m->told)
        TAILQ_REMOVE (&m->p->ended, m, link);
    zhashx_delete (m->p->members, m->name);
    idt_reactor_destroy (m->view);
    free (m);
}

idt_reactor_t *member_reactor (struct member *m)
{
    return m->view;
}

void member_pause (struct member *m, bool paused)
{
    m->paused = paused;
    if (paused)
        sleep_again (m);
    idt_view_pause (m->view, paused);
    member_wake (m);
}

/* --- life -------------------------------------------------------------------------------------- */

static int make_parts (struct process *p)
{
    if (!(p->reactor = idt_reactor_create ()) || !(p->zpoll = zpoll_create (p->reactor))
        || !(p->parts.inside = inside_create ()) || !(p->members = zhashx_new ())
        || !(p->parts.shared = shared_create (p->reactor)) || !(p->parts.usocks = usocks_create (p->reactor))
        || !(p->prepare = idt_prepare_watcher_create (p->reactor, prepare_cb, p))
        || !(p->idle = idt_idle_watcher_create (p->reactor, idle_cb, p)))
        return -1;
    idt_watcher_start (p->prepare);
    return 0;
}

static void *end_at_once (void *arg)
{
    return NULL;
}

/* Check that threads can be made. If not, libzmq would abort, and print only a line of its source code. glibc uses
 * clone3 since 2.34, and uses clone in its place only if the error is ENOSYS; but old seccomp profiles answer EPERM.
 */
static int check_threads (idt_error_t *errp)
{
    pthread_t thread;
    int errnum = pthread_create (&thread, NULL, end_at_once, NULL);

    if (errnum == 0)
        return pthread_join (thread, NULL);
    return errsetf (errp, errnum, "cannot start: no thread can be made: %s%s", strerror (errnum),
                    errnum == EPERM ? ": a seccomp profile refuses clone3; it must allow that, or answer ENOSYS" : "");
}

struct process *process_create (idt_error_t *errp)
{
    struct process *p;

    if (check_threads (errp) < 0)
        return NULL;
    if ((p = calloc (1, sizeof (*p)))) {
        TAILQ_INIT (&p->awake);
        TAILQ_INIT (&p->ended);
        if (make_parts (p) == 0)
            return p;
    }
    errprintf (errp, "cannot start: %s", zmq_strerror (errno));
    process_destroy (p);
    return NULL;
}

void process_destroy (struct process *p)
{
    int saved_errno = errno;

    if (!p)
        return;
    assert (!p->members || zhashx_size (p->members) == 0);
    idt_watcher_destroy (p->prepare);
    idt_watcher_destroy (p->idle);
    usocks_destroy (p->parts.usocks);
    shared_destroy (p->parts.shared);
    zap_destroy (p->zap);
    zpoll_destroy (p->zpoll);
    inside_destroy (p->parts.inside);
    zhashx_destroy (&p->members);
    if (p->parts.zctx)
        zmq_ctx_term (p->parts.zctx);
    idt_reactor_destroy (p->reactor);
    free (p);
    errno = saved_errno;
}

idt_reactor_t *process_reactor (struct process *p)
{
    return p->reactor;
}

void process_expect (struct process *p, size_t members)
{
    p->expected = members;
}

const struct process_parts *process_parts (const struct process *p)
{
    return &p->parts;
}

void process_watch (struct process *p, void (*cb) (void *arg), void *arg)
{
    p->watch = cb;
    p->watch_arg = arg;
}

void process_hold (struct process *p, bool held)
{
    if (p->held == held)
        return;
    p->held = held;
    if (held)
        p->running++;
    else
        one_less (p);
}

int process_run (struct process *p)
{
    int rc = p->running > 0 ? idt_reactor_run (p->reactor, IDT_REACTOR_DEFAULT) : 0;

    tell_ended (p);
    if (p->watch)
        p->watch (p->watch_arg);
    return rc;
}
