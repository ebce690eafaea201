/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* self.h - where this idtree is, and the programs that belong to it */
#ifndef CMD_SELF_H
#define CMD_SELF_H

#include <limits.h>

#include "cmd/base/cmd.h"

struct self {
    char bindir[PATH_MAX]; /* where "idtree" can be run from */
    char broker[PATH_MAX]; /* its broker's executable */
};

/* Find both, installed or in the build tree; IDTREE_BROKER names another broker.  Ends the
 * program where there is no broker.
 */
void self_find (const struct cmd *cmd, struct self *self);

/* The path that idtree-all has, or would have. */
void self_find_all (char path[PATH_MAX]);

#endif /* CMD_SELF_H */
