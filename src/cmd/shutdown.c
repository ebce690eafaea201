/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* shutdown.c - idtree shutdown: stop the instance, leaves first
 *
 * Done is when the connection to the broker is closed.  An instance of many ranks may take long to stop; so the broker
 * is asked again and again whether it is there, and the command gives up when it says nothing.
 */
#include <errno.h>
#include <string.h>

#include <idtree/reactor.h>
#include <idtree/rpc.h>

#include "cmd/base/ask.h"
#include "cmd/base/commands.h"

#define ASK_AGAIN_MS 1000

struct stop {
    struct cmd *cmd;
    bool lost;
    idt_watcher_t *timer; /* until it is asked again */
};

static void lost_cb (idt_t *h, int errnum, void *arg)
{
    struct stop *s = arg;

    s->lost = true;
    idt_reactor_stop (idt_get_reactor (h));
}

static void answer_cb (idt_future_t *f, void *arg)
{
    struct cmd *cmd = arg;

    if (idt_future_errnum (f) == ETIMEDOUT)
        ask_blame (cmd, "rank 0 is asked to stop the instance");
    if (idt_future_errnum (f) && idt_future_errnum (f) != ECONNRESET && idt_future_errnum (f) != EPIPE)
        cmd_die (cmd, "%s", idt_future_error (f));
    idt_future_destroy (f);
}

/* It is there yet, or does not know how to say so any more. */
static void alive_cb (idt_future_t *f, void *arg)
{
    struct stop *s = arg;

    if (idt_future_errnum (f) == ETIMEDOUT)
        ask_blame (s->cmd, "the instance is told to stop");
    idt_future_destroy (f);
    if (!s->lost)
        idt_watcher_start (s->timer);
}

static void ask_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct stop *s = arg;
    idt_future_t *f = ask_send (s->cmd, "broker.ping", IDT_NODEID_ANY, json_object ());

    idt_watcher_stop (w);
    idt_timer_watcher_reset (w, ASK_AGAIN_MS, 0);
    if (!f && !s->lost)
        idt_watcher_start (w);
    else if (f && idt_future_then (f, s->cmd->timeout_ms, alive_cb, s) < 0)
        cmd_die (s->cmd, "%s", strerror (errno));
}

static void await_end (struct stop *s, idt_reactor_t *r)
{
    if (!r || !(s->timer = idt_timer_watcher_create (r, 0, 0, ask_cb, s)))
        cmd_die (s->cmd, "%s", strerror (errno));
    idt_watcher_start (s->timer);
    while (!s->lost)
        if (idt_reactor_run (r, IDT_REACTOR_DEFAULT) < 0)
            cmd_die (s->cmd, "%s", strerror (errno));
    idt_watcher_destroy (s->timer);
}

static int run (struct cmd *cmd)
{
    struct stop s = { .cmd = cmd };

    cmd_options (cmd, NULL);
    idt_t *h = cmd_connect_own (cmd);
    idt_set_lost (h, lost_cb, &s);
    idt_future_t *f = ask_send (cmd, "shutdown.start", 0, json_object ());
    if (!f || idt_future_then (f, cmd->timeout_ms, answer_cb, cmd) < 0)
        cmd_die (cmd, "cannot send: %s", strerror (errno));
    await_end (&s, idt_get_reactor (h));
    return CMD_OK;
}

const struct command shutdown_command = {
    .name = "shutdown",
    .flags = CMD_CONNECTS | CMD_SILENT,
    .summary = "Stop the instance, leaves first, and wait until the broker is gone",
    .example = "idtree shutdown",
    .run = run,
};
