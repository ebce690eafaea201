/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* self.c - find the folder of this idtree, and the programs that belong to it
 *
 * After installation, idtree and idtree-broker are in BINDIR, and idtree-all is in PKGLIBEXECDIR. All these folders may
 * be below another root. In the build tree libtool puts the programs into .libs.  In the folder above, libtool puts
 * scripts that set LD_LIBRARY_PATH and run the programs. Such a script takes twenty times as long to start as its
 * program.  LD_LIBRARY_PATH is already set for this process, so this process runs the programs in .libs directly.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/base/self.h"

/* Write the folder of this program into 'dir'. */
static int find_dir (char dir[PATH_MAX])
{
    ssize_t n = readlink ("/proc/self/exe", dir, PATH_MAX - 1);

    if (n < 0)
        return -1;
    dir[n] = '\0';
    *strrchr (dir, '/') = '\0';
    return 0;
}

/* Remove 'end' from the end of 'dir'.  Returns whether 'dir' ended with it. */
static bool cut (char *dir, const char *end)
{
    size_t len = strlen (dir), n = strlen (end);
    bool found = len >= n && !strcmp (dir + len - n, end);

    if (found)
        dir[len - n] = '\0';
    return found;
}

static int join (char path[PATH_MAX], const char *dir, const char *rest)
{
    if (snprintf (path, PATH_MAX, "%s/%s", dir, rest) < PATH_MAX)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

void self_find_all (char path[PATH_MAX])
{
    char dir[PATH_MAX];

    if (find_dir (dir) == 0) {
        if (cut (dir, BINDIR) && join (path, dir, PKGLIBEXECDIR "/idtree-all" + 1) == 0)
            return;
        if (join (path, dir, "idtree-all") == 0 && access (path, X_OK) == 0)
            return;
    }
    strcpy (path, PKGLIBEXECDIR "/idtree-all");
}

/* Change 'dir' from the folder of idtree-all to the folder of idtree. */
static void leave_libexec (char dir[PATH_MAX])
{
    char path[PATH_MAX];

    if (cut (dir, PKGLIBEXECDIR) && strlen (dir) + sizeof (BINDIR) <= PATH_MAX)
        strcat (dir, BINDIR);
    else if (join (path, dir, "idtree") < 0
             || access (path, X_OK) < 0) /* the folder is elsewhere, because a link is part of its path */
        strcpy (dir, BINDIR);
}

static bool try_broker (struct self *self, const char *rest)
{
    return join (self->broker, self->bindir, rest) == 0 && access (self->broker, X_OK) == 0;
}

void self_find (const struct cmd *cmd, struct self *self)
{
    char *dir = self->bindir;

    if (find_dir (dir) < 0)
        cmd_die (cmd, "cannot read /proc/self/exe: %s", strerror (errno));
    leave_libexec (dir);
    if (cmd->env.broker) {
        snprintf (self->broker, sizeof (self->broker), "%s", cmd->env.broker);
        return;
    }
    if (try_broker (self, "idtree-broker") || try_broker (self, "../../broker/.libs/idtree-broker")
        || try_broker (self, "../broker/idtree-broker"))
        return;
    cmd_die (cmd, "no idtree-broker in %s (IDTREE_BROKER may name one)", dir);
}
