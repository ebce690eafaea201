/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private_dir.h - folders that nobody else can put anything into */
#ifndef UTIL_PRIVATE_DIR_H
#define UTIL_PRIVATE_DIR_H

#include <idtree/error.h>

enum private_dir_flag {
    PRIVATE_DIR_STRICT = 0,
    /* Others may add files, where the sticky bit keeps ours (a mounted tmpfs): the caller looks whose those are that it
     * opens
     */
    PRIVATE_DIR_STICKY = 1,
};

/* Whether 'path' is a folder, no symbolic link to one, that belongs to who runs us and that nobody else can write to.
 * Returns 0, or -1 with errno set (ELOOP, ENOTDIR, EPERM, as lstat (2)) and a sentence in 'errp' that begins with
 * 'what'.
 */
int private_dir_check (const char *what, const char *path, enum private_dir_flag flags, idt_error_t *errp);

#endif /* UTIL_PRIVATE_DIR_H */
