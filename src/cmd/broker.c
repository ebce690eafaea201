/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* broker.c - idtree broker: run one broker, as idtree-broker */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cmd/base/commands.h"
#include "cmd/base/self.h"

static int run (struct cmd *cmd)
{
    struct self self;

    self_find (cmd, &self);
    cmd->argv[0] = "idtree-broker";
    execv (self.broker, cmd->argv);
    cmd_die (cmd, "cannot run %s: %s", self.broker, strerror (errno));
}

const struct command broker_command = {
    .name = "broker",
    .flags = CMD_VERBATIM,
    .summary = "Run one broker, as idtree-broker does",
    .run = run,
};
