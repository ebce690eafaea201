/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* connect.c - connect to the broker, or say what to do */
#include <errno.h>
#include <string.h>

#include <idtree/handle.h>

#include "cmd/base/cmd.h"

#define OWN_ATTRIBUTE "router.max-pending" /* each broker of idtree has it, and none of Flux */

idt_t *cmd_connect (struct cmd *cmd)
{
    idt_error_t error;

    if (cmd->h)
        return cmd->h;
    if (!cmd->uri)
        cmd_die (cmd, "no instance: start one with idtree start, or name its broker with --uri or "
                      "IDTREE_URI");
    if ((cmd->h = idt_open (cmd->uri, &error)))
        return cmd->h;
    if (errno == ENOENT || errno == ECONNREFUSED)
        cmd_die (cmd, "no broker at %s: start one with idtree start", cmd->uri);
    if (errno == EPERM || errno == EACCES)
        cmd_die (cmd, "the broker at %s serves another user", cmd->uri);
    cmd_die (cmd, "%s", error.text);
}

idt_t *cmd_connect_for (struct cmd *cmd, uint32_t rank)
{
    idt_t *h = cmd_connect (cmd);
    uint32_t size;

    if (rank == IDT_NODEID_ANY)
        return h;
    if (idt_get_size (h, &size) < 0)
        cmd_die (cmd, "size: %s", strerror (errno));
    if (rank >= size)
        cmd_die (cmd, "there is no rank %u: the instance has ranks 0 to %u", rank, size - 1);
    return h;
}

idt_t *cmd_connect_own (struct cmd *cmd)
{
    idt_t *h = cmd_connect (cmd);

    if (idt_attr_get (h, OWN_ATTRIBUTE))
        return h;
    if (errno != ENOENT)
        cmd_die (cmd, OWN_ATTRIBUTE ": %s", strerror (errno));
    const char *version = idt_attr_get (h, "version");
    cmd_die (cmd,
             "the broker at %s is not idtree's but of Flux%s%s: stop and change it with the command flux; nothing was "
             "done",
             cmd->uri, version ? " " : "", version ? version : "");
}
