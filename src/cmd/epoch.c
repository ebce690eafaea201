/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* epoch.c - from when the timestamps of ids count
 *
 * It is no error that an instance can't be asked: an id can be shown without a date.
 */
#include <stdio.h>
#include <string.h>

#include <idtree/rpc.h>

#include "cmd/date.h"
#include "cmd/epoch.h"

#define TIMEOUT_MS 5000

static void ask (idt_t *h, const char *uri, struct epoch *epoch)
{
    idt_future_t *f = idt_rpc (h, "fluid.info", "{}", IDT_NODEID_ANY, 0);
    const char *s;

    if (!f || idt_future_wait (f, TIMEOUT_MS) < 0)
        snprintf (epoch->why, sizeof (epoch->why), "%s does not answer", uri);
    else if (idt_rpc_get_unpack (f, "{s:s}", "epoch", &s) < 0)
        snprintf (epoch->why, sizeof (epoch->why), "%s does not know it: %s", uri,
                  idt_future_error (f));
    else if (date_parse (s, &epoch->ms) < 0)
        snprintf (epoch->why, sizeof (epoch->why), "%s says '%s', which is no date", uri, s);
    idt_future_destroy (f);
}

void epoch_get (const struct cmd *cmd, const char *s, struct epoch *epoch)
{
    idt_error_t error;
    idt_t *h;

    epoch->ms = -1;
    if (s && date_parse (s, &epoch->ms) < 0)
        cmd_usage (cmd, "epoch '%s' is no date such as 2026-11-21 or 2026-11-21T10:11:12.345Z", s);
    if (s)
        return;
    if (!cmd->uri)
        snprintf (epoch->why, sizeof (epoch->why), "no instance is set, and no --epoch");
    else if (!(h = idt_open (cmd->uri, &error)))
        snprintf (epoch->why, sizeof (epoch->why), "%s", error.text);
    else {
        ask (h, cmd->uri, epoch);
        idt_close (h);
    }
}
