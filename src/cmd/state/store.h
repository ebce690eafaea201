/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* store.h - the state of an instance in PostgreSQL, for idtree init and idtree state show */
#ifndef CMD_STORE_H
#define CMD_STORE_H

#include "cmd/base/cmd.h"
#include "libpg/pgstate.h"

/* Prepare a connection to the database 'uri', or end the program. */
struct pg *store_connect (const struct cmd *cmd, const char *uri);

/* Make the tables of an instance, or end the program. */
void store_make (const struct cmd *cmd, const char *uri, const struct pgstate *s);

/* Print what the database has. Returns the exit status. */
int store_show (struct cmd *cmd, const char *uri);

#endif /* CMD_STORE_H */
