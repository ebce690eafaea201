/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* version.c - idtree version: of the command, and of the broker where there is one */
#include "config.h"

#include <stdio.h>

#include <idtree/handle.h>

#include "cmd/base/commands.h"

static int run (struct cmd *cmd)
{
    cmd_options (cmd, NULL);
    printf ("command: %s\n", PACKAGE_VERSION);
    if (cmd_try_connect (cmd, NULL)) {
        const char *version = idt_attr_get (cmd->h, "version");

        printf ("broker:  %s\nuri:     %s\n", version ? version : "unknown", idt_get_uri (cmd->h));
    }
    return CMD_OK;
}

const struct command version_command = {
    .name = "version",
    .flags = CMD_CONNECTS,
    .summary = "Show the versions of the command and, where there is one, of the broker",
    .run = run,
};
