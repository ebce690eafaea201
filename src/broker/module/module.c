/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module.c - modules: find, load, unload, list (RFC 5)
 *
 * A loaded module is a peer of the router and has the service with its name. A module in a thread is in the list until
 * it has ended; a module on the reactor is in the list until it begins to end. thread.c has what only modules in
 * threads need.
 */
#include "config.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "broker/module/private.h"
#include "libidtree/json.h"
#include "libutil/errprintf.h"

#define MAX_MODULES 64 /* largest number of modules of a broker */
#define MAX_ARGS 64    /* largest number of arguments of a module */

/* --- files --------------------------------------------------------------------------------------------------- */

/* Find the file of a module: 'path' itself, or NAME.so in a folder of module.path. The caller frees the result. */
static char *find_file (struct modules *ms, const char *path)
{
    const char *search = attr_get (ms->conf.attrs, "module.path", NULL);
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
    return errset_null (ENOENT);
}

/* Get the name of a module: 'name', or if 'name' is NULL the name of its file without the folder. In both cases without
 * ".so".
 */
static int name_of (const char *file, const char *name, char buf[MODULE_MAX_NAME + 1])
{
    const char *base = strrchr (file, '/');
    size_t len;

    if (!name)
        name = base ? base + 1 : file;
    len = strlen (name);
    if (len > 3 && strcmp (name + len - 3, ".so") == 0)
        len -= 3;
    if (len == 0 || len > MODULE_MAX_NAME || strcspn (name, ". ") < len)
        return -1;
    memcpy (buf, name, len);
    buf[len] = '\0';
    return 0;
}

static struct module *find (struct modules *ms, const char *name)
{
    struct module *m = zlistx_first (ms->list);

    while (m && strcmp (m->name, name) != 0)
        m = zlistx_next (ms->list);
    return m;
}

const char *modules_starting (struct modules *ms)
{
    struct module *m = zlistx_first (ms->list);

    while (m && m->status != MODULE_STARTING)
        m = zlistx_next (ms->list);
    return m ? m->name : NULL;
}

bool modules_has_file (struct modules *ms, const char *path)
{
    char *file = find_file (ms, path);
    bool found = file;

    free (file);
    return found;
}

bool modules_may_define (const char *attribute, void *arg)
{
    struct modules *ms = arg;
    char name[MODULE_MAX_NAME + 1];
    size_t len = strcspn (attribute, "./");

    if (modules_starting (ms))
        return true;
    if (attribute[len] != '.' || len > MODULE_MAX_NAME)
        return false;
    snprintf (name, sizeof (name), "%.*s", (int)len, attribute);
    return !find (ms, name) && modules_has_file (ms, name);
}

static bool is_from (const struct module *m, const char *path)
{
    struct stat own, other;

    return strcmp (m->path, path) == 0
           || (stat (m->path, &own) == 0 && stat (path, &other) == 0 && own.st_dev == other.st_dev
               && own.st_ino == other.st_ino);
}

static bool has_name_of_file (const struct module *m)
{
    char name[MODULE_MAX_NAME + 1];

    return name_of (m->path, NULL, name) == 0 && strcmp (m->name, name) == 0;
}

/* Copy the arguments for the module, without "--thread", which is for the broker. */
static int copy_args (struct module *m, int argc, char **argv, bool *thread)
{
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

/* Report a file that has no idt_mod_main. Flux's broker calls mod_main () with a handle of its own, so a module that
 * has only mod_main is not called.
 */
static int no_module (const struct module *m, idt_error_t *errp)
{
    if (dlsym (m->dso, "mod_main"))
        return errsetf (errp, EINVAL,
                        "%.100s is a module for Flux's broker, not for idtree's: it has mod_main, but no idt_mod_main "
                        "(idtree/module.h)",
                        m->path);
    return errsetf (errp, EINVAL, "%.100s is not a module: it has no idt_mod_main (idtree/module.h)", m->path);
}

static int open_dso (struct module *m, bool thread, idt_error_t *errp)
{
    if (!(m->dso = dlopen (m->path, RTLD_NOW | RTLD_LOCAL)))
        return errsetf (errp, EINVAL, "the file cannot be loaded as a module: %s", dlerror ());
    m->mod_main = (int (*) (idt_t *, int, char **))dlsym (m->dso, "idt_mod_main");
    m->def = dlsym (m->dso, "idt_module");
    if (!m->mod_main)
        return no_module (m, errp);
    m->threaded = thread || !m->def || m->def->threaded;
    m->shared = !thread && m->def && m->def->shared;
    return 0;
}

static int no_file (struct modules *ms, const char *path, idt_error_t *errp)
{
    const char *search = attr_get (ms->conf.attrs, "module.path", NULL);

    if (strchr (path, '/'))
        return errsetf (errp, ENOENT, "the broker finds no such file");
    return errsetf (errp, ENOENT, "module not found in search path: there is no %s.so in %s (module.path)", path,
                    search ? search : "?");
}

static int open_file (struct module *m, const char *path, const char *name, int argc, char **argv, idt_error_t *errp)
{
    bool thread = false;

    if (!(m->path = find_file (m->ms, path)))
        return no_file (m->ms, path, errp);
    if (name_of (m->path, name, m->name) < 0)
        return errsetf (errp, EINVAL, "'%s' is not a valid name for a module", name ? name : path);
    if (find (m->ms, m->name))
        return errsetf (errp, EEXIST, "a module %s is loaded already: remove it first, or give this one another name",
                        m->name);
    if (copy_args (m, argc, argv, &thread) < 0)
        return -1;
    return open_dso (m, thread, errp);
}

/* --- the end of a module ------------------------------------------------------------------------------------- */

void module_destroy (struct module *m)
{
    int saved_errno = errno;

    if (!m)
        return;
    module_detach (m);
    idt_msg_unref (m->loader);
    module_forget_messages (m);
    idt_close (m->h);
    module_thread_fini (m);
    if (m->dso)
        dlclose (m->dso);
    for (int i = 0; i < m->argc; i++)
        free (m->argv[i]);
    free (m->argv);
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

/* Keep the module's handover for its next load. If the module never ran, or was left behind (its thread may still write
 * to 'left'), keep the handover that the module got itself.
 */
static void leave (struct module *m)
{
    if (!m->left_behind && m->left) {
        module_handovers_add_new (m->ms->handovers, m->name, m->left, m->left_size);
        m->left = NULL;
    }
    else
        module_handovers_resume (m->ms->handovers, m->name);
}

void module_forget (struct module *m)
{
    struct modules *ms = m->ms;

    assert (ms && m->peer);
    unlist (m);
    event_forget (ms->conf.event, m->peer);
    router_peer_remove (ms->conf.router, m->peer);
    leave (m);
    if (m->remover)
        idt_respond (ms->builtin->h, m->remover, NULL);
    idt_msg_unref (m->remover);
    m->remover = NULL;
}

/* End a module on the reactor. Its last messages are still passed on, after its earlier ones. modules_turn () also
 * passes on other messages, for example a request that removes this module. So the module is first removed from the
 * list, where such a request could find it.
 */
static void stop_inline (struct module *m)
{
    assert (!m->threaded && !m->stopping);
    unlist (m);
    m->stopping = true;
    m->def->fini (m->h, m->ctx);
    module_detach (m);
    while (modules_turn (m->ms))
        ;
    module_forget (m);
    module_destroy (m);
}

/* Begin to end a module. A module on the reactor is destroyed by this call. */
static void stop (struct module *m)
{
    if (!m->threaded) {
        stop_inline (m);
        return;
    }
    m->stopping = true;
    mailbox_close (m->in);
}

/* --- the start of a module ----------------------------------------------------------------------------------- */

void module_started (struct module *m, int errnum, const char *text)
{
    struct modules *ms = m->ms;

    assert (ms && !m->left_behind);
    m->status = errnum == 0 ? MODULE_RUNNING : MODULE_ENDED;
    if (errnum == 0)
        module_handovers_end (ms->handovers, m->name);
    free (m->kept_copy); /* the handover is not used after the start */
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

static int start (struct module *m, idt_error_t *errp)
{
    if (module_make_peer (m) < 0 || router_service_add (m->ms->conf.router, m->name, m->peer) < 0)
        return errno == EEXIST ? errprintf (errp, "service %s already exists", m->name)
                               : errprintf (errp, "service %s cannot be registered: %s", m->name, strerror (errno));
    if (module_make_handle (m) < 0)
        return errprintf (errp, "cannot make a handle: %s", strerror (errno));
    return m->threaded ? module_thread_start (m, errp) : m->def->init (m->h, m->argc, m->argv, &m->ctx, errp);
}

/* Get the handover of the last load. A module in a thread gets a copy, because it may be left behind before it has
 * started.
 */
static int get_kept (struct module *m)
{
    m->kept = module_handovers_pause (m->ms->handovers, m->name, &m->kept_size);
    if (!m->threaded || !m->kept)
        return 0;
    if (!(m->kept_copy = malloc (m->kept_size)))
        return -1;
    m->kept = memcpy (m->kept_copy, m->kept, m->kept_size);
    return 0;
}

static int load (struct module *m, const char *path, const char *name, int argc, char **argv, idt_error_t *errp)
{
    if (open_file (m, path, name, argc, argv, errp) < 0)
        return -1;
    if (get_kept (m) < 0 || start (m, errp) < 0) {
        int saved_errno = errno;

        router_peer_remove (m->ms->conf.router, &m->own);
        module_handovers_resume (m->ms->handovers, m->name);
        return errset (saved_errno);
    }
    return 0;
}

/* Add a module to the list, and subscribe it to the event NAME.stats-clear, with which a client clears the counters of
 * all ranks together.
 */
static void add (struct module *m)
{
    struct modules *ms = m->ms;
    char topic[MODULE_MAX_NAME + 16];

    zlistx_add_end (ms->list, m);
    if (m->status != MODULE_STARTING)
        module_handovers_end (ms->handovers, m->name);
    snprintf (topic, sizeof (topic), "%s.stats-clear", m->name);
    event_subscribe (ms->conf.event, m->peer, (struct idt_cred){ ms->owner, IDT_ROLE_OWNER }, topic);
    log_printf (ms->conf.log, LOG_DEBUG, "module", "%s is loaded from %s", m->name, m->path);
}

int modules_load (struct modules *ms, const idt_msg_t *request, const char *path, const char *name, int argc,
                  char **argv, idt_error_t *errp)
{
    struct module *m;

    if (zlistx_size (ms->list) >= MAX_MODULES)
        return errsetf (errp, ENOSPC, "%d modules are loaded, which is the limit", MAX_MODULES);
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

/* --- module.list, module.load, module.remove ----------------------------------------------------------------- */

static void append_service (const char *name, void *arg)
{
    json_add_new (arg, json_string (name));
}

static json_t *describe (struct module *m)
{
    json_t *services = json_array ();

    router_service_foreach (m->ms->conf.router, m->peer, append_service, &services);
    return json_pack ("{s:s s:s s:i s:i s:o s:i s:i}", "name", m->name, "path", m->path, "idle",
                      (int)(module_now () - m->used), "status", m->stopping ? MODULE_STOPPING : m->status, "services",
                      services, "sendqueue", m->out ? (int)mailbox_count (m->out) : 0, "recvqueue",
                      m->in ? (int)mailbox_count (m->in) : 0);
}

static void list_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct modules *ms = arg;
    json_t *mods = json_array ();

    for (struct module *m = zlistx_first (ms->list); m; m = zlistx_next (ms->list))
        json_add_new (&mods, describe (m));
    idt_respond_pack (h, msg, "{s:o}", "mods", mods);
}

/* Get the strings of a JSON array, in 'argv' (borrowed). Returns their number, or -1 with 'errp' filled. */
static int get_args (json_t *args, char *argv[MAX_ARGS], idt_error_t *errp)
{
    size_t n = args ? json_array_size (args) : 0;

    errno = EPROTO;
    if (args && !json_is_array (args))
        return errprintf (errp, "args must be an array of strings");
    if (n > MAX_ARGS)
        return errprintf (errp, "%zu arguments are too many: the limit is %d", n, MAX_ARGS);
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
    if ((argc = get_args (args, argv, &err)) < 0 || modules_load (arg, msg, path, name, argc, argv, &err) < 0)
        idt_respond_error (h, msg, errno, err.text[0] ? err.text : NULL);
    json_decref (o);
}

/* Find a module by its name or by the path of its file. If several modules have this file, the one with the name of the
 * file is found, else the oldest.
 */
static struct module *find_to_remove (struct modules *ms, const char *name)
{
    struct module *found = NULL;

    if (!strchr (name, '/'))
        return find (ms, name);
    for (struct module *m = zlistx_first (ms->list); m; m = zlistx_next (ms->list))
        if (is_from (m, name) && (!found || has_name_of_file (m)))
            found = m;
    return found;
}

static int remove_module (struct modules *ms, const char *name, const idt_msg_t *request)
{
    struct module *m = find_to_remove (ms, name);

    if (!m || m->stopping)
        return errset (ENOENT);
    m->remover = idt_msg_ref (request);
    stop (m);
    return 0;
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
        idt_respond_error (h, msg, errno, "no such module is loaded (idtree module list shows the loaded ones)");
    json_decref (o);
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST, "module.list", list_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "module.load", load_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "module.remove", remove_cb, 0 },
    IDT_HANDLERS_END,
};

int modules_serve (struct modules *ms, idt_t *h)
{
    return idt_handlers_add (h, handlers, ms);
}

/* --- figures ------------------------------------------------------------------------------------------------- */

void modules_each_telling (struct modules *ms, bool brief, void (*each) (const char *name, void *arg), void *arg)
{
    for (struct module *m = zlistx_first (ms->list); m; m = zlistx_next (ms->list))
        if (m->status == MODULE_RUNNING && !m->stopping && !m->tells_nothing && !(brief && m->quiet)) {
            m->asked_at = m->given;
            each (m->name, arg);
        }
}

/* A quiet module stays quiet only if it has got no message since it was asked, except the request for figures. */
void modules_told (struct modules *ms, const char *name, enum module_report report)
{
    struct module *m = find (ms, name);

    if (!m)
        return;
    m->tells_nothing = m->tells_nothing || report == MODULES_NOTHING;
    m->quiet = report == MODULES_QUIET && m->given == m->asked_at + 1;
}

/* --- life ---------------------------------------------------------------------------------------------------- */

idt_t *modules_host_builtin (struct modules *ms, struct peer *peer)
{
    struct module *m = calloc (1, sizeof (*m));

    if (!m)
        return NULL;
    m->ms = ms;
    strcpy (m->name, "broker");
    if (module_make_builtin (m, peer) < 0) {
        module_destroy (m);
        return NULL;
    }
    ms->builtin = m;
    return m->h;
}

struct modules *modules_create (const struct modules_conf *conf, idt_error_t *errp)
{
    struct modules *ms = calloc (1, sizeof (*ms));

    if (!ms || !(ms->list = zlistx_new ())
        || !(ms->handovers = module_handovers_create (conf->reactor, conf->router, conf->rank))) {
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

    if (!ms->handovers)
        return;
    module_handovers_stop (ms->handovers);
    while ((m = zlistx_last (ms->list))) {
        bool threaded = m->threaded;

        stop (m);
        if (threaded)
            module_thread_end (m);
    }
}

static void close_builtin (struct modules *ms)
{
    if (!ms->builtin)
        return;
    router_peer_remove (ms->conf.router, ms->builtin->peer);
    module_destroy (ms->builtin);
    ms->builtin = NULL;
}

void modules_destroy (struct modules *ms)
{
    int saved_errno = errno;

    if (!ms)
        return;
    modules_stop (ms);
    module_handovers_destroy (ms->handovers);
    close_builtin (ms);
    zlistx_destroy (&ms->list);
    free (ms);
    errno = saved_errno;
}
