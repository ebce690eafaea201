/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rundir.c - the folder of a broker's sockets */
#include "config.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/rundir.h"
#include "libutil/errprintf.h"
#include "libutil/private_dir.h"

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

/* Extend the permissions, so that users who may connect can enter the folder. */
static int permit (const struct rundir *rd, mode_t mode, idt_error_t *errp)
{
    struct stat st;

    if (stat (rd->path, &st) < 0 || ((st.st_mode & mode) != mode && chmod (rd->path, (st.st_mode & 07777) | mode) < 0))
        return errprintf (errp, "rundir %s: %s", rd->path, strerror (errno));
    return 0;
}

int rundir_init (struct rundir *rd, const char *path, const char *tmpdir, mode_t mode, idt_error_t *errp)
{
    *rd = (struct rundir){ 0 };
    if ((path ? use (rd, path, errp) : make_private (rd, tmpdir, errp)) < 0)
        return -1;
    return permit (rd, mode, errp);
}

static int remove_one (const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    remove (path);
    return 0;
}

void rundir_fini (struct rundir *rd)
{
    if (rd->ours)
        nftw (rd->path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    free (rd->path);
}
