/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* faulty_disk.c - a VFS of SQLite on top of the system's VFS
 *
 * Each file wraps a file of the system's VFS. The image of a file is the content that it had when it was last synced.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "test/faulty_disk.h"

#define MAX_IMAGES 64
#define MAX_SIZE (1 << 20)

struct image {
    char path[256];
    char *data;
    sqlite3_int64 size; /* -1: the file was never synced; above MAX_SIZE: no image is kept */
};

struct file {
    sqlite3_file base;
    struct image *image;
    bool chosen;
    sqlite3_file *real;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t go;
    sqlite3_vfs vfs, *real;
    struct image *image[MAX_IMAGES];
    int nimages;
    char dir[256];
    int left; /* number of changes until the fault; 0: no fault */
    bool on, failed, hang, whole;
    int waiting; /* number of syncs that hang */
    enum disk_fault fault;
} disk = { .lock = PTHREAD_MUTEX_INITIALIZER, .go = PTHREAD_COND_INITIALIZER };

static sqlite3_file *real_of (sqlite3_file *f)
{
    return ((struct file *)f)->real;
}

/* Count a change of the file. Returns whether the change must fail. */
static bool fails (const sqlite3_file *f)
{
    bool now;

    if (!((const struct file *)f)->chosen)
        return false;
    pthread_mutex_lock (&disk.lock);
    now = disk.left == 1;
    if (disk.left > 1 || (now && !disk.on))
        disk.left--;
    disk.failed = disk.failed || now;
    pthread_mutex_unlock (&disk.lock);
    return now;
}

static enum disk_fault fault_of_now (void)
{
    pthread_mutex_lock (&disk.lock);
    enum disk_fault fault = disk.fault;
    pthread_mutex_unlock (&disk.lock);
    return fault;
}

/* Report a failure as SQLite's own VFS does: set errno, and return SQLITE_FULL for ENOSPC. */
static int failed (int rc, enum disk_fault fault)
{
    switch (fault) {
    case DISK_FULL:
    case DISK_FULL_LATE:
        errno = ENOSPC;
        return rc == SQLITE_IOERR_WRITE ? SQLITE_FULL : rc;
    case DISK_QUOTA:
        errno = EDQUOT;
        return rc;
    case DISK_LIMIT:
        errno = EFBIG;
        return rc;
    default:
        errno = EIO;
        return rc;
    }
}

/* Whether a write has the fault; otherwise a sync has it. */
static bool is_of_write (enum disk_fault fault)
{
    return fault != DISK_FULL_LATE;
}

static int file_write (sqlite3_file *f, const void *data, int n, sqlite3_int64 offset)
{
    enum disk_fault fault = fault_of_now ();

    if (!is_of_write (fault) || !fails (f))
        return real_of (f)->pMethods->xWrite (real_of (f), data, n, offset);
    if (fault == DISK_TORN)
        real_of (f)->pMethods->xWrite (real_of (f), data, n / 2, offset);
    return failed (SQLITE_IOERR_WRITE, fault);
}

static int file_truncate (sqlite3_file *f, sqlite3_int64 size)
{
    enum disk_fault fault = fault_of_now ();

    if (!is_of_write (fault) || !fails (f))
        return real_of (f)->pMethods->xTruncate (real_of (f), size);
    return failed (SQLITE_IOERR_TRUNCATE, fault);
}

static void take_image (struct image *image, sqlite3_file *real)
{
    real->pMethods->xFileSize (real, &image->size);
    if (image->size > MAX_SIZE) /* a damaged file may be this large */
        return;
    char *data = realloc (image->data, (size_t)image->size + 1);
    if (!data || real->pMethods->xRead (real, data, (int)image->size, 0) != SQLITE_OK)
        abort ();
    image->data = data;
}

static int file_sync (sqlite3_file *f, int flags)
{
    struct image *image = ((struct file *)f)->image;

    pthread_mutex_lock (&disk.lock);
    disk.waiting++;
    while (disk.hang && ((struct file *)f)->chosen)
        pthread_cond_wait (&disk.go, &disk.lock);
    disk.waiting--;
    pthread_mutex_unlock (&disk.lock);
    if (fails (f))
        return failed (SQLITE_IOERR_FSYNC, fault_of_now ());
    if (image)
        take_image (image, real_of (f)); /* tests are faster if the real disk is not synced */
    return SQLITE_OK;
}

/* --- calls that are passed on ------------------------------------------------------------------------ */

static int file_close (sqlite3_file *f)
{
    int rc = real_of (f)->pMethods->xClose (real_of (f));

    free (real_of (f));
    return rc;
}

static int file_read (sqlite3_file *f, void *data, int n, sqlite3_int64 offset)
{
    return real_of (f)->pMethods->xRead (real_of (f), data, n, offset);
}

static int file_size (sqlite3_file *f, sqlite3_int64 *size)
{
    return real_of (f)->pMethods->xFileSize (real_of (f), size);
}

static int file_lock (sqlite3_file *f, int level)
{
    return real_of (f)->pMethods->xLock (real_of (f), level);
}

static int file_unlock (sqlite3_file *f, int level)
{
    return real_of (f)->pMethods->xUnlock (real_of (f), level);
}

static int file_check_lock (sqlite3_file *f, int *out)
{
    return real_of (f)->pMethods->xCheckReservedLock (real_of (f), out);
}

static int file_control (sqlite3_file *f, int op, void *arg)
{
    return real_of (f)->pMethods->xFileControl (real_of (f), op, arg);
}

static int file_sector_size (sqlite3_file *f)
{
    return real_of (f)->pMethods->xSectorSize (real_of (f));
}

/* The disk promises neither that writes are atomic, nor that they are in order. */
static int file_characteristics (sqlite3_file *f)
{
    return disk.whole ? SQLITE_IOCAP_POWERSAFE_OVERWRITE : 0;
}

static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_lock,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_characteristics,
};

static struct image *find_image (const char *path)
{
    for (int i = 0; i < disk.nimages; i++)
        if (strcmp (disk.image[i]->path, path) == 0)
            return disk.image[i];
    if (disk.nimages == MAX_IMAGES)
        return NULL;
    struct image *image = calloc (1, sizeof (*image));
    if (image) {
        snprintf (image->path, sizeof (image->path), "%s", path);
        image->size = -1;
        disk.image[disk.nimages++] = image;
    }
    return image;
}

static bool is_chosen (const char *path)
{
    size_t len = strlen (disk.dir);

    return strncmp (path, disk.dir, len) == 0 && path[len] == '/';
}

static int vfs_open (sqlite3_vfs *vfs, const char *path, sqlite3_file *f, int flags, int *out)
{
    struct file *file = (struct file *)f;
    sqlite3_file *real = calloc (1, (size_t)disk.real->szOsFile);

    file->base.pMethods = NULL;
    int rc = real ? disk.real->xOpen (disk.real, path, real, flags, out) : SQLITE_NOMEM;
    if (rc != SQLITE_OK) {
        free (real);
        return rc;
    }
    *file = (struct file){ .base.pMethods = &methods,
                           .image = path ? find_image (path) : NULL,
                           .chosen = path && is_chosen (path),
                           .real = real };
    return SQLITE_OK;
}

static int vfs_delete (sqlite3_vfs *vfs, const char *path, int sync)
{
    struct image *image = find_image (path);

    if (image)
        image->size = -1;
    return disk.real->xDelete (disk.real, path, sync);
}

int disk_install (void)
{
    if (!(disk.real = sqlite3_vfs_find (NULL)))
        return -1;
    disk.vfs = *disk.real;
    disk.vfs.zName = "faulty";
    disk.vfs.szOsFile = sizeof (struct file);
    disk.vfs.pNext = NULL;
    disk.vfs.xOpen = vfs_open;
    disk.vfs.xDelete = vfs_delete;
    return sqlite3_vfs_register (&disk.vfs, 1) == SQLITE_OK ? 0 : -1;
}

/* --- functions for tests ------------------------------------------------------------------------------- */

void disk_choose (const char *dir)
{
    snprintf (disk.dir, sizeof (disk.dir), "%s", dir);
    while (disk.nimages > 0) {
        struct image *image = disk.image[--disk.nimages];
        free (image->data);
        free (image);
    }
}

void disk_fail (int nth, bool on, enum disk_fault fault)
{
    pthread_mutex_lock (&disk.lock);
    disk.left = nth;
    disk.on = on;
    disk.fault = fault;
    disk.failed = false;
    pthread_mutex_unlock (&disk.lock);
}

bool disk_failed (void)
{
    pthread_mutex_lock (&disk.lock);
    bool failed = disk.failed;
    pthread_mutex_unlock (&disk.lock);
    return failed;
}

void disk_whole (bool whole)
{
    disk.whole = whole;
}

void disk_hang (bool hang)
{
    pthread_mutex_lock (&disk.lock);
    disk.hang = hang;
    pthread_cond_broadcast (&disk.go);
    pthread_mutex_unlock (&disk.lock);
}

bool disk_hangs (void)
{
    pthread_mutex_lock (&disk.lock);
    bool hangs = disk.hang && disk.waiting > 0;
    pthread_mutex_unlock (&disk.lock);
    return hangs;
}

void disk_power_cut (const char *dir, const char *to)
{
    size_t len = strlen (dir);

    for (int i = 0; i < disk.nimages; i++) {
        const struct image *image = disk.image[i];
        char path[512];

        if (strncmp (image->path, dir, len) != 0 || image->path[len] != '/')
            continue;
        snprintf (path, sizeof (path), "%s%s", to, image->path + len);
        unlink (path);
        if (image->size < 0)
            continue;
        int fd = open (path, O_WRONLY | O_CREAT, 0600);
        if (fd < 0 || image->size > MAX_SIZE || write (fd, image->data, (size_t)image->size) != image->size)
            abort ();
        close (fd);
    }
}
