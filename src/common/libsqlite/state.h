/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* state.h - what is in a state folder: read a store from outside, and check that the folder has all of its stores and
 * no others
 *
 * Opening a store repeats these checks (database.h). They are made here first, so that a folder is refused before any
 * part of it is used. Only state_adopt () changes the folder.
 */
#ifndef SQLITE_STATE_H
#define SQLITE_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libstate/statefile.h"

struct sqlite3;

#define STATE_ID_OFFSET 68 /* offset of the application id in a store */

/* Read a number of 32 bits from a file without SQLite; 0 if the file is too short. */
uint32_t state_peek (const char *path, off_t offset);

/* Whether a log or journal with content lies beside the file. Then the file may contain only some pages of a commit. */
bool state_is_torn (const char *path);

/* Read the mark of a store. The function changes neither the file nor a log that a crash left beside it. 'uuid' is ""
 * if the file has no mark, or if the mark may still be in the log. Returns whether the file is a file of idtree.
 */
bool state_read_mark (const char *path, char uuid[STATE_UUID_SIZE]);

/* Read the mark of an open database; "" if the database has none. */
void state_mark_of (struct sqlite3 *db, char uuid[STATE_UUID_SIZE]);

/* Check that each store in the list of 's' exists and carries its mark, and that the folder has no other store of
 * idtree. The store 'excused' (NULL: none) may be missing. Returns 0, or -1 with errno STATE_REFUSED and 'errp' filled.
 */
int state_check (const char *dir, const struct statefile *s, const char *excused, idt_error_t *errp);

/* Report that a store is missing, and what to do. Returns -1 with errno STATE_REFUSED. */
int state_missing (const char *dir, const char *name, const char *uuid, idt_error_t *errp);

/* Report that a store belongs to the instance 'uuid', but its folder belongs to no instance. Returns -1 with errno
 * STATE_REFUSED.
 */
int state_orphaned (const char *path, const char *uuid, idt_error_t *errp);

/* Find out who left the stores in a folder without the file 'instance'. Returns 1 if an earlier version left them
 * (fluid.sqlite, and others beside it), and adds them to the list of 'fresh'. Returns 0 if there is no store. Returns
 * -1 with errno set and 'errp' filled. STATE_REFUSED means that the stores belong to an instance whose file is missing,
 * or that only some of them exist.
 */
int state_survey (const char *dir, struct statefile *fresh, idt_error_t *errp);

/* Like state_survey (); if that returns 1, also write the file 'instance' for the stores. The caller sets UUID and name
 * of 'fresh'.
 */
int state_adopt (const char *dir, struct statefile *fresh, idt_error_t *errp);

#endif /* SQLITE_STATE_H */
