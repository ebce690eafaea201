/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rundir.h - the folder of a broker's sockets */
#ifndef BROKER_RUNDIR_H
#define BROKER_RUNDIR_H

#include <stdbool.h>
#include <sys/types.h>

#include <idtree/error.h>

struct rundir {
    char *path;
    bool ours;
};

/* Use the folder 'path': it is made if missing, and stays at the end. If 'path' is NULL, make a private folder in
 * 'tmpdir', which is removed with its content at the end. The folder has at least the permissions 'mode'. Returns 0, or
 * -1 with errno set and 'errp' filled.
 */
int rundir_init (struct rundir *rd, const char *path, const char *tmpdir, mode_t mode, idt_error_t *errp);
void rundir_fini (struct rundir *rd); /* an object of zero bytes is fine, too */

#endif /* BROKER_RUNDIR_H */
