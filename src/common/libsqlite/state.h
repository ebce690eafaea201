/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* state.h - whether a folder has all of an instance's state, and nothing of another one's
 *
 * What is looked at here is looked at again when a store is opened (database.h): this is to refuse a folder before
 * anything of it is used.  Nothing is changed, but by state_adopt ().
 */
#ifndef SQLITE_STATE_H
#define SQLITE_STATE_H

#include "libstate/statefile.h"

/* Whether each store in the list of 's' is there and carries its mark, and no other store of ours is.  'excused' (NULL:
 * none) may be missing.  Returns 0, or -1 with errno STATE_REFUSED and 'errp' filled.
 */
int state_check (const char *dir, const struct statefile *s, const char *excused, idt_error_t *errp);

/* Say that a store is missing, and what can be done.  Returns -1 with errno STATE_REFUSED. */
int state_missing (const char *dir, const char *name, const char *uuid, idt_error_t *errp);

/* Whose the stores are in a folder without the file 'instance'.  Returns 1 where an earlier version left them
 * (fluid.sqlite, and others beside it), which get into the list of 'fresh'; 0 where there is no store at all; -1 with
 * errno set and 'errp' filled (STATE_REFUSED: they are an instance's, whose file is gone, or only part of them is
 * there).
 */
int state_survey (const char *dir, struct statefile *fresh, idt_error_t *errp);

/* The same, and where it returns 1 the file is made for them: 'fresh' has UUID and name. */
int state_adopt (const char *dir, struct statefile *fresh, idt_error_t *errp);

#endif /* SQLITE_STATE_H */
