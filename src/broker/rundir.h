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

/* Use 'path' (made where it is missing, left behind), or, where it is NULL, make a private folder in 'tmpdir' that is
 * removed with all that is in it at the end.  It has the permissions 'mode' at least.  Returns 0, or -1 with errno set
 * and 'errp' filled.
 */
int rundir_init (struct rundir *rd, const char *path, const char *tmpdir, mode_t mode, idt_error_t *errp);
void rundir_fini (struct rundir *rd); /* all zero is fine, too */

#endif /* BROKER_RUNDIR_H */
