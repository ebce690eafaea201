/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* connect.c - connect to the broker, or say what to do */
#include <errno.h>
#include <string.h>

#include <idtree/handle.h>

#include "cmd/cmd.h"

idt_t *cmd_connect (const struct cmd *cmd)
{
    idt_error_t error;
    idt_t *h;

    if (!cmd->uri)
        cmd_die (cmd, "no instance: start one with idtree start, or name its broker with --uri or "
                      "IDTREE_URI");
    if ((h = idt_open (cmd->uri, &error)))
        return h;
    if (errno == ENOENT || errno == ECONNREFUSED)
        cmd_die (cmd, "no broker at %s: start one with idtree start", cmd->uri);
    cmd_die (cmd, "%s", error.text);
}
