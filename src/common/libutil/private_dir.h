/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private_dir.h - folders that nobody else can put anything into, and locks in them that nobody else can take */
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

/* Take the lock 'name' of the folder 'dir', which passes the check above: a file that is there as long as it is held,
 * and that other users cannot open.  (Each user who may read a folder may lock the folder itself, and keep that for
 * ever.)  Blocks for 'wait_ms' at most.  Returns a descriptor for private_unlock (), or -1 with errno set and 'errp'
 * filled: EBUSY where another process of this user has it for so long, EPERM where the file is another user's.
 * private_unlock () removes the file, unless another one is at its place by now.
 */
int private_lock (const char *dir, const char *name, unsigned wait_ms, idt_error_t *errp);
void private_unlock (int fd, const char *dir, const char *name);

#endif /* UTIL_PRIVATE_DIR_H */
