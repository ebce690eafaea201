/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* completion.c - idtree completion: the script that completes commands, for a shell without our package */
#include <string.h>

#include "cmd/base/commands.h"
#include "cmd/base/out.h"
#include "cmd/completion.h"

static int run (struct cmd *cmd)
{
    char quoted[CMD_QUOTE_MAX];

    cmd_options (cmd, NULL);
    const char *shell = cmd->argv[0];
    for (const struct completion_script *s = completion_scripts; s->shell; s++) {
        if (strcmp (s->shell, shell) == 0) {
            out_own (s->text);
            return CMD_OK;
        }
    }
    cmd_usage (cmd, "'%s': a shell is needed: bash, zsh or fish", cmd_quote (shell, strlen (shell), quoted));
}

const struct command completion_command = {
    .name = "completion",
    .operands = "bash|zsh|fish",
    .summary = "Print the script for a shell that offers what may follow in idtree and idtree-http",
    .details = "bash, in ~/.bashrc:                       eval \"$(idtree completion bash)\"\n"
               "zsh, in ~/.zshrc, behind compinit:        eval \"$(idtree completion zsh)\"\n"
               "fish, in ~/.config/fish/config.fish:      idtree completion fish | source\n"
               "Packages have installed the same scripts where these shells look for them.",
    .example = "eval \"$(idtree completion bash)\"",
    .run = run,
};
