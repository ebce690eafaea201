/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* shutdown.c - idtree shutdown: stop the instance, leaves first
 *
 * Done is when the connection to the broker is closed.
 */
#include <errno.h>
#include <string.h>

#include <idtree/reactor.h>
#include <idtree/rpc.h>

#include "cmd/base/commands.h"

static void lost_cb (idt_t *h, int errnum, void *arg)
{
    bool *lost = arg;

    *lost = true;
    idt_reactor_stop (idt_get_reactor (h));
}

static void answer_cb (idt_future_t *f, void *arg)
{
    struct cmd *cmd = arg;

    if (idt_future_errnum (f) && idt_future_errnum (f) != ECONNRESET && idt_future_errnum (f) != EPIPE)
        cmd_die (cmd, "%s", idt_future_error (f));
    idt_future_destroy (f);
}

static int run (struct cmd *cmd)
{
    bool lost = false;
    idt_t *h;
    idt_future_t *f;

    cmd_options (cmd, NULL);
    h = cmd_connect_own (cmd);
    idt_set_lost (h, lost_cb, &lost);
    if (!(f = idt_rpc (h, "shutdown.start", "{}", 0, 0)) || idt_future_then (f, -1, answer_cb, cmd) < 0)
        cmd_die (cmd, "cannot send: %s", strerror (errno));
    idt_reactor_t *r = idt_get_reactor (h);
    while (!lost)
        if (idt_reactor_run (r, IDT_REACTOR_DEFAULT) < 0)
            cmd_die (cmd, "%s", strerror (errno));
    return CMD_OK;
}

const struct command shutdown_command = {
    .name = "shutdown",
    .flags = CMD_CONNECTS,
    .summary = "Stop the instance, leaves first, and wait until the broker is gone",
    .example = "idtree shutdown",
    .run = run,
};
