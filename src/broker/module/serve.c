/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* serve.c - module.list, module.load, module.remove */
#include "config.h"

#include <errno.h>

#include "broker/module/private.h"
#include "libidtree/json_build.h"
#include "libutil/errprintf.h"

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

/* The strings of a JSON array, in 'argv' (borrowed). Returns their number, or -1 with 'errp' filled. */
static int get_args (json_t *args, char *argv[MODULE_MAX_ARGS], idt_error_t *errp)
{
    size_t n = args ? json_array_size (args) : 0;

    errno = EPROTO;
    if (args && !json_is_array (args))
        return errprintf (errp, "args must be an array of strings");
    if (n > MODULE_MAX_ARGS)
        return errprintf (errp, "%zu arguments are too many: the limit is %d", n, MODULE_MAX_ARGS);
    for (size_t i = 0; i < n; i++)
        if (!(argv[i] = (char *)json_string_value (json_array_get (args, i))))
            return errprintf (errp, "args must be an array of strings");
    return n;
}

static void load_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    const char *path, *name = NULL;
    json_t *o, *args = NULL;
    char *argv[MODULE_MAX_ARGS];
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

static void remove_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    const char *name;
    idt_error_t err;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s:s}", "name", &name) < 0) {
        idt_respond_error (h, msg, EPROTO, err.text);
        return;
    }
    if (modules_remove (arg, name, msg) < 0)
        idt_respond_error (h, msg, errno, "no such module is loaded (idtree module list shows the loaded ones)");
    json_decref (o);
}

void modules_each_telling (struct modules *ms, bool brief, void (*each) (const char *name, void *arg), void *arg)
{
    for (struct module *m = zlistx_first (ms->list); m; m = zlistx_next (ms->list))
        if (m->status == MODULE_RUNNING && !m->stopping && !m->tells_nothing && !(brief && m->quiet)) {
            m->asked_at = m->given;
            each (m->name, arg);
        }
}

/* A quiet module has got no message since, except the request for figures. */
void modules_told (struct modules *ms, const char *name, enum module_report report)
{
    struct module *m = modules_find (ms, name);

    if (!m)
        return;
    m->tells_nothing = m->tells_nothing || report == MODULES_NOTHING;
    m->quiet = report == MODULES_QUIET && m->given == m->asked_at + 1;
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
