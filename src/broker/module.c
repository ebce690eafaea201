/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module.c - modules: load, host, unload (RFC 5)
 *
 * Inline: messages to and from the handle pass through one queue, so that neither the router nor the module is ever
 * entered from inside itself; modules_turn () empties it before the reactor sleeps.  In a thread: two mailboxes; closing
 * the one to the module asks it to end, its closing the other says that it has.
 */
#include "config.h"

#include <czmq.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "broker/module.h"
#include "libidtree/transport.h"
#include "libutil/errprintf.h"
#include "libutil/mailbox.h"

#define MAILBOX_LIMIT 100000 /* messages that wait for one module */
#define QUEUE_LIMIT 1000000  /* messages that wait for inline modules */
#define TURN_BUDGET 1000     /* messages handed on before sockets get their turn */
#define JOIN_TIMEOUT 5       /* seconds that a thread may take to end */
#define MAX_ARGS 64
#define MAX_NAME 64

struct module {
    struct peer own; /* of the router, unless it is the broker's own */
    struct peer *peer;
    struct modules *ms;
    char name[MAX_NAME + 1];
    char *path;
    void *dso;
    idt_t *h;
    const struct idt_module *inline_def; /* NULL: in a thread */
    bool attached;                       /* to the overlay */
    bool stopping;                       /* gets no more messages, is not found any more */
    void *ctx;
    double used; /* when it last sent or received, seconds */
    uint64_t sent, received;
    /* in a thread */
    struct mailbox *in; /* to the module */
    struct mailbox *out;
    idt_watcher_t *w;
    pthread_t thread;
    bool started;
    const idt_msg_t *remover; /* request to unload it, answered when it is gone */
    int (*mod_main) (idt_t *h, int argc, char **argv);
    int argc;
    char **argv;
};

/* A message on its way to an inline module, or from it. */
struct parcel {
    struct module *m;
    const idt_msg_t *msg;
    bool from_module;
};

struct modules {
    idt_reactor_t *reactor;
    struct attrs *attrs;
    struct router *router;
    struct log *log;
    const struct modules_ops *ops;
    void *arg;
    zlistx_t *list;
    struct module *builtin;
    struct parcel *queue; /* a ring */
    size_t queue_size;
    size_t head, count;
};

static double now (void)
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

static int enqueue (struct module *m, const idt_msg_t *msg, bool from_module)
{
    struct modules *ms = m->ms;

    if (ms->count == ms->queue_size && queue_grow (ms) < 0)
        return -1;
    ms->queue[(ms->head + ms->count++) % ms->queue_size] = (struct parcel){ m, idt_msg_ref (msg), from_module };
    return 0;
}

/* A module that goes takes what waits for it along; what it sent goes on. */
static void queue_forget (struct modules *ms, struct module *m)
{
    for (size_t i = 0; i < ms->count; i++) {
        struct parcel *p = &ms->queue[(ms->head + i) % ms->queue_size];

        if (p->m == m) {
            p->m = NULL;
            idt_msg_unref (p->msg);
        }
    }
}

/* What a module sends comes from the owner, here, unless it says otherwise. */
static void stamp (idt_msg_t *msg)
{
    struct idt_cred cred = idt_msg_cred (msg);

    if (cred.userid == IDT_USERID_UNKNOWN)
        cred.userid = geteuid ();
    if (cred.rolemask == IDT_ROLE_NONE)
        cred.rolemask = IDT_ROLE_OWNER | IDT_ROLE_LOCAL;
    idt_msg_set_cred (msg, cred);
}

/* A message that a module sent (steals the reference, which is the only one by now). */
static void from_module (struct module *m, idt_msg_t *msg)
{
    struct modules *ms = m->ms;

    m->sent++;
    m->used = now ();
    stamp (msg);
    ms->ops->message (ms->arg, m->peer, msg);
}

static void to_module (struct module *m, const idt_msg_t *msg)
{
    m->received++;
    m->used = now ();
    idt_handle_dispatch (m->h, msg);
    idt_msg_unref (msg);
}

bool modules_turn (struct modules *ms)
{
    int n = 0;

    for (; ms->count > 0 && n < TURN_BUDGET; n++) {
        struct parcel p = ms->queue[ms->head];

        ms->head = (ms->head + 1) % ms->queue_size;
        ms->count--;
        if (p.m && p.from_module)
            from_module (p.m, (idt_msg_t *)p.msg);
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
    return enqueue (impl, msg, true);
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

/* Before the code that the overlay would call is gone. */
static void detach (struct module *m)
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

static const struct idt_transport thread_transport = {
    .send = thread_send,
    .recv = thread_recv,
    .pollfd = thread_pollfd,
    .destroy = no_destroy,
};

/* --- the router's way to a module --------------------------------------------------------------------- */

static int inline_peer_send (void *arg, const idt_msg_t *msg)
{
    return enqueue (arg, msg, false);
}

static int thread_peer_send (void *arg, const idt_msg_t *msg)
{
    struct module *m = arg;

    m->received++;
    m->used = now ();
    if (mailbox_push_new (m->in, idt_msg_ref (msg)) < 0) {
        idt_msg_unref (msg);
        return -1;
    }
    return 0;
}

/* --- the end of a module -------------------------------------------------------------------------------- */

static void free_args (struct module *m)
{
    for (int i = 0; i < m->argc; i++)
        free (m->argv[i]);
    free (m->argv);
}

static void module_destroy (struct module *m)
{
    if (!m)
        return;
    detach (m);
    idt_watcher_destroy (m->w);
    if (m->ms->queue)
        queue_forget (m->ms, m);
    idt_close (m->h);
    mailbox_destroy (m->in);
    mailbox_destroy (m->out);
    if (m->dso)
        dlclose (m->dso);
    free_args (m);
    free (m->path);
    free (m);
}

static void unlist (struct module *m)
{
    void *handle = zlistx_find (m->ms->list, m);

    if (handle)
        zlistx_delete (m->ms->list, handle);
}

static void forget (struct module *m)
{
    struct modules *ms = m->ms;

    unlist (m);
    ms->ops->gone (ms->arg, m->peer);
    router_peer_remove (ms->router, m->peer);
    if (m->remover)
        idt_respond (ms->builtin->h, m->remover, NULL);
    idt_msg_unref (m->remover);
    m->remover = NULL;
}

/* What it said in its last moments still goes out, in order with what it said before.  Other messages are handed on
 * meanwhile, so nobody may find it a second time.
 */
static void stop_inline (struct module *m)
{
    unlist (m);
    m->stopping = true;
    m->inline_def->fini (m->h, m->ctx);
    detach (m);
    while (modules_turn (m->ms))
        ;
    forget (m);
    module_destroy (m);
}

/* Wait for the thread.  One that does not end is left alone, with all that it uses, to end with the process. */
static bool join (struct module *m, void **result)
{
    struct timespec until;

    clock_gettime (CLOCK_REALTIME, &until);
    until.tv_sec += JOIN_TIMEOUT;
    if (pthread_timedjoin_np (m->thread, result, &until) == 0)
        return true;
    log_printf (m->ms->log, LOG_ERR, "module", "%s does not end: it is left behind", m->name);
    return false;
}

static void thread_ended (struct module *m)
{
    const idt_msg_t *msg;
    void *result;

    if (!join (m, &result)) {
        idt_watcher_stop (m->w);
        forget (m);
        return;
    }
    while ((msg = mailbox_pop (m->out)))
        from_module (m, (idt_msg_t *)msg);
    if (result)
        log_printf (m->ms->log, LOG_ERR, "module", "%s ended with an error: %s", m->name,
                    strerror ((int)(intptr_t)result));
    forget (m);
    module_destroy (m);
}

static void thread_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct module *m = arg;
    const idt_msg_t *msg;

    for (int n = 0; n < TURN_BUDGET; n++) {
        if (!(msg = mailbox_pop (m->out))) {
            if (errno == EPIPE)
                thread_ended (m);
            return;
        }
        from_module (m, (idt_msg_t *)msg);
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

/* --- loading ---------------------------------------------------------------------------------------------- */

static struct module *find (struct modules *ms, const char *name)
{
    struct module *m = zlistx_first (ms->list);

    while (m && strcmp (m->name, name) != 0)
        m = zlistx_next (ms->list);
    return m;
}

/* The file of a module: 'path' itself, or NAME.so in a folder of module.path.  The caller frees it. */
static char *find_file (struct modules *ms, const char *path)
{
    const char *search = attr_get (ms->attrs, "module.path", NULL);
    char *file;

    if (strchr (path, '/'))
        return access (path, R_OK) == 0 ? strdup (path) : NULL;
    while (search && *search) {
        int len = strcspn (search, ":");

        if (asprintf (&file, "%.*s/%s.so", len, search, path) < 0)
            return NULL;
        if (access (file, R_OK) == 0)
            return file;
        free (file);
        search += len + (search[len] == ':');
    }
    errno = ENOENT;
    return NULL;
}

/* The name of a module: its file's without folder and ".so". */
static int name_of (const char *file, const char *name, char buf[MAX_NAME + 1])
{
    const char *base = strrchr (file, '/');
    size_t len;

    if (!name)
        name = base ? base + 1 : file;
    len = strlen (name);
    if (len > 3 && strcmp (name + len - 3, ".so") == 0)
        len -= 3;
    if (len == 0 || len > MAX_NAME || strcspn (name, ". ") < len)
        return -1;
    memcpy (buf, name, len);
    buf[len] = '\0';
    return 0;
}

/* Copy the arguments that are the module's; "--thread" is ours. */
static int copy_args (struct module *m, int argc, char **argv, bool *thread)
{
    *thread = false;
    if (!(m->argv = calloc (argc + 1, sizeof (m->argv[0]))))
        return -1;
    for (int i = 0; i < argc; i++) {
        if (strcmp (argv[i], "--thread") == 0)
            *thread = true;
        else if (!(m->argv[m->argc++] = strdup (argv[i])))
            return -1;
    }
    return 0;
}

static int open_dso (struct module *m, idt_error_t *errp)
{
    if (!(m->dso = dlopen (m->path, RTLD_NOW | RTLD_LOCAL))) {
        errno = EINVAL;
        return errprintf (errp, "%s", dlerror ());
    }
    m->mod_main = (int (*) (idt_t *, int, char **))dlsym (m->dso, "mod_main");
    m->inline_def = dlsym (m->dso, "idt_module");
    if (!m->mod_main) {
        errno = EINVAL;
        return errprintf (errp, "%s is not a module: it has no mod_main", m->path);
    }
    return 0;
}

static int make_peer (struct module *m)
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

static int make_handle (struct module *m)
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

static int start_thread (struct module *m, idt_error_t *errp)
{
    int rc;

    if (!(m->w = idt_fd_watcher_create (m->ms->reactor, mailbox_pollfd (m->out), IDT_POLLIN, thread_cb, m)))
        return errprintf (errp, "out of memory");
    if ((rc = pthread_create (&m->thread, NULL, thread_main, m)) != 0) {
        errno = rc;
        return errprintf (errp, "cannot start a thread: %s", strerror (rc));
    }
    m->started = true;
    idt_watcher_start (m->w);
    return 0;
}

static int start (struct module *m, idt_error_t *errp)
{
    if (make_peer (m) < 0 || router_service_add (m->ms->router, m->name, m->peer) < 0)
        return errprintf (errp, "service %s is taken already", m->name);
    if (make_handle (m) < 0)
        return errprintf (errp, "no handle: %s", strerror (errno));
    if (m->inline_def)
        return m->inline_def->init (m->h, m->argc, m->argv, &m->ctx, errp);
    return start_thread (m, errp);
}

int modules_load (struct modules *ms, const char *path, const char *name, int argc, char **argv, idt_error_t *errp)
{
    struct module *m;
    bool thread;

    if (zlistx_size (ms->list) >= MODULES_MAX) {
        errno = ENOSPC;
        return errprintf (errp, "%d modules are loaded, that is the limit", MODULES_MAX);
    }
    if (!(m = calloc (1, sizeof (*m))))
        return errprintf (errp, "out of memory");
    m->ms = ms;
    m->used = now ();
    if (!(m->path = find_file (ms, path))) {
        errno = ENOENT;
        errprintf (errp, "module not found in search path");
        goto error;
    }
    if (name_of (m->path, name, m->name) < 0) {
        errno = EINVAL;
        errprintf (errp, "'%s' is no name for a module", name ? name : path);
        goto error;
    }
    if (find (ms, m->name)) {
        errno = EEXIST;
        goto error;
    }
    if (copy_args (m, argc, argv, &thread) < 0 || open_dso (m, errp) < 0)
        goto error;
    if (thread)
        m->inline_def = NULL;
    if (start (m, errp) < 0) {
        int saved_errno = errno;

        router_peer_remove (ms->router, &m->own);
        errno = saved_errno;
        goto error;
    }
    zlistx_add_end (ms->list, m);
    ms->ops->loaded (ms->arg, m->peer, m->name);
    log_printf (ms->log, LOG_DEBUG, "module", "%s is loaded from %s", m->name, m->path);
    return 0;
error:;
    int saved_errno = errno;

    module_destroy (m);
    errno = saved_errno;
    return -1;
}

/* Begin to unload; 'request' is answered when the module is gone.  Returns 0, or -1 with errno ENOENT. */
static int remove_module (struct modules *ms, const char *name, const idt_msg_t *request)
{
    struct module *m = find (ms, name);

    if (!m || m->stopping) {
        errno = ENOENT;
        return -1;
    }
    m->remover = idt_msg_ref (request);
    if (m->inline_def)
        stop_inline (m);
    else {
        m->stopping = true;
        mailbox_close (m->in);
    }
    return 0;
}

/* --- the broker's own services ------------------------------------------------------------------------- */

idt_t *modules_host_builtin (struct modules *ms, const char *name, struct peer *peer)
{
    struct module *m = calloc (1, sizeof (*m));

    if (!m)
        return NULL;
    m->ms = ms;
    m->peer = peer;
    snprintf (m->name, sizeof (m->name), "%s", name);
    peer->kind = PEER_BUILTIN;
    peer->send = inline_peer_send;
    peer->arg = m;
    if (!(m->h = idt_handle_create (&inline_transport, m)) || idt_handle_set_module (m->h, m->name) < 0
        || idt_set_reactor (m->h, ms->reactor) < 0) {
        idt_close (m->h);
        free (m);
        return NULL;
    }
    ms->builtin = m;
    return m->h;
}

void modules_close_builtin (struct modules *ms)
{
    if (!ms->builtin)
        return;
    router_peer_remove (ms->router, ms->builtin->peer);
    module_destroy (ms->builtin);
    ms->builtin = NULL;
}

/* --- service --------------------------------------------------------------------------------------------- */

static void append_service (const char *name, void *arg)
{
    json_array_append_new (arg, json_string (name));
}

static json_t *describe (struct module *m)
{
    json_t *services = json_array ();

    router_service_foreach (m->ms->router, m->peer, append_service, services);
    return json_pack ("{s:s s:s s:i s:i s:o s:i s:i}", "name", m->name, "path", m->path, "idle",
                      (int)(now () - m->used), "status", 1, "services", services, "sendqueue",
                      m->out ? (int)mailbox_count (m->out) : 0, "recvqueue", m->in ? (int)mailbox_count (m->in) : 0);
}

static void list_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct modules *ms = arg;
    json_t *mods = json_array ();

    for (struct module *m = zlistx_first (ms->list); m; m = zlistx_next (ms->list))
        json_array_append_new (mods, describe (m));
    idt_respond_pack (h, msg, "{s:o}", "mods", mods);
}

/* The strings of a JSON array in 'argv' (borrowed).  Returns their number, or -1 with 'errp' filled. */
static int get_args (json_t *args, char *argv[MAX_ARGS], idt_error_t *errp)
{
    size_t n = args ? json_array_size (args) : 0;

    errno = EPROTO;
    if (args && !json_is_array (args))
        return errprintf (errp, "args must be an array of strings");
    if (n > MAX_ARGS)
        return errprintf (errp, "%zu arguments are too many: at most %d", n, MAX_ARGS);
    for (size_t i = 0; i < n; i++)
        if (!(argv[i] = (char *)json_string_value (json_array_get (args, i))))
            return errprintf (errp, "args must be an array of strings");
    return n;
}

static void load_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    const char *path, *name = NULL;
    json_t *o, *args = NULL;
    char *argv[MAX_ARGS];
    idt_error_t err = { "" };
    int argc;

    if (idt_msg_unpack (msg, &o, &err, "{s:s s?s s?o}", "path", &path, "name", &name, "args", &args) < 0) {
        idt_respond_error (h, msg, EPROTO, err.text);
        return;
    }
    if ((argc = get_args (args, argv, &err)) < 0 || modules_load (arg, path, name, argc, argv, &err) < 0)
        idt_respond_error (h, msg, errno, err.text[0] ? err.text : NULL);
    else
        idt_respond (h, msg, NULL);
    json_decref (o);
}

static void remove_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    const char *name;
    idt_error_t err;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s:s}", "name", &name) < 0) {
        idt_respond_error (h, msg, EPROTO, err.text);
        return;
    }
    if (remove_module (arg, name, msg) < 0)
        idt_respond_error (h, msg, errno, NULL);
    json_decref (o);
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST, "module.list", list_cb, IDT_ROLE_ALL },
    { IDT_MSGTYPE_REQUEST, "module.load", load_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "module.remove", remove_cb, 0 },
    IDT_HANDLERS_END,
};

int modules_serve (struct modules *ms, idt_t *h)
{
    return idt_handlers_add (h, handlers, ms);
}

/* --- life ------------------------------------------------------------------------------------------------- */

struct modules *modules_create (idt_reactor_t *r, struct attrs *attrs, struct router *router, struct log *log,
                                const struct modules_ops *ops, void *arg, idt_error_t *errp)
{
    struct modules *ms = calloc (1, sizeof (*ms));

    if (!ms || !(ms->list = zlistx_new ())) {
        free (ms);
        errprintf (errp, "out of memory");
        return NULL;
    }
    ms->reactor = r;
    ms->attrs = attrs;
    ms->router = router;
    ms->log = log;
    ms->ops = ops;
    ms->arg = arg;
    return ms;
}

/* Ask a module to end and wait for it. */
static void stop_now (struct module *m)
{
    if (m->inline_def)
        stop_inline (m);
    else {
        mailbox_close (m->in);
        thread_ended (m);
    }
}

void modules_stop (struct modules *ms)
{
    struct module *m;

    while ((m = zlistx_last (ms->list)))
        stop_now (m);
}

void modules_destroy (struct modules *ms)
{
    int saved_errno = errno;

    if (!ms)
        return;
    modules_stop (ms);
    modules_close_builtin (ms);
    for (; ms->count > 0; ms->count--, ms->head++)
        if (ms->queue[ms->head % ms->queue_size].m)
            idt_msg_unref (ms->queue[ms->head % ms->queue_size].msg);
    free (ms->queue);
    zlistx_destroy (&ms->list);
    free (ms);
    errno = saved_errno;
}
