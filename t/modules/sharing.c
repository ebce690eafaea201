/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sharing.c - a module for tests, in a thread that several modules share. It may be loaded under any name:
 *
 *   NAME.echo  {...}       returns the same object
 *   NAME.thread            returns {"thread":i}, its thread
 *   NAME.work  {"path":s}  computes until that file exists
 *   NAME.later             answers from a timer
 *   NAME.attr  {"name":s}  returns {"value":s} of an attribute
 *   NAME.hold              is answered with ECANCELED when the module ends
 *   NAME.end               ends the module
 *
 * With the argument "fail" the module does not start. If the attribute sharing.start-at names a file, the module starts
 * only after this file exists.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <idtree/idtree.h>

struct sharing {
    idt_t *h;
    const idt_msg_t *held;
    const idt_msg_t *later;
    idt_watcher_t *timer;
};

static void echo_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    const char *s = idt_msg_string (msg);

    idt_respond (h, msg, s ? s : "{}");
}

static void thread_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    idt_respond_pack (h, msg, "{s:i}", "thread", (int)syscall (SYS_gettid));
}

static void work_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    const char *path;
    json_t *o;

    if (idt_msg_unpack (msg, &o, NULL, "{s:s}", "path", &path) < 0) {
        idt_respond_error (h, msg, EPROTO, NULL);
        return;
    }
    while (access (path, F_OK) < 0)
        ;
    idt_respond (h, msg, NULL);
    json_decref (o);
}

static void timer_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct sharing *x = arg;

    idt_respond (x->h, x->later, NULL);
    idt_msg_unref (x->later);
    x->later = NULL;
}

static void later_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct sharing *x = arg;

    idt_msg_unref (x->later);
    x->later = idt_msg_ref (msg);
    idt_timer_watcher_reset (x->timer, 1, 0);
    idt_watcher_start (x->timer);
}

static void attr_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    const char *name, *value = NULL;
    json_t *o;

    if (idt_msg_unpack (msg, &o, NULL, "{s:s}", "name", &name) == 0 && (value = idt_attr_get (h, name)))
        idt_respond_pack (h, msg, "{s:s}", "value", value);
    else
        idt_respond_error (h, msg, errno, NULL);
    json_decref (o);
}

static void hold_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct sharing *x = arg;

    if (x->held)
        idt_respond_error (h, msg, EBUSY, NULL);
    else
        x->held = idt_msg_ref (msg);
}

static void end_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    idt_respond (h, msg, NULL);
    idt_reactor_stop (idt_get_reactor (h));
}

/* Select the function by the method, because the module may have any name. */
static void request_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    static const struct {
        const char *name;
        void (*cb) (idt_t *h, const idt_msg_t *msg, void *arg);
    } methods[] = {
        { ".echo", echo_cb }, { ".thread", thread_cb }, { ".work", work_cb }, { ".later", later_cb },
        { ".attr", attr_cb }, { ".hold", hold_cb },     { ".end", end_cb },
    };
    const char *method = strrchr (idt_msg_topic (msg), '.');

    for (size_t i = 0; i < sizeof (methods) / sizeof (methods[0]); i++)
        if (method && strcmp (method, methods[i].name) == 0) {
            methods[i].cb (h, msg, arg);
            return;
        }
    idt_respond_error (h, msg, ENOSYS, NULL);
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST, "*", request_cb, 0 },
    IDT_HANDLERS_END,
};

static int init (idt_t *h, int argc, char **argv, void **ctx, idt_error_t *errp)
{
    const char *path = idt_attr_get (h, "sharing.start-at");
    struct sharing *x;

    while (path && access (path, F_OK) < 0)
        ;
    if (argc > 0 && strcmp (argv[0], "fail") == 0) {
        strcpy (errp->text, "the argument 'fail' was given");
        errno = EDOM;
        return -1;
    }
    if (!(x = calloc (1, sizeof (*x)))
        || !(x->timer = idt_timer_watcher_create (idt_get_reactor (h), 1, 0, timer_cb, x)))
        abort ();
    x->h = h;
    *ctx = x;
    return idt_attr_define (h, "sharing.known", "as defined") ? idt_handlers_add (h, handlers, x) : -1;
}

static void fini (idt_t *h, void *ctx)
{
    struct sharing *x = ctx;

    if (x->held)
        idt_respond_error (h, x->held, ECANCELED, "the module ends");
    idt_msg_unref (x->held);
    idt_msg_unref (x->later);
    idt_watcher_destroy (x->timer);
    idt_attr_get (h, "sharing.known"); /* a module may send requests until its end */
    free (x);
}

IDT_MODULE_SHARED ("sharing", init, fini)
