/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module.c - modules: load, start, stop, forget (RFC 5)
 *
 * To end a module in a thread, the broker closes its mailbox 'in'; the thread closes 'out' when it has ended.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <syslog.h>

#include "broker/module/private.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define JOIN_TIMEOUT 5 /* seconds until a thread that does not end is left behind */

/* --- the end of a module -------------------------------------------------------------------------------- */

static void free_args (struct module *m)
{
    for (int i = 0; i < m->argc; i++)
        free (m->argv[i]);
    free (m->argv);
}

void module_destroy (struct module *m)
{
    int saved_errno = errno;

    if (!m)
        return;
    module_detach (m);
    idt_msg_unref (m->loader);
    idt_watcher_destroy (m->w);
    module_forget_messages (m);
    idt_close (m->h);
    mailbox_destroy (m->in);
    mailbox_destroy (m->out);
    module_free_texts (m);
    if (m->dso)
        dlclose (m->dso);
    free_args (m);
    attrs_destroy (m->attrs);
    free (m->kept_copy);
    free (m->left);
    free (m->path);
    free (m);
    errno = saved_errno;
}

static void unlist (struct module *m)
{
    void *handle = zlistx_find (m->ms->list, m);

    if (handle)
        zlistx_delete (m->ms->list, handle);
}

/* Keep the module's handover for its next load. A module that never ran, or was left behind (its thread may still write
 * to 'left'), leaves the handover that it got itself.
 */
static void leave (struct module *m)
{
    if (!m->left_behind && m->left) {
        absents_add_new (m->ms->absents, m->name, m->left, m->left_size);
        m->left = NULL;
    }
    else
        absents_resume (m->ms->absents, m->name);
}

static void forget (struct module *m)
{
    struct modules *ms = m->ms;

    unlist (m);
    event_forget (ms->conf.event, m->peer);
    router_peer_remove (ms->conf.router, m->peer);
    leave (m);
    if (m->remover)
        idt_respond (ms->builtin->h, m->remover, NULL);
    idt_msg_unref (m->remover);
    m->remover = NULL;
}

/* The last messages of the module are still passed on, after its earlier ones. Other messages are passed on meanwhile,
 * so the module is first removed from the list, where it could be found again.
 */
static void stop_inline (struct module *m)
{
    unlist (m);
    m->stopping = true;
    m->def->fini (m->h, m->ctx);
    module_detach (m);
    while (modules_turn (m->ms))
        ;
    forget (m);
    module_destroy (m);
}

/* --- the start of a module in a thread ------------------------------------------------------------------- */

const char *modules_starting (struct modules *ms)
{
    struct module *m = zlistx_first (ms->list);

    while (m && m->status != MODULE_STARTING)
        m = zlistx_next (ms->list);
    return m ? m->name : NULL;
}

/* Report the result of a start to the requester or the broker. If the module is already stopping, the broker gets no
 * report.
 */
static void started (struct module *m, int errnum, const char *text)
{
    struct modules *ms = m->ms;

    m->status = errnum == 0 ? MODULE_RUNNING : MODULE_ENDED;
    if (errnum == 0)
        absents_end (ms->absents, m->name);
    free (m->kept_copy); /* no longer used after init */
    m->kept_copy = NULL;
    if (!m->loader) {
        if (!m->stopping)
            ms->conf.ops->started (ms->conf.arg, m->name, errnum, text);
        return;
    }
    if (errnum == 0)
        idt_respond (ms->builtin->h, m->loader, NULL);
    else
        idt_respond_error (ms->builtin->h, m->loader, errnum, text);
    idt_msg_unref (m->loader);
    m->loader = NULL;
}

/* Handle a message from a thread. Control messages are for the host: the result of the start, and room for requests. */
static void from_thread (struct module *m, idt_msg_t *msg)
{
    if (idt_msg_type (msg) != IDT_MSGTYPE_CONTROL) {
        module_sent (m, msg);
        return;
    }
    if (idt_msg_control_type (msg) == MODULE_CONTROL_ROOM)
        module_check_active (m);
    else if (m->status == MODULE_STARTING || idt_msg_control_status (msg) != 0)
        started (m, idt_msg_control_status (msg), idt_msg_string (msg));
    idt_msg_unref (msg);
}

/* --- threads ------------------------------------------------------------------------------------------------ */

/* Handle messages of the thread until it has ended. Returns false after JOIN_TIMEOUT, or immediately if another module
 * blocks the shared thread.
 */
static bool hear_out (struct module *m)
{
    bool stuck = m->shared && shared_is_stuck (m->ms->conf.shared);
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

/* Leave behind a module that does not end. Its thread may still use the module, but not the broker. In the shared
 * thread the module is freed when it has ended; in a thread of its own it is never freed.
 */
static void leave_behind (struct module *m)
{
    log_printf (m->ms->conf.log, LOG_ERR, "module", "%s does not end: it is left behind", m->name);
    __atomic_store_n (&m->left_behind, true, __ATOMIC_RELAXED);
    if (m->shared)
        shared_leave_behind (m->ms->conf.shared);
    else
        idt_watcher_stop (m->w);
    module_forget_messages (m);
    forget (m);
    m->ms = NULL;
}

/* The errno with which a module in a thread has ended. */
static int join (struct module *m)
{
    void *result = NULL;

    if (m->shared)
        return m->result;
    pthread_join (m->thread, &result);
    return (int)(intptr_t)result;
}

/* The module ended before it reported its start. That is no error for a module with only idt_mod_main. */
static void ended_early (struct module *m, int errnum)
{
    idt_error_t error;

    if (errnum == 0 && !m->def) {
        started (m, 0, "");
        return;
    }
    errprintf (&error, "%s ended before it ran: %s", m->name, strerror (errnum ? errnum : EIO));
    started (m, errnum ? errnum : EIO, error.text);
}

static void thread_ended (struct module *m)
{
    int errnum;

    if (!hear_out (m)) {
        leave_behind (m);
        return;
    }
    errnum = join (m);
    if (m->status == MODULE_STARTING)
        ended_early (m, errnum);
    else if (errnum && m->status == MODULE_RUNNING)
        log_printf (m->ms->conf.log, LOG_ERR, "module", "%s ended with an error: %s", m->name, strerror (errnum));
    forget (m);
    module_destroy (m);
}

void module_heard (struct module *m)
{
    const idt_msg_t *msg = mailbox_pop (m->out);

    if (msg)
        from_thread (m, (idt_msg_t *)msg);
    else if (errno == EPIPE)
        thread_ended (m);
}

static void thread_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct module *m = arg;
    uint64_t until = clock_us (CLOCK_MONOTONIC) + MODULE_TURN_US;
    const idt_msg_t *msg;

    while (clock_us (CLOCK_MONOTONIC) < until) {
        if (!(msg = mailbox_pop (m->out))) {
            if (errno == EPIPE)
                thread_ended (m);
            return;
        }
        from_thread (m, (idt_msg_t *)msg);
    }
}

static void *thread_main (void *arg)
{
    struct module *m = arg;
    int rc = m->mod_main (m->h, m->argc, m->argv);
    int errnum = rc < 0 ? (errno ? errno : EIO) : 0;

    mailbox_close (m->out);
    return (void *)(intptr_t)errnum;
}

static int start_thread (struct module *m, idt_error_t *errp)
{
    int rc;

    if (m->shared) {
        m->attrs = attrs_ref (m->ms->conf.attrs);
        m->status = MODULE_STARTING;
        return shared_start (m->ms->conf.shared, m, errp);
    }
    if (!(m->w = idt_fd_watcher_create (m->ms->conf.reactor, mailbox_pollfd (m->out), IDT_POLLIN, thread_cb, m)))
        return errprintf (errp, "out of memory");
    if ((rc = pthread_create (&m->thread, NULL, thread_main, m)) != 0)
        return errsetf (errp, rc, "cannot start a thread: %s", strerror (rc));
    idt_watcher_start (m->w);
    m->status = MODULE_STARTING;
    return 0;
}

/* --- loading, unloading ------------------------------------------------------------------------------------- */

static int start (struct module *m, idt_error_t *errp)
{
    if (module_make_peer (m) < 0 || router_service_add (m->ms->conf.router, m->name, m->peer) < 0)
        return errno == EEXIST ? errprintf (errp, "service %s already exists", m->name)
                               : errprintf (errp, "service %s cannot be registered: %s", m->name, strerror (errno));
    if (module_make_handle (m) < 0)
        return errprintf (errp, "cannot make a handle: %s", strerror (errno));
    return m->threaded ? start_thread (m, errp) : m->def->init (m->h, m->argc, m->argv, &m->ctx, errp);
}

/* Get the handover of the last load. A thread gets a copy, because it may be left behind before it has started. */
static int get_kept (struct module *m)
{
    m->kept = absents_pause (m->ms->absents, m->name, &m->kept_size);
    if (!m->threaded || !m->kept)
        return 0;
    if (!(m->kept_copy = malloc (m->kept_size)))
        return -1;
    m->kept = memcpy (m->kept_copy, m->kept, m->kept_size);
    return 0;
}

static int load (struct module *m, const char *path, const char *name, int argc, char **argv, idt_error_t *errp)
{
    if (module_open (m, path, name, argc, argv, errp) < 0)
        return -1;
    if (get_kept (m) < 0 || start (m, errp) < 0) {
        int saved_errno = errno;

        router_peer_remove (m->ms->conf.router, &m->own);
        absents_resume (m->ms->absents, m->name);
        return errset (saved_errno);
    }
    return 0;
}

/* The module also gets NAME.stats-clear as an event, which clears the counters of all ranks together. */
static void add (struct module *m)
{
    struct modules *ms = m->ms;
    char topic[MODULE_MAX_NAME + 16];

    zlistx_add_end (ms->list, m);
    if (m->status != MODULE_STARTING)
        absents_end (ms->absents, m->name);
    snprintf (topic, sizeof (topic), "%s.stats-clear", m->name);
    event_subscribe (ms->conf.event, m->peer, (struct idt_cred){ ms->owner, IDT_ROLE_OWNER }, topic);
    log_printf (ms->conf.log, LOG_DEBUG, "module", "%s is loaded from %s", m->name, m->path);
}

int modules_load (struct modules *ms, const idt_msg_t *request, const char *path, const char *name, int argc,
                  char **argv, idt_error_t *errp)
{
    struct module *m;

    if (zlistx_size (ms->list) >= MODULES_MAX)
        return errsetf (errp, ENOSPC, "%d modules are loaded, which is the limit", MODULES_MAX);
    if (!(m = calloc (1, sizeof (*m))))
        return errprintf (errp, "out of memory");
    m->ms = ms;
    m->used = module_now ();
    m->status = MODULE_RUNNING;
    if (load (m, path, name, argc, argv, errp) < 0) {
        module_destroy (m);
        return -1;
    }
    add (m);
    if (request && m->status == MODULE_STARTING)
        m->loader = idt_msg_ref (request);
    else if (request)
        idt_respond (ms->builtin->h, request, NULL);
    return 0;
}

/* Make a module end. A module on the reactor is destroyed immediately. */
static void stop (struct module *m)
{
    if (!m->threaded) {
        stop_inline (m);
        return;
    }
    m->stopping = true;
    mailbox_close (m->in);
}

/* Find a module by name or by the path of its file. If several have the same file, it is the one with the name of the
 * file, else the oldest.
 */
static struct module *find_to_remove (struct modules *ms, const char *name)
{
    struct module *found = NULL;

    if (!strchr (name, '/'))
        return modules_find (ms, name);
    for (struct module *m = zlistx_first (ms->list); m; m = zlistx_next (ms->list))
        if (module_is_from (m, name) && (!found || module_has_name_of_file (m)))
            found = m;
    return found;
}

int modules_remove (struct modules *ms, const char *name, const idt_msg_t *request)
{
    struct module *m = find_to_remove (ms, name);

    if (!m || m->stopping)
        return errset (ENOENT);
    m->remover = idt_msg_ref (request);
    stop (m);
    return 0;
}

/* --- the broker's own services ------------------------------------------------------------------------- */

idt_t *modules_host_builtin (struct modules *ms, const char *name, struct peer *peer)
{
    struct module *m = calloc (1, sizeof (*m));

    if (!m)
        return NULL;
    m->ms = ms;
    snprintf (m->name, sizeof (m->name), "%s", name);
    if (module_make_builtin (m, peer) < 0) {
        module_forget_messages (m);
        idt_close (m->h);
        free (m);
        return NULL;
    }
    ms->builtin = m;
    return m->h;
}

static void close_builtin (struct modules *ms)
{
    if (!ms->builtin)
        return;
    router_peer_remove (ms->conf.router, ms->builtin->peer);
    module_destroy (ms->builtin);
    ms->builtin = NULL;
}

/* --- life ------------------------------------------------------------------------------------------------- */

struct modules *modules_create (const struct modules_conf *conf, idt_error_t *errp)
{
    struct modules *ms = calloc (1, sizeof (*ms));

    if (!ms || !(ms->list = zlistx_new ())
        || !(ms->absents = absents_create (conf->reactor, conf->router, conf->rank))) {
        errprintf (errp, "out of memory");
        goto error;
    }
    ms->conf = *conf;
    TAILQ_INIT (&ms->active);
    ms->owner = geteuid ();
    if (getrandom (&ms->seed, sizeof (ms->seed), GRND_NONBLOCK) < 0)
        ms->seed = (uintptr_t)ms;
    if (attr_size (conf->attrs, "broker.max-json", "2M", 4096, 1 << 30, &ms->max_json, errp) < 0)
        goto error;
    return ms;
error:
    modules_destroy (ms);
    return NULL;
}

void modules_stop (struct modules *ms)
{
    struct module *m;

    if (!ms->absents)
        return;
    absents_stop (ms->absents);
    while ((m = zlistx_last (ms->list))) {
        bool threaded = m->threaded;

        stop (m);
        if (threaded)
            thread_ended (m);
    }
}

void modules_destroy (struct modules *ms)
{
    int saved_errno = errno;

    if (!ms)
        return;
    modules_stop (ms);
    absents_destroy (ms->absents);
    close_builtin (ms);
    zlistx_destroy (&ms->list);
    free (ms);
    errno = saved_errno;
}
