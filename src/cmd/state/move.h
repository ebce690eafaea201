/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* move.h - idtree init --store URI --from DIR: move the state of a folder to PostgreSQL */
#ifndef CMD_MOVE_H
#define CMD_MOVE_H

#include "cmd/base/cmd.h"
#include "libstate/statefile.h"

/* Move the state of 'dir' to the database 'uri', or end the program. '*s' gets the instance, with its epoch. */
void move_state (const struct cmd *cmd, const char *uri, const char *dir, struct statefile *s);

#endif /* CMD_MOVE_H */
