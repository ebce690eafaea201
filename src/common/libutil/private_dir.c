/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private_dir.c - folders that nobody else can put anything into */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libutil/errprintf.h"
#include "libutil/private_dir.h"

/* As lstat (2), which follows a link whose name ends with a slash. */
static int stat_itself (const char *path, struct stat *st)
{
    char name[PATH_MAX];
    size_t len = strlen (path);

    while (len > 1 && path[len - 1] == '/')
        len--;
    if (len >= sizeof (name))
        return errset (ENAMETOOLONG);
    snprintf (name, sizeof (name), "%.*s", (int)len, path);
    return lstat (name, st);
}

int private_dir_check (const char *what, const char *path, enum private_dir_flag flags, idt_error_t *errp)
{
    struct stat st;

    if (stat_itself (path, &st) < 0)
        return errprintf (errp, "%s %s: %s", what, path, strerror (errno));
    if (S_ISLNK (st.st_mode))
        return errsetf (errp, ELOOP, "%s %s: is a symbolic link: name the folder itself", what, path);
    if (!S_ISDIR (st.st_mode))
        return errsetf (errp, ENOTDIR, "%s %s: %s", what, path, strerror (ENOTDIR));
    bool kept = (flags & PRIVATE_DIR_STICKY) && (st.st_mode & S_ISVTX);
    if (st.st_uid != geteuid () || ((st.st_mode & (S_IWGRP | S_IWOTH)) && !kept))
        return errsetf (errp, EPERM, "%s %s: must belong to you and be writable by nobody else", what, path);
    return 0;
}
