/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* commands.h - the subcommands, each defined in a file of its own */
#ifndef CMD_COMMANDS_H
#define CMD_COMMANDS_H

#include "cmd/cmd.h"

extern const struct command start_command;
extern const struct command startctl_command;
extern const struct command broker_command;
extern const struct command id_convert_command;
extern const struct command id_show_command;
extern const struct command version_command;
extern const struct command complete_command;

#endif /* CMD_COMMANDS_H */
