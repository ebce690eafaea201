/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* version.c - idtree version: the versions of the command and, if one is running, of the broker */
#include "config.h"

#include <stdio.h>

#include <idtree/handle.h>

#include "cmd/base/ask.h"
#include "cmd/base/commands.h"
#include "cmd/base/out.h"

static void print_json (const struct cmd *cmd, const char *version)
{
    json_t *o = json_pack ("{s:s s:s* s:s*}", "command", PACKAGE_VERSION, "broker", cmd->h ? version : NULL, "uri",
                           cmd->h ? idt_get_uri (cmd->h) : NULL);

    ask_print (cmd, o);
    json_decref (o);
}

static int run (struct cmd *cmd)
{
    cmd_options (cmd, NULL);
    const char *version = cmd_try_connect (cmd, NULL) ? idt_attr_get (cmd->h, "version") : NULL;

    if (cmd->json) {
        print_json (cmd, version);
        return CMD_OK;
    }
    out_print ("command: %s\n", PACKAGE_VERSION);
    if (cmd->h)
        out_print ("broker:  %s\nuri:     %s\n", version ? version : "unknown", idt_get_uri (cmd->h));
    return CMD_OK;
}

const struct command version_command = {
    .name = "version",
    .flags = CMD_CONNECTS,
    .summary = "Show the versions of the command and, if one is running, of the broker",
    .example = "idtree version",
    .json = "one object",
    .run = run,
};
