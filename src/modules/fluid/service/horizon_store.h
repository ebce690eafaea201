/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* horizon_store.h - the durable horizon and epoch of an instance, at rank 0
 *
 * It is kept in the file fluid.sqlite of the state directory, or in PostgreSQL (root.store). The file is locked as long
 * as the store is open, so a second rank 0 on the same directory does not start. In PostgreSQL only the rank 0 that has
 * opened the store last can write (libpg/fenced.h). A thread of the store makes the writes, one at a time, and notifies
 * the reactor through a file descriptor.
 */
#ifndef FLUID_HORIZON_STORE_H
#define FLUID_HORIZON_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/error.h>

#include "libmodule/module.h"
#include "modules/fluid/lease/watermark.h"

struct horizon_store;

struct horizon_store_content {
    bool is_new; /* the file or row did not exist: 'record' and 'epoch_ms' are 0 */
    struct lease_record record;
    int64_t epoch_ms; /* Unix milliseconds */
    bool has_clock;   /* the place has a clock of its own: */
    int64_t clock_us; /* its wall clock minus that of this host, in microseconds */
};

/* Open the place, or create the file. 'holder' names the caller in the messages of other brokers, as "broker
 * UUID, process 17 on HOST". Blocks. Returns NULL with errno set and 'errp' filled:
 * For a file:
 *   EBUSY    another broker has the file open; the text names that broker
 *   EBADMSG  the file is damaged, or was not made by idtree
 *   STATE_REFUSED  the file existed once and is now missing, or it belongs to another instance
 *   others   as database_open (): EPERM, ENOENT, or from the system (EACCES, EROFS, ENOSPC, ...)
 * In PostgreSQL:
 *   ESTALE   another root leads
 *   EBADMSG  the values are invalid
 *   STATE_REFUSED  the instance has made ids, and its row is missing; or as fenced_open ()
 *   others   as fenced_open ()
 */
struct horizon_store *horizon_store_open (const struct module_place *place, const char *holder,
                                          struct horizon_store_content *content, idt_error_t *errp);

/* Like horizon_store_open (), but creates a file or row that existed once and is missing. */
struct horizon_store *horizon_store_open_anew (const struct module_place *place, const char *holder,
                                               struct horizon_store_content *content, idt_error_t *errp);

/* Rename a damaged file in 'dir', so that horizon_store_open () creates a new one, and write its new path to 'path'.
 * Returns 0, or -1 with errno set and 'errp' filled.
 */
int horizon_store_set_aside (const char *dir, char *path, size_t size, idt_error_t *errp);

/* Fill a new file or table, durably. Blocks. Returns 0, or -1 with errno set and 'errp' filled. */
int horizon_store_init (struct horizon_store *st, int64_t epoch_ms, const struct lease_record *record,
                        idt_error_t *errp);

/* Let the thread store a record. At most one write may be under way. Never blocks on the disk. */
void horizon_store_write (struct horizon_store *st, const struct lease_record *record);

/* Return a descriptor that is readable (level-triggered) when a write has ended. */
int horizon_store_fd (const struct horizon_store *st);

/* Take the result of the write. Returns 1 if '*horizon_ms' is durable, -1 with 'errp' filled if the write failed, or 0
 * if no write has ended.
 */
int horizon_store_result (struct horizon_store *st, uint64_t *horizon_ms, idt_error_t *errp);

/* Whether the write waits because the outcome of an attempt is unknown. 'why' (may be NULL) gets the last failure. */
bool horizon_store_is_unsure (struct horizon_store *st, idt_error_t *why);

/* Wait for the thread, store 'last' (NULL: nothing), and close. Blocks; with PostgreSQL for a few seconds at most.
 * Frees 'st' in all cases. Returns 0. If 'last' was not stored, or that is unknown, it returns -1 with errno set and
 * 'errp' filled. The record that was stored before remains valid.
 */
int horizon_store_close (struct horizon_store *st, const struct lease_record *last, idt_error_t *errp);

#endif /* FLUID_HORIZON_STORE_H */
