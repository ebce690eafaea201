/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* statefile.h - whose state a folder holds: the file 'instance' in it
 *
 * It names the instance and the stores that belong to it.  It is made once, and after that only stores are added.  A
 * crash leaves the whole file, the one before, or none.
 */
#ifndef STATE_STATEFILE_H
#define STATE_STATEFILE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include <idtree/error.h>

#define STATE_UUID_SIZE 37
#define STATE_NAME_SIZE 64
#define STATE_STORE_SIZE 32 /* of a store's name, as "fluid.sqlite" */
#define STATE_STORES_MAX 16

/* The store of the horizon: no instance that made ids is without it. */
#define STATE_HORIZON_STORE "fluid.sqlite"

/* The errno of all that refuses a folder for what it holds, or does not: no other start will find it different. */
#define STATE_REFUSED ENOTRECOVERABLE

struct state_store {
    char name[STATE_STORE_SIZE];
    bool unmarked; /* a version that marked none left it: it gets its mark when it is opened */
};

struct statefile {
    char uuid[STATE_UUID_SIZE];
    char name[STATE_NAME_SIZE];
    bool has_epoch;
    int64_t epoch_ms; /* Unix milliseconds; a folder without it has it in fluid.sqlite alone */
    int64_t created_ms;
    int64_t below_ms; /* of a memory: all ids were below this, Unix milliseconds; 0: not known */
    struct state_store stores[STATE_STORES_MAX];
    unsigned nstores;
};

/* Whether 's' can be a name: 1 to 63 letters, digits and any of "._-". */
bool state_name_is_good (const char *s);

/* Whether 's' is a UUID in lower case. */
bool state_uuid_is_good (const char *s);

/* The store of that name in the list; NULL: it is not there. */
const struct state_store *state_find_store (const struct statefile *s, const char *name);

/* List a store in 's' alone.  Returns 0, or -1 with errno ENOSPC or ENAMETOOLONG. */
int state_list_store (struct statefile *s, const char *name, bool unmarked);

/* Read the file in folder 'dir'.  Returns 0, or -1 with errno set, 'errp' filled and '*s' untouched:
 *   ENOENT         there is none
 *   STATE_REFUSED  it is damaged, of a later version, or no file of ours
 *   others         as the system says
 */
int state_read (const char *dir, struct statefile *s, idt_error_t *errp);

/* Make the file, durably.  Returns 0, or -1 with errno set and 'errp' filled; EEXIST: there is one. */
int state_create (const char *dir, const struct statefile *s, idt_error_t *errp);

/* Remove the file, where it is of no more use. */
void state_remove (const char *dir);

/* A store of the folder is whole and marked: list it so, durably.  Others may do the same for theirs at the same time.
 * Returns 0, or -1 with errno set and 'errp' filled, as all above.
 */
int state_add_store (const char *dir, const char *name, idt_error_t *errp);

/* A store was lost, and what was in it is given up: it is made anew when it is next needed.  Returns 0, or -1 with
 * errno set (ENOENT: it is not in the list) and 'errp' filled.
 */
int state_drop_store (const char *dir, const char *name, idt_error_t *errp);

/* --- what a rank remembers --------------------------------------------------------------------------- */

/* The file memory-RANK in 'dir': which instance the rank belongs to, and what a rank 0 that lost its state must be
 * told.  A crash leaves the whole file or the one before.  Both return as state_read ().
 */
int state_recall (const char *dir, uint32_t rank, struct statefile *s, idt_error_t *errp);
int state_remember (const char *dir, uint32_t rank, const struct statefile *s, idt_error_t *errp);

/* It is no more, if it was. */
void state_unremember (const char *dir, uint32_t rank);

/* --- other small files of a folder ------------------------------------------------------------------- */

/* Write 'text' to the file 'name' in 'dir', durably, in place of what is there or (exclusive) only where nothing is.
 * Returns 0, or -1 with errno set (EEXIST) and 'errp' filled.
 */
enum state_write { STATE_REPLACE, STATE_EXCLUSIVE };
int state_write_text (const char *dir, const char *name, const char *text, enum state_write how, idt_error_t *errp);

#define STATE_TEXT_MAX 4096

/* Read a small file of ours: no link, and nobody else's.  Returns its length, or -1 with errno set and 'errp' filled.
 */
int state_read_text (const char *dir, const char *name, char text[STATE_TEXT_MAX], idt_error_t *errp);

/* --- where a folder lies ----------------------------------------------------------------------------- */

/* Name the file system of 'type' (statfs (2)) where several hosts may have it at once; NULL: it is this host's. */
const char *state_network_name (unsigned long type);

/* Whether the folder lies on a file system of this host.  Returns 0, or -1 with errno set (STATE_REFUSED) and 'errp'
 * filled.
 */
int state_check_local (const char *dir, idt_error_t *errp);

#endif /* STATE_STATEFILE_H */
