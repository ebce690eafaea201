/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* state.h - check that a folder has all stores of its instance, and no store of another one
 *
 * The open of a store repeats these checks (database.h). They are made here first, so that a folder is refused before
 * any part of it is used. Only state_adopt () changes the folder.
 */
#ifndef SQLITE_STATE_H
#define SQLITE_STATE_H

#include "libstate/statefile.h"

/* Check that each store in the list of 's' exists and carries its mark, and that there is no other store of idtree. The
 * store 'excused' (NULL: none) may be missing. Returns 0, or -1 with errno STATE_REFUSED and 'errp' filled.
 */
int state_check (const char *dir, const struct statefile *s, const char *excused, idt_error_t *errp);

/* Report that a store is missing, and what to do. Returns -1 with errno STATE_REFUSED. */
int state_missing (const char *dir, const char *name, const char *uuid, idt_error_t *errp);

/* Find out who left the stores in a folder without the file 'instance'. Returns 1 if an earlier version left them
 * (fluid.sqlite, and others beside it), and adds them to the list of 'fresh'; 0 if there is no store; -1 with errno set
 * and 'errp' filled (STATE_REFUSED: they belong to an instance whose file is missing, or only part of them exists).
 */
int state_survey (const char *dir, struct statefile *fresh, idt_error_t *errp);

/* Like state_survey (); if that returns 1, also write the file 'instance' for the stores. The caller sets UUID and name
 * of 'fresh'.
 */
int state_adopt (const char *dir, struct statefile *fresh, idt_error_t *errp);

#endif /* SQLITE_STATE_H */
