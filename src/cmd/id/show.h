/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* show.h - the date of an id */
#ifndef CMD_ID_SHOW_H
#define CMD_ID_SHOW_H

#include "cmd/base/cmd.h"
#include "cmd/id/scheme.h"

/* If an instance that knows its epoch can be reached, add the date of a fluid to an object. */
void show_add_date (struct cmd *cmd, const struct ident *id, json_t *o);

#endif /* CMD_ID_SHOW_H */
