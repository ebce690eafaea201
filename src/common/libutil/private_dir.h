/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private_dir.h - folders that only their owner can write to, and two things in such folders: locks, listening sockets
 */
#ifndef UTIL_PRIVATE_DIR_H
#define UTIL_PRIVATE_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <idtree/error.h>

enum private_dir_flag {
    PRIVATE_DIR_STRICT = 0,
    /* Other users may also add files if the folder has the sticky bit, which protects our files (for example a mounted
     * tmpfs). The caller must check the owner of each file that it opens.
     */
    PRIVATE_DIR_STICKY = 1,
};

/* Check that 'path' is a folder that belongs to the calling user and that no other user can write to. A symbolic link
 * to a folder is refused. Returns 0, or -1 with errno set (ELOOP, ENOTDIR, EPERM, as lstat (2)) and 'errp' filled with
 * a text that begins with 'what'.
 */
int private_dir_check (const char *what, const char *path, enum private_dir_flag flags, idt_error_t *errp);

/* private_lock () takes the lock 'name' in the folder 'dir', which must pass private_dir_check (). The lock is a file
 * that exists while the lock is held and that other users cannot open. (A lock on the folder itself would not work,
 * because each user who may read the folder could hold it forever.) Blocks for at most 'wait_ms'. Returns a descriptor
 * for private_unlock (), or -1 with errno set and 'errp' filled. EBUSY: another process of this user held the lock all
 * the time. EPERM: other users may open the file, or the file belongs to another user. private_unlock () removes the
 * file, unless another file has replaced it.
 */
int private_lock (const char *dir, const char *name, unsigned wait_ms, idt_error_t *errp);
void private_unlock (int fd, const char *dir, const char *name);

/* Write all of 'data'. Returns 0, or -1 with errno set. A write that was cut short sets no errno. The function then
 * writes the rest, and that write fails with the reason: the disk is full, or the size of files is limited.
 */
int write_all (int fd, const void *data, size_t size);

/* --- listening UNIX sockets at paths that several processes may want ---------------------------------------------
 *
 * A process that dies leaves its socket file behind, and a new process replaces the file. But a living process also
 * refuses connections, namely between its bind () and its listen (). Therefore a process holds a lock, a file beside
 * the socket, while it checks the socket, binds and listens.
 */

#define LISTENER_WAIT_MS 2000 /* time to get the lock: other processes hold it for microseconds */

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

/* Whether a process listens at 'path', or may listen there. False if the socket refuses connections or does not exist,
 * or if the path is empty or too long for a socket.
 */
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

/* Remove the socket file, if the file at the path is still the one that listener_open () made, and close the socket.
 * Keeps errno.
 */
void listener_close (struct listener *l);

#endif /* UTIL_PRIVATE_DIR_H */
