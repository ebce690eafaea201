/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* faulty_disk.h - for tests: a disk under SQLite that fails, hangs and loses data on request
 *
 * All files that SQLite opens in this process after disk_install () are on this disk. disk_power_cut () loses data that
 * was written and not synced.
 */
#ifndef FLUID_FAULTY_DISK_H
#define FLUID_FAULTY_DISK_H

#include <stdbool.h>

enum disk_fault {
    DISK_FULL,
    DISK_BROKEN,
    DISK_TORN,     /* half of a write is done, then the write fails */
    DISK_QUOTA,    /* the quota of the owner is used up */
    DISK_LIMIT,    /* the limit of file sizes is reached */
    DISK_FULL_LATE /* writes succeed and the sync fails with ENOSPC, as on network file systems */
};

/* Put the disk under SQLite for the rest of the process. Returns 0, or -1 if SQLite cannot be loaded. */
int disk_install (void);

/* Let faults concern files in 'dir' only. No file may be open. */
void disk_choose (const char *dir);

/* Fail the nth change from now on (1: the next one; writes, truncations and syncs count), and all later changes if 'on'
 * is set. 0: no change fails any longer.
 */
void disk_fail (int nth, bool on, enum disk_fault fault);

/* Whether a change has failed since disk_fail (). */
bool disk_failed (void);

/* Set whether a write leaves the bytes beside it in its sector unchanged, as on most disks. If not, which is the
 * default, SQLite fills sectors with copies of what it wrote last. Concerns files that are opened later.
 */
void disk_whole (bool whole);

/* Let syncs wait until disk_hang (false). */
void disk_hang (bool hang);

/* Whether a sync waits. */
bool disk_hangs (void);

/* Write the files of 'dir' as they were synced last, which is what a power cut now would leave, to the folder 'to'. */
void disk_power_cut (const char *dir, const char *to);

#endif /* FLUID_FAULTY_DISK_H */
