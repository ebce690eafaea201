/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* self.c - where this idtree is, and the broker that belongs to it
 *
 * Installed, both are in one folder.  In the build tree libtool keeps the program itself in
 * .libs, beside a script that sets LD_LIBRARY_PATH and runs it; as we were run by such a script,
 * the broker's program can do without its own.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/base/self.h"

static void find_exe (const struct cmd *cmd, char dir[PATH_MAX])
{
    ssize_t n = readlink ("/proc/self/exe", dir, PATH_MAX - 1);

    if (n < 0)
        cmd_die (cmd, "cannot read /proc/self/exe: %s", strerror (errno));
    dir[n] = '\0';
    *strrchr (dir, '/') = '\0';
}

static bool try_broker (struct self *self, const char *dir, const char *rest)
{
    int n = snprintf (self->broker, sizeof (self->broker), "%s/%s", dir, rest);

    return n < (int)sizeof (self->broker) && access (self->broker, X_OK) == 0;
}

void self_find (const struct cmd *cmd, struct self *self)
{
    char *dir = self->bindir;

    find_exe (cmd, dir);
    size_t len = strlen (dir);
    bool in_libs = len > 6 && !strcmp (dir + len - 6, "/.libs");
    if (in_libs)
        dir[len - 6] = '\0';
    if (cmd->env.broker) {
        snprintf (self->broker, sizeof (self->broker), "%s", cmd->env.broker);
        return;
    }
    if ((in_libs && try_broker (self, dir, "../broker/.libs/idtree-broker")) || try_broker (self, dir, "idtree-broker")
        || try_broker (self, dir, "../broker/idtree-broker"))
        return;
    cmd_die (cmd, "there is no idtree-broker in %s (IDTREE_BROKER may name one)", dir);
}
