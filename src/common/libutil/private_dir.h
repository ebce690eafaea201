/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private_dir.h - check that a folder is writable only by its owner, and take locks in such folders */
#ifndef UTIL_PRIVATE_DIR_H
#define UTIL_PRIVATE_DIR_H

#include <idtree/error.h>

enum private_dir_flag {
    PRIVATE_DIR_STRICT = 0,
    /* Other users may add files if the sticky bit protects ours (a mounted tmpfs). The caller then checks the owner of
     * each file that it opens.
     */
    PRIVATE_DIR_STICKY = 1,
};

/* Check that 'path' is a folder, not a symbolic link to one, that belongs to the calling user and that no other user
 * can write to. Returns 0, or -1 with errno set (ELOOP, ENOTDIR, EPERM, as lstat (2)) and 'errp' filled with a text
 * that begins with 'what'.
 */
int private_dir_check (const char *what, const char *path, enum private_dir_flag flags, idt_error_t *errp);

/* Take the lock 'name' in the folder 'dir', which must pass the check above. The lock is a file that exists while it is
 * held and that other users cannot open. (A lock on the folder itself would not do: each user who may read the folder
 * could hold it forever.) Blocks for at most 'wait_ms'. Returns a descriptor for private_unlock (), or -1 with errno
 * set and 'errp' filled: EBUSY if another process of this user held the lock all the time, EPERM if the file belongs to
 * another user. private_unlock () removes the file, unless another file has replaced it.
 */
int private_lock (const char *dir, const char *name, unsigned wait_ms, idt_error_t *errp);
void private_unlock (int fd, const char *dir, const char *name);

#endif /* UTIL_PRIVATE_DIR_H */
