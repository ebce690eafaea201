/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* keygen.c - idtree keygen: make the certificate that all hosts of a configured instance share */
#include "cmd/base/commands.h"
#include "cmd/base/out.h"
#include "common/libzmqutil/curve.h"

struct keygen_options {
    const char *name;
};

static int run (struct cmd *cmd)
{
    struct keygen_options o = { 0 };
    idt_error_t err;

    cmd_options (cmd, &o);
    if (certificate_make (cmd->argv[0], o.name, &err) < 0)
        cmd_die (cmd, "%s", err.text);
    if (!cmd->json)
        out_print ("%s: made; copy it to all hosts of the instance, readable only by the user of the brokers\n",
                   cmd->argv[0]);
    return CMD_OK;
}

static const struct cmd_option options[] = {
    { 0, "name", "NAME", "name for people (default: idtree)", cmd_take_text, offsetof (struct keygen_options, name) },
    CMD_OPTIONS_END,
};

const struct command keygen_command = {
    .name = "keygen",
    .operands = "FILE",
    .flags = CMD_SILENT,
    .summary = "Make the certificate that all hosts of an instance share",
    .details = "Any reader of FILE can pose as any of the brokers.  Copy it to each host as safely as other\nkeys, "
               "readable only by the user that runs the broker; it is made with mode 0400.  An existing\nfile is not "
               "replaced.",
    .example = "idtree keygen /etc/idtree/idtree.cert",
    .options = options,
    .run = run,
};
