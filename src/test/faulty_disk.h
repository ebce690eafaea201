/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* faulty_disk.h - for tests: a disk under SQLite that fails, hangs and forgets on request
 *
 * All files that SQLite opens in this process after disk_install () are on it.  What was written and not synced is
 * lost by disk_power_cut ().
 */
#ifndef FLUID_FAULTY_DISK_H
#define FLUID_FAULTY_DISK_H

#include <stdbool.h>

enum disk_fault {
    DISK_FULL,
    DISK_BROKEN,
    DISK_TORN,     /* half of a write is done, then it fails */
    DISK_QUOTA,    /* of its owner is used up */
    DISK_LIMIT,    /* of file sizes is reached */
    DISK_FULL_LATE /* there seems to be room, until it is synced, as on network file systems */
};

/* Put it under SQLite for the rest of the process.  Returns 0, or -1 where SQLite cannot be loaded. */
int disk_install (void);

/* What follows is about files in 'dir' alone.  No file may be open. */
void disk_choose (const char *dir);

/* Fail the nth change from now on (1: the next; writes, truncations and syncs count), and all after it if 'on'.
 * 0: fail none any more.
 */
void disk_fail (int nth, bool on, enum disk_fault fault);

/* Whether a fault was met since disk_fail (). */
bool disk_failed (void);

/* Whether a write leaves alone what is beside it in its sector, as most disks do.  Else, as from the beginning, SQLite
 * fills sectors up with copies of what it wrote last.  For files that are opened then.
 */
void disk_whole (bool whole);

/* Syncs wait until they are let go. */
void disk_hang (bool hang);

/* Whether one waits. */
bool disk_hangs (void);

/* Write what would be found in 'dir' after a power cut now to 'to': the files as they were synced last. */
void disk_power_cut (const char *dir, const char *to);

#endif /* FLUID_FAULTY_DISK_H */
