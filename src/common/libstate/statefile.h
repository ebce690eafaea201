/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* statefile.h - the file 'instance', which says which instance a folder belongs to
 *
 * The file names the instance and the stores that belong to it. It is made once; afterwards stores are added to its
 * list or removed from it. A crash may leave the new file, the previous one, or no file, but never a part of a file.
 */
#ifndef STATE_STATEFILE_H
#define STATE_STATEFILE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include <idtree/error.h>

#define STATE_UUID_SIZE 37
#define STATE_NAME_SIZE 64
#define STATE_STORE_SIZE 32 /* bytes of a store's name, such as "fluid.sqlite", with its NUL */
#define STATE_STORES_MAX 16

/* The store of the horizon: each instance that made ids has it. */
#define STATE_HORIZON_STORE "fluid.sqlite"

/* The errno if a folder is refused for its content. A restart alone does not change that. */
#define STATE_REFUSED ENOTRECOVERABLE

struct state_store {
    char name[STATE_STORE_SIZE];
    bool unmarked; /* left by a version without marks: the store gets its mark when it is opened */
};

struct statefile {
    char uuid[STATE_UUID_SIZE];
    char name[STATE_NAME_SIZE];
    bool has_epoch;
    int64_t epoch_ms; /* Unix milliseconds; valid if 'has_epoch', otherwise only fluid.sqlite has the epoch */
    int64_t created_ms;
    bool moved;       /* the content is in PostgreSQL now */
    int64_t below_ms; /* only in a memory file: all ids are below this time, Unix milliseconds; 0: not known */
    struct state_store stores[STATE_STORES_MAX];
    unsigned nstores;
};

/* Whether 's' can be a name: 1 to 63 letters, digits and characters of "._-". */
bool state_name_is_good (const char *s);

/* Whether 's' is a UUID in lower case. */
bool state_uuid_is_good (const char *s);

/* Find a store in the list. NULL if it is not listed. */
const struct state_store *state_find_store (const struct statefile *s, const char *name);

/* Add a store to the list of 's' in memory. Returns 0, or -1 with errno ENOSPC or ENAMETOOLONG. */
int state_list_store (struct statefile *s, const char *name, bool unmarked);

/* Read the file in folder 'dir'. Returns 0, or -1 with errno set, 'errp' filled and '*s' untouched:
 *   ENOENT         it does not exist
 *   STATE_REFUSED  it is damaged, of a later version, or not a trusted file; or the content was moved to PostgreSQL
 *   others         as the system says
 */
int state_read (const char *dir, struct statefile *s, idt_error_t *errp);

/* Like state_read (), but the content may have been moved. */
int state_read_moved (const char *dir, struct statefile *s, idt_error_t *errp);

/* Record that the content was moved to PostgreSQL, durably. No broker uses the folder afterwards. Returns 0, or -1 with
 * errno set and 'errp' filled.
 */
int state_set_moved (const char *dir, idt_error_t *errp);

/* Make the file, durably. Returns 0, or -1 with errno set and 'errp' filled; EEXIST if the file exists. */
int state_create (const char *dir, const struct statefile *s, idt_error_t *errp);

/* Remove the file if it is no longer needed. */
void state_remove (const char *dir);

/* Add a store that is complete and marked to the folder's list, durably. Other processes may add stores at the same
 * time. Returns 0, or -1 with errno set and 'errp' filled.
 */
int state_add_store (const char *dir, const char *name, idt_error_t *errp);

/* Remove a lost store from the list. This gives up the content of the store. The store is created again when it is next
 * needed. Returns 0, or -1 with errno set (ENOENT: it is not listed) and 'errp' filled.
 */
int state_drop_store (const char *dir, const char *name, idt_error_t *errp);

/* --- what a rank remembers --------------------------------------------------------------------------- */

/* The file memory-RANK in 'dir' contains the instance that the rank belongs to, and the data that a rank 0 without its
 * state needs to start again. A crash may leave the new file or the previous one. state_recall () reads the file,
 * state_remember () writes it. Both return like state_read ().
 */
int state_recall (const char *dir, uint32_t rank, struct statefile *s, idt_error_t *errp);
int state_remember (const char *dir, uint32_t rank, const struct statefile *s, idt_error_t *errp);

/* Remove the file memory-RANK if it exists. */
void state_unremember (const char *dir, uint32_t rank);

/* --- other small files of a folder ------------------------------------------------------------------- */

/* Write 'text' to the file 'name' in 'dir', durably. STATE_REPLACE replaces an existing file, STATE_EXCLUSIVE does not.
 * Returns 0, or -1 with errno set (EEXIST) and 'errp' filled.
 */
enum state_write { STATE_REPLACE, STATE_EXCLUSIVE };
int state_write_text (const char *dir, const char *name, const char *text, enum state_write how, idt_error_t *errp);

#define STATE_TEXT_MAX 4096

/* Read a small file. It must be a trusted file and not a link. Returns its length, or -1 with errno set and 'errp'
 * filled.
 */
int state_read_text (const char *dir, const char *name, char text[STATE_TEXT_MAX], idt_error_t *errp);

/* --- where a folder lies ----------------------------------------------------------------------------- */

/* The name of a file system of 'type' (statfs (2)) that several hosts may use together; NULL if a file system of this
 * type is local to a host.
 */
const char *state_network_name (unsigned long type);

/* Check that the folder is on a local file system. Returns 0, or -1 with errno set (STATE_REFUSED) and 'errp' filled.
 */
int state_check_local (const char *dir, idt_error_t *errp);

#endif /* STATE_STATEFILE_H */
