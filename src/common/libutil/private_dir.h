/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private_dir.h - folders that only their owner can write to, and what is in them: locks, listening sockets */
#ifndef UTIL_PRIVATE_DIR_H
#define UTIL_PRIVATE_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

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

/* Write all of 'data'. A short write sets no errno; the next write fails and says whether the disk is full or the size
 * of files is limited. Returns 0, or -1 with errno set.
 */
int write_all (int fd, const void *data, size_t size);

/* --- listening UNIX sockets at paths that several processes may want ---------------------------------------------
 *
 * A process that dies leaves its socket file behind, and a new process replaces it. A living process refuses
 * connections between its bind () and listen (), too. Therefore both, and the check before them, happen under a lock
 * file beside the socket.
 */

#define LISTENER_WAIT_MS 2000 /* to get the lock: other processes hold it for microseconds */

/* Identifies the file that this process made at a path. All zero: no file. */
struct listener_place {
    dev_t dev;
    ino_t ino;
};

/* Note what is at 'path' now.  Returns 0, or -1 with errno as lstat (2). */
int listener_note (struct listener_place *place, const char *path);

/* Remove the file at 'path' if it is still the noted one. */
void listener_remove (const struct listener_place *place, const char *path);

struct listener {
    int fd;
    char *path;
    struct listener_place place;
};

/* Whether a process listens at 'path', or may listen. False if the socket refuses connections or does not exist. */
bool listener_is_served (const char *path, int type);

/* Listen at 'path' with a non-blocking socket of 'type' to which only its owner may connect. A socket file that no
 * process listens at is replaced. Returns 0, or -1 with errno set and 'errp' filled with a text that begins with the
 * path:
 *   EADDRINUSE    another process listens at it
 *   EBUSY         another process has held the lock for LISTENER_WAIT_MS
 *   ENAMETOOLONG, EEXIST (the path is not a socket), as bind (2), as private_lock ()
 * After a failure 'l' has nothing to close.
 */
int listener_open (struct listener *l, const char *path, int type, int backlog, idt_error_t *errp);

/* Remove the socket file, if it is still the one that listener_open () made, and close the socket. Keeps errno. */
void listener_close (struct listener *l);

#endif /* UTIL_PRIVATE_DIR_H */
