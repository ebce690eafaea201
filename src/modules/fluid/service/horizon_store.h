/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* horizon_store.h - the durable horizon and epoch of an instance, at rank 0
 *
 * The file is fluid.sqlite in the state directory, locked for as long as the store is open: a second root on it does
 * not start.  Writes are made by a thread of the store's own, one at a time; the reactor is told through a descriptor.
 */
#ifndef FLUID_HORIZON_STORE_H
#define FLUID_HORIZON_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/error.h>

#include "modules/fluid/lease/lease.h"

struct horizon_store;

struct horizon_store_content {
    bool is_new; /* there was no file: the rest is 0 */
    struct lease_record record;
    int64_t epoch_ms; /* Unix milliseconds */
};

/* Open the file in folder 'dir', or make it.  'holder' tells others who has it, as "broker UUID of host H, process
 * 17".  Blocks.  Returns NULL with errno set and 'errp' filled:
 *   EBUSY    another broker holds it; the text says who
 *   EBADMSG  the file is damaged, or not one of ours
 *   STATE_REFUSED  it was there once, and is not now; or it is another instance's
 *   others   as the system says (EACCES, EROFS, ENOSPC, ...)
 */
struct horizon_store *horizon_store_open (const char *dir, const char *holder, struct horizon_store_content *content,
                                          idt_error_t *errp);

/* The same, but one that was lost is made anew. */
struct horizon_store *horizon_store_open_anew (const char *dir, const char *holder,
                                               struct horizon_store_content *content, idt_error_t *errp);

/* Move a damaged file in 'dir' away, so that horizon_store_open () makes a new one, and tell its new path in 'path'.
 * Returns 0, or -1 with errno set and 'errp' filled.
 */
int horizon_store_set_aside (const char *dir, char *path, size_t size, idt_error_t *errp);

/* Fill a new file, durably.  Blocks.  Returns 0, or -1 with errno set and 'errp' filled. */
int horizon_store_init (struct horizon_store *st, int64_t epoch_ms, const struct lease_record *record,
                        idt_error_t *errp);

/* Have the thread store a record.  At most one write may be under way.  Never blocks on the disk. */
void horizon_store_write (struct horizon_store *st, const struct lease_record *record);

/* Readable (level-triggered) when a write has ended. */
int horizon_store_fd (const struct horizon_store *st);

/* Take the outcome of the write.  Returns 1 where '*horizon_ms' is durable, -1 with 'errp' filled where it is not, or 0
 * where none has ended.
 */
int horizon_store_result (struct horizon_store *st, uint64_t *horizon_ms, idt_error_t *errp);

/* Wait for the thread, store 'last' (NULL: nothing), and close.  Blocks.  'st' is gone in any case.  Returns 0, or -1
 * with errno set and 'errp' filled where it was not stored: then what was stored before holds.
 */
int horizon_store_close (struct horizon_store *st, const struct lease_record *last, idt_error_t *errp);

#endif /* FLUID_HORIZON_STORE_H */
