/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* echo.c - a module for tests, in a thread of its own
 *
 *   echo.echo   {...}         returns the same object
 *   echo.ask    {"topic":s}   sends a request to that service, waits for the answer, and returns {"errnum":i}
 *   echo.hold                 is answered with ECANCELED when the module ends
 *   echo.event  {"topic":s}   publishes that event
 *   echo.end    {"errnum":i}  ends the module: with this error, unless errnum is 0
 *
 * With the argument "fail" the module does not start.
 */
#include <errno.h>
#include <string.h>

#include <idtree/idtree.h>

#define MAX_HELD 64

struct echo {
    const idt_msg_t *held[MAX_HELD];
    int count;
    int errnum;
};

static void echo_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    const char *s = idt_msg_string (msg);

    idt_respond (h, msg, s ? s : "{}");
}

static void ask_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    idt_future_t *f;
    const char *topic;
    json_t *o;
    int errnum = 0;

    if (idt_msg_unpack (msg, &o, NULL, "{s:s}", "topic", &topic) < 0) {
        idt_respond_error (h, msg, EPROTO, NULL);
        return;
    }
    if (!(f = idt_rpc (h, topic, "{}", IDT_NODEID_ANY, 0)) || idt_rpc_get (f, NULL) < 0)
        errnum = errno;
    idt_future_destroy (f);
    idt_respond_pack (h, msg, "{s:i}", "errnum", errnum);
    json_decref (o);
}

static void hold_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct echo *e = arg;

    if (e->count < MAX_HELD)
        e->held[e->count++] = idt_msg_ref (msg);
}

static void event_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    const char *topic;
    json_t *o;

    if (idt_msg_unpack (msg, &o, NULL, "{s:s}", "topic", &topic) < 0)
        return;
    idt_future_destroy (idt_event_publish (h, topic, 0, NULL));
    idt_respond (h, msg, NULL);
    json_decref (o);
}

static void end_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct echo *e = arg;
    json_t *o;

    if (idt_msg_unpack (msg, &o, NULL, "{s:i}", "errnum", &e->errnum) == 0)
        json_decref (o);
    idt_respond (h, msg, NULL);
    idt_reactor_stop (idt_get_reactor (h));
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST, "echo.echo", echo_cb, 0 }, { IDT_MSGTYPE_REQUEST, "echo.ask", ask_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "echo.hold", hold_cb, 0 }, { IDT_MSGTYPE_REQUEST, "echo.event", event_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "echo.end", end_cb, 0 },   IDT_HANDLERS_END,
};

int idt_mod_main (idt_t *h, int argc, char **argv)
{
    struct echo e = { .count = 0 };

    if (argc > 0 && strcmp (argv[0], "fail") == 0) {
        errno = EINVAL;
        return -1;
    }
    if (idt_handlers_add (h, handlers, &e) < 0)
        return -1;
    idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_DEFAULT);
    while (e.count > 0) {
        idt_respond_error (h, e.held[--e.count], ECANCELED, "the module ends");
        idt_msg_unref (e.held[e.count]);
    }
    errno = e.errnum;
    return e.errnum ? -1 : 0;
}
