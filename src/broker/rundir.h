/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rundir.h - the folder of a broker's sockets */
#ifndef BROKER_RUNDIR_H
#define BROKER_RUNDIR_H

#include <idtree/error.h>

struct rundir;

/* Use 'path' (made where it is missing, left behind), or, where it is NULL, make a private folder in 'tmpdir' that is
 * removed with all that is in it at the end.  NULL with errno set and 'errp' filled.
 */
struct rundir *rundir_create (const char *path, const char *tmpdir, idt_error_t *errp);
void rundir_destroy (struct rundir *rd);

const char *rundir_path (const struct rundir *rd);

#endif /* BROKER_RUNDIR_H */
