/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* listener.h - UNIX sockets that processes listen at, where other processes may want the same path
 *
 * A process that dies leaves its socket behind, and a new one takes its place.  Between bind () and listen () a living
 * one refuses connections as well, so both, and the check before them, happen under a lock beside the socket.
 */
#ifndef UTIL_LISTENER_H
#define UTIL_LISTENER_H

#include <stdbool.h>
#include <sys/types.h>

#include <idtree/error.h>

#define LISTENER_WAIT_MS 2000 /* for the lock: other processes have it for microseconds */

/* Which file a path was when we made it.  Zero: none. */
struct listener_place {
    dev_t dev;
    ino_t ino;
};

/* Note what is at 'path' now.  Returns 0, or -1 with errno as lstat (2). */
int listener_note (struct listener_place *place, const char *path);

/* Remove what is at 'path', if it is still that. */
void listener_remove (const struct listener_place *place, const char *path);

struct listener {
    int fd;
    char *path;
    struct listener_place place;
};

/* Whether a process listens at 'path', or may: false if the socket refuses connections, or if there is none. */
bool listener_is_served (const char *path, int type);

/* Listen at 'path', with a socket of 'type' that does not block and that only its owner may connect to.  A socket that
 * no process serves is replaced.  Returns 0, or -1 with errno set and 'errp' filled, which begins with the path:
 *   EADDRINUSE    another process serves it
 *   EBUSY         another process has had the lock for LISTENER_WAIT_MS
 *   ENAMETOOLONG, EEXIST (the path is no socket), as bind (2), as private_lock ()
 * Then 'l' has nothing to close.
 */
int listener_open (struct listener *l, const char *path, int type, int backlog, idt_error_t *errp);

/* Remove the socket, if it is still the one that was made, and close it.  Keeps errno. */
void listener_close (struct listener *l);

#endif /* UTIL_LISTENER_H */
