/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* run.c - run a command
 *
 * This is the only place that reads the environment, except for the URI of the broker, which idt_open () reads.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/cmd.h"
#include "cmd/base/out.h"

/* An empty variable counts as unset. */
static const char *env (const char *name)
{
    const char *s = getenv (name);

    return s && *s ? s : NULL;
}

static void read_env (struct cmd_env *e)
{
    e->broker = env ("IDTREE_BROKER");
    e->tmpdir = env ("TMPDIR");
    e->shell = env ("SHELL");
    e->path = env ("PATH");
    e->term = env ("TERM");
    e->no_color = env ("NO_COLOR") || (env ("TERM") && !strcmp (env ("TERM"), "dumb"));
}

int cmd_run (const struct command *command, const struct command *const *table, int argc, char **argv)
{
    struct cmd cmd = { .command = command, .table = table, .timeout_ms = CMD_TIMEOUT_MS, .argc = argc, .argv = argv };

    read_env (&cmd.env);
    int status = command->run (&cmd);
    if (cmd.json && command->flags & CMD_SILENT && status == CMD_OK)
        out_print ("{}\n");
    cmd_flush (&cmd);
    idt_close (cmd.h);
    return status;
}
