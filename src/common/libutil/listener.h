/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* listener.h - listening UNIX sockets at paths that several processes may want
 *
 * A process that dies leaves its socket file behind, and a new process replaces it. A living process refuses
 * connections between its bind () and listen (), too. Therefore both, and the check before them, happen under a lock
 * file beside the socket.
 */
#ifndef UTIL_LISTENER_H
#define UTIL_LISTENER_H

#include <stdbool.h>
#include <sys/types.h>

#include <idtree/error.h>

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

#endif /* UTIL_LISTENER_H */
