/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* self.h - find the folder of this idtree, and the programs that belong to it */
#ifndef CMD_SELF_H
#define CMD_SELF_H

#include <limits.h>

#include "cmd/base/cmd.h"

struct self {
    char bindir[PATH_MAX]; /* the folder to run "idtree" from */
    char broker[PATH_MAX]; /* the broker's executable */
};

/* Find 'bindir' and 'broker', installed or in the build tree.  If IDTREE_BROKER is set, it names the broker.  Ends the
 * program if no broker is found.
 */
void self_find (const struct cmd *cmd, struct self *self);

/* Write the path of idtree-all, whether it exists or not. */
void self_find_all (char path[PATH_MAX]);

#endif /* CMD_SELF_H */
