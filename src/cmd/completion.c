/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* completion.c - idtree completion: print the completion script of a shell, for users without our package */
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
    .summary = "Print a shell's completion script for idtree and idtree-http",
    .details = "bash, in ~/.bashrc:                       eval \"$(idtree completion bash)\"\nzsh, in ~/.zshrc, "
               "after compinit:         eval \"$(idtree completion zsh)\"\nfish, in ~/.config/fish/config.fish:      "
               "idtree completion fish | source\nPackages install the same scripts in the folders of these shells.",
    .example = "eval \"$(idtree completion bash)\"",
    .run = run,
};
