/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* faulty_disk.h - for tests: a disk under SQLite that fails, hangs and loses data on request
 *
 * All files that SQLite opens in this process after disk_install () are on this disk. disk_power_cut () loses data that
 * was written, but not synced.
 */
#ifndef FLUID_FAULTY_DISK_H
#define FLUID_FAULTY_DISK_H

#include <stdbool.h>

enum disk_fault {
    DISK_FULL,
    DISK_BROKEN,
    DISK_TORN,     /* half of a write is done, then it fails */
    DISK_QUOTA,    /* the quota of the owner is used up */
    DISK_LIMIT,    /* the limit of file sizes is reached */
    DISK_FULL_LATE /* writes succeed, and the sync fails with ENOSPC, as on network file systems */
};

/* Put the disk under SQLite for the rest of the process. Returns 0, or -1 if SQLite cannot be loaded. */
int disk_install (void);

/* From now on only files in 'dir' have faults. No file may be open. */
void disk_choose (const char *dir);

/* Let the nth change from now on fail, and with 'on' all changes after it, too. 1 is the next change; writes,
 * truncations and syncs count. 0: no change fails any longer.
 */
void disk_fail (int nth, bool on, enum disk_fault fault);

/* Whether a change has failed since disk_fail (). */
bool disk_failed (void);

/* Set whether a write leaves the bytes beside it in its sector unchanged, as on most disks. If not, which is the
 * default, SQLite fills sectors with copies of what it wrote last. The setting applies to files that are opened later.
 */
void disk_whole (bool whole);

/* From now on syncs hang; disk_hang (false) ends this. */
void disk_hang (bool hang);

/* Whether a sync hangs now. */
bool disk_hangs (void);

/* Copy the files of 'dir' as they were when they were last synced to the folder 'to'. These are the files that a power
 * cut would leave now.
 */
void disk_power_cut (const char *dir, const char *to);

#endif /* FLUID_FAULTY_DISK_H */
