/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rundir.c - the folder of a broker's sockets */
#include "config.h"

#include <errno.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/rundir.h"
#include "libutil/errprintf.h"
#include "libutil/private_dir.h"

struct rundir {
    char *path;
    bool ours;
};

static int make_private (struct rundir *rd, const char *tmpdir, idt_error_t *errp)
{
    if (asprintf (&rd->path, "%s/idtree-XXXXXX", tmpdir) < 0) {
        rd->path = NULL;
        return errprintf (errp, "out of memory");
    }
    if (!mkdtemp (rd->path))
        return errprintf (errp, "cannot make a folder in %s: %s", tmpdir, strerror (errno));
    rd->ours = true;
    return 0;
}

static int use (struct rundir *rd, const char *path, idt_error_t *errp)
{
    if (mkdir (path, 0700) < 0 && errno != EEXIST)
        return errprintf (errp, "rundir %s: %s", path, strerror (errno));
    if (private_dir_check ("rundir", path, PRIVATE_DIR_STRICT, errp) < 0)
        return -1;
    if (!(rd->path = realpath (path, NULL)))
        return errprintf (errp, "rundir %s: %s", path, strerror (errno));
    return 0;
}

struct rundir *rundir_create (const char *path, const char *tmpdir, idt_error_t *errp)
{
    struct rundir *rd = calloc (1, sizeof (*rd));

    if (!rd) {
        errprintf (errp, "out of memory");
        return NULL;
    }
    if ((path ? use (rd, path, errp) : make_private (rd, tmpdir, errp)) < 0) {
        rundir_destroy (rd);
        return NULL;
    }
    return rd;
}

static int remove_one (const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    remove (path);
    return 0;
}

void rundir_destroy (struct rundir *rd)
{
    int saved_errno = errno;

    if (!rd)
        return;
    if (rd->ours)
        nftw (rd->path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    free (rd->path);
    free (rd);
    errno = saved_errno;
}

const char *rundir_path (const struct rundir *rd)
{
    return rd->path;
}
