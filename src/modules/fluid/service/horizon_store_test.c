/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* horizon_store_test.c - a stored record is read back; a file that is in use, damaged or foreign is refused with a
 * reason
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "libsqlite/database.h"
#include "test/tap.h"
#include "test/faulty_disk.h"
#include "modules/fluid/service/horizon_store.h"

static char dir[64];
static bool all_bits;
static const struct lease_record new_record = { 0 };

static const char *const leftovers[] = {
    "fluid.sqlite",
    "fluid.sqlite-wal",
    "fluid.sqlite-journal",
    "fluid.sqlite.damaged-1",
    "fluid.sqlite.damaged-1-wal",
    "fluid.sqlite.damaged-1-journal",
    "fluid.sqlite.damaged-2",
    "fluid.sqlite.damaged-2-journal",
    "fluid.sqlite.holder",
    NULL,
};

static const char *file (const char *name)
{
    static char path[128];

    snprintf (path, sizeof (path), "%s/%s", dir, name);
    return path;
}

static void make_temp (char path[static sizeof (dir)])
{
    const char *tmp = getenv ("TMPDIR");

    snprintf (path, sizeof (dir), "%.30s/idtree-store-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp (path))
        bail_out ("mkdtemp");
}

static void make_dir (void)
{
    make_temp (dir);
    disk_choose (dir);
}

static void remove_dir (void)
{
    for (const char *const *name = leftovers; *name; name++)
        unlink (file (*name));
    ok (rmdir (dir) == 0, "a horizon store leaves no other file in the folder");
}

static struct horizon_store *open_store (struct horizon_store_content *content, idt_error_t *err)
{
    *err = (idt_error_t){ "" };
    return horizon_store_open (&(struct module_place){ .dir = dir }, "broker 12345678, process 1 on here", content,
                               err);
}

/* Write a horizon and wait for the result. */
static bool write_and_wait (struct horizon_store *st, uint64_t horizon, idt_error_t *err)
{
    struct pollfd pfd = { .fd = horizon_store_fd (st), .events = POLLIN };
    uint64_t stored = 0;
    int rc = 0;

    horizon_store_write (st, &(struct lease_record){ horizon, horizon / 2, 75, horizon / 3, 0 });
    wait_until ((rc = horizon_store_result (st, &stored, err)) != 0) poll (&pfd, 1, TAP_WAIT_S * 1000);
    return rc > 0 && stored == horizon;
}

static void test_good (void)
{
    struct horizon_store_content content;
    struct horizon_store *st;
    idt_error_t err;
    uint64_t h;

    make_dir ();
    st = open_store (&content, &err);
    ok (st && content.is_new, "if the file of the horizon store is missing, it is created: %s", err.text);
    ok (horizon_store_init (st, 1234567, &new_record, &err) == 0, "a new horizon store gets its first record");
    ok (horizon_store_result (st, &h, &err) == 0, "before the first write a horizon store has no result");
    ok (write_and_wait (st, 1000, &err) && write_and_wait (st, 2000, &err),
        "the thread of a horizon store stores horizons");
    ok (horizon_store_result (st, &h, &err) == 0, "the result of each write is returned once");
    ok (horizon_store_close (st, NULL, &err) == 0, "a horizon store can be closed without a last record");
    st = open_store (&content, &err);
    ok (st && !content.is_new && content.record.horizon_ms == 2000 && content.record.watermark_ms == 1000
            && content.record.settle_ms == 75 && content.epoch_ms == 1234567,
        "a stored record is read back");
    ok (horizon_store_close (st, &(struct lease_record){ 1500, 10, 75, 0, 0 }, &err) == 0
            && (st = open_store (&content, &err)) && content.record.horizon_ms == 1500,
        "a clean stop may lower the horizon");
    horizon_store_write (st, &(struct lease_record){ 3000, 10, 75, 0, 0 });
    ok (horizon_store_close (st, &(struct lease_record){ 2500, 10, 75, 0, 0 }, &err) == 0
            && (st = open_store (&content, &err)) && content.record.horizon_ms == 2500,
        "the record of a clean stop replaces the record of a write under way");
    horizon_store_close (st, NULL, &err);
    remove_dir ();
}

static void test_busy (void)
{
    struct horizon_store_content content;
    idt_error_t err;
    struct horizon_store *st, *second;
    int status;

    make_dir ();
    st = open_store (&content, &err);
    horizon_store_init (st, 1, &new_record, &err);
    second = open_store (&content, &err);
    ok (!second && errno == EBUSY && strstr (err.text, dir) && strstr (err.text, "broker 12345678, process 1 on here"),
        "a second open of a horizon store in the same process is refused: %s", err.text);
    pid_t pid = fork ();
    if (pid == 0)
        _exit (!open_store (&content, &err) && errno == EBUSY ? 0 : 1);
    waitpid (pid, &status, 0);
    ok (status == 0, "a second open of a horizon store in another process is refused");
    ok (write_and_wait (st, 1000, &err), "a refused second open does not disturb the first store");
    horizon_store_close (st, NULL, &err);
    remove_dir ();
}

static void test_kill (void)
{
    struct horizon_store_content content;
    idt_error_t err;
    struct horizon_store *st;
    int to_parent[2];
    uint64_t reported = 0, n;

    make_dir ();
    if (pipe (to_parent) < 0)
        bail_out ("pipe");
    pid_t pid = fork ();
    if (pid == 0) {
        st = open_store (&content, &err);
        horizon_store_init (st, 1, &new_record, &err);
        for (uint64_t h = 1;; h++)
            if (!write_and_wait (st, h, &err) || write (to_parent[1], &h, sizeof (h)) < 0)
                _exit (1);
    }
    close (to_parent[1]);
    while (reported < 200 && read (to_parent[0], &n, sizeof (n)) == sizeof (n))
        reported = n;
    kill (pid, SIGKILL);
    while (read (to_parent[0], &n, sizeof (n)) == sizeof (n))
        reported = n;
    waitpid (pid, NULL, 0);
    close (to_parent[0]);
    st = open_store (&content, &err);
    ok (st && reported >= 200 && content.record.horizon_ms >= reported,
        "after kill -9 the horizon that was reported as durable is read back");
    horizon_store_close (st, NULL, &err);
    remove_dir ();
}

static void overwrite (const char *name, off_t offset, const char *data, size_t size)
{
    int fd = open (file (name), O_WRONLY | O_CREAT, 0600);

    if (fd < 0 || pwrite (fd, data, size, offset) != (ssize_t)size)
        bail_out ("pwrite");
    close (fd);
}

static void test_damaged (void)
{
    char junk[4096];
    struct horizon_store_content content;
    idt_error_t err;
    struct horizon_store *st;

    memset (junk, 'x', sizeof (junk));
    make_dir ();
    overwrite ("fluid.sqlite", 0, junk, sizeof (junk));
    ok (!open_store (&content, &err) && errno == EBADMSG && strstr (err.text, "--recover-horizon"),
        "a file of random bytes is refused: %s", err.text);
    unlink (file ("fluid.sqlite"));
    st = open_store (&content, &err);
    horizon_store_init (st, 1, &new_record, &err);
    horizon_store_close (st, NULL, &err);
    overwrite ("fluid.sqlite", 512, junk, 512);
    ok (!open_store (&content, &err) && errno == EBADMSG, "a file with a damaged page is refused: %s", err.text);
    unlink (file ("fluid.sqlite"));
    st = open_store (&content, &err);
    horizon_store_init (st, 1, &new_record, &err);
    horizon_store_close (st, NULL, &err);
    overwrite ("fluid.sqlite", 68, "\0\0\0\1", 4);
    ok (!open_store (&content, &err) && errno == EBADMSG && strstr (err.text, "not a file of idtree"),
        "a file of another program is refused: %s", err.text);
    remove_dir ();
    ok (!open_store (&content, &err) && strstr (err.text, dir), "the message for a missing folder names the folder: %s",
        err.text);
}

/* A full disk, simulated by the limit of the size of files. */
static void test_full (void)
{
    struct rlimit limit, old;
    struct horizon_store_content content;
    idt_error_t err;
    struct horizon_store *st;
    bool failed = false;
    uint64_t h = 1;

    make_dir ();
    signal (SIGXFSZ, SIG_IGN);
    st = open_store (&content, &err);
    horizon_store_init (st, 1, &new_record, &err);
    getrlimit (RLIMIT_FSIZE, &old);
    limit = old;
    limit.rlim_cur = 512;
    setrlimit (RLIMIT_FSIZE, &limit);
    while (!failed && h < 1000)
        failed = !write_and_wait (st, h++, &err);
    setrlimit (RLIMIT_FSIZE, &old);
    ok (failed && strstr (err.text, dir), "a failed write of a horizon is reported with its reason: %s", err.text);
    ok (write_and_wait (st, 5000, &err), "writes of horizons succeed again when the disk has space");
    horizon_store_close (st, NULL, &err);
    st = open_store (&content, &err);
    ok (st && content.record.horizon_ms == 5000, "the record that was written after the disk had space is read back");
    horizon_store_close (st, NULL, &err);
    remove_dir ();
}

/* --- a faulty disk ------------------------------------------------------------------------------------- */

static uint64_t horizon_after_power_cut (void)
{
    char to[sizeof (dir)], from[sizeof (dir)];
    struct horizon_store_content content = { .is_new = false };
    idt_error_t err;

    make_temp (to);
    disk_power_cut (dir, to);
    memcpy (from, dir, sizeof (dir));
    strcpy (dir, to);
    struct horizon_store *st = open_store (&content, &err);
    if (!st)
        diag ("after the power cut: %s", err.text);
    else
        horizon_store_close (st, NULL, &err);
    for (const char *const *name = leftovers; *name; name++)
        unlink (file (*name));
    rmdir (dir);
    memcpy (dir, from, sizeof (dir));
    return st ? content.record.horizon_ms : 0;
}

/* The nth change of the disk fails, or with 'on' each change from the nth on. After a power cut every horizon that was
 * reported stored must be read back; one that was not may be. Returns whether a fault was met.
 */
static bool play_fault (int nth, bool on, enum disk_fault fault, int *bad)
{
    struct horizon_store_content content;
    idt_error_t err;
    uint64_t reported = 1000;

    make_dir ();
    struct horizon_store *st = open_store (&content, &err);
    horizon_store_init (st, 1, &new_record, &err);
    *bad += !write_and_wait (st, 1000, &err);
    disk_fail (nth, on, fault);
    if (write_and_wait (st, 2000, &err))
        reported = 2000;
    else
        *bad += !strstr (err.text, dir);
    uint64_t found = horizon_after_power_cut ();
    *bad += found != 1000 && found != 2000;
    *bad += found < reported;
    bool met = disk_failed ();
    disk_fail (0, false, fault);
    *bad += !write_and_wait (st, 3000, &err);
    *bad += horizon_after_power_cut () != 3000;
    *bad += horizon_store_close (st, NULL, &err) < 0;
    st = open_store (&content, &err);
    *bad += !st || content.record.horizon_ms != 3000;
    if (st)
        horizon_store_close (st, NULL, &err);
    for (const char *const *name = leftovers; *name; name++)
        unlink (file (*name));
    rmdir (dir);
    return met;
}

static void test_faults (void)
{
    static const char *const names[] = { "full", "broken", "broken in the middle of a write" };

    for (int fault = DISK_FULL; fault <= DISK_TORN; fault++)
        for (int on = 0; on < 2; on++) {
            int bad = 0, nth;

            for (nth = 1; nth < 100 && play_fault (nth, on, fault, &bad); nth++)
                ;
            ok (bad == 0 && nth > 3 && nth < 100,
                "if the disk is %s %s the nth of %d changes, a stored record is read back", names[fault],
                on ? "from" : "at", nth - 1);
        }
}

/* A fault during the first start of an instance. */
static void test_first_start (void)
{
    struct horizon_store_content content;
    idt_error_t err;
    int bad = 0, nth;
    bool met = true;

    for (nth = 1; nth < 100 && met; nth++) {
        make_dir ();
        disk_fail (nth, true, DISK_FULL);
        struct horizon_store *st = open_store (&content, &err);
        int rc = st ? horizon_store_init (st, 7, &new_record, &err) : -1;
        met = disk_failed ();
        disk_fail (0, false, DISK_FULL);
        if (st)
            horizon_store_close (st, NULL, &err);
        st = open_store (&content, &err);
        bad += !st || (rc == 0 && (content.is_new || content.epoch_ms != 7)) || (rc < 0 && !content.is_new);
        if (st)
            horizon_store_close (st, NULL, &err);
        for (const char *const *name = leftovers; *name; name++)
            unlink (file (*name));
        rmdir (dir);
    }
    ok (bad == 0 && nth > 5 && nth < 100,
        "a first start of a horizon store that fails at any of %d changes leaves nothing that stops the next start",
        nth - 2);
}

static void test_slow (void)
{
    struct horizon_store_content content;
    idt_error_t err;
    uint64_t h = 0;
    int rc = 0;

    make_dir ();
    struct horizon_store *st = open_store (&content, &err);
    horizon_store_init (st, 1, &new_record, &err);
    disk_hang (true);
    horizon_store_write (st, &(struct lease_record){ 1000, 0, 0, 0, 0 });
    ok (horizon_store_result (st, &h, &err) == 0 && horizon_after_power_cut () == 0,
        "while the disk hangs the caller does not block, and no write is reported as stored");
    disk_hang (false);
    struct pollfd pfd = { .fd = horizon_store_fd (st), .events = POLLIN };
    wait_until ((rc = horizon_store_result (st, &h, &err)) != 0) poll (&pfd, 1, TAP_WAIT_S * 1000);
    ok (rc > 0 && h == 1000 && horizon_after_power_cut () == 1000,
        "when the disk no longer hangs, the write is reported as stored and is durable");
    horizon_store_close (st, NULL, &err);
    remove_dir ();
}

/* --- damage -------------------------------------------------------------------------------------------- */

static void flip (const char *name, off_t offset, char mask)
{
    int fd = open (file (name), O_RDWR);
    char c;

    if (fd < 0 || pread (fd, &c, 1, offset) != 1)
        bail_out ("pread");
    c ^= mask;
    if (pwrite (fd, &c, 1, offset) != 1)
        bail_out ("pwrite");
    close (fd);
}

static bool copy_file (const char *from_dir, const char *name, const char *to_dir)
{
    char path[256], data[65536];
    ssize_t size;

    snprintf (path, sizeof (path), "%s/%s", from_dir, name);
    int in = open (path, O_RDONLY);
    snprintf (path, sizeof (path), "%s/%s", to_dir, name);
    unlink (path);
    if (in < 0)
        return false;
    int out = open (path, O_WRONLY | O_CREAT, 0600);
    if (out < 0 || (size = read (in, data, sizeof (data))) < 0 || write (out, data, (size_t)size) != size)
        bail_out ("copy");
    close (in);
    close (out);
    return true;
}

static void copy_dir (const char *from, const char *to)
{
    for (const char *const *name = leftovers; *name; name++)
        copy_file (from, *name, to);
}

/* Which bits of a file are flipped: a sample, other bits in each turn, and more of the bytes with most meaning; with
 * the argument "all" all bits.
 */
static bool is_chosen (off_t byte, int bit, int turn)
{
    return all_bits || (byte * 8 + bit + 7 * turn) % (byte < 32 ? 23 : 307) == 0;
}

struct damage {
    int flips, refused, silent, wrong;
};

/* Flip the chosen bits of one file of the state in 'from', one at a time, and open it. Either everything that was
 * reported stored is read back, or the file is refused with a sentence.
 */
static void flip_each_bit (const char *from, const char *name, uint64_t reported, int turn, struct damage *damage)
{
    char to[sizeof (dir)], was[sizeof (dir)], path[256];
    struct horizon_store_content content;
    struct stat sb;
    idt_error_t err;

    snprintf (path, sizeof (path), "%s/%s", from, name);
    if (stat (path, &sb) < 0)
        return;
    make_temp (to);
    memcpy (was, dir, sizeof (dir));
    strcpy (dir, to);
    for (off_t i = 0; i < sb.st_size; i++)
        for (int bit = 0; bit < 8; bit++) {
            if (!is_chosen (i, bit, turn))
                continue;
            copy_dir (from, to);
            flip (name, i, (char)(1 << bit));
            struct horizon_store *st = open_store (&content, &err);
            damage->flips++;
            damage->refused += !st;
            damage->silent += !st && !strstr (err.text, dir);
            if (st && (content.is_new || content.record.horizon_ms < reported || content.epoch_ms != 1767225600000)) {
                diag ("bit %d of byte %d of %s: %llu instead of %llu", bit, (int)i, name,
                      (unsigned long long)content.record.horizon_ms, (unsigned long long)reported);
                damage->wrong++;
            }
            if (st)
                horizon_store_close (st, NULL, &err);
        }
    for (const char *const *n = leftovers; *n; n++)
        unlink (file (*n));
    rmdir (to);
    memcpy (dir, was, sizeof (dir));
}

static void flip_all (const char *from, uint64_t reported, int turn, struct damage *damage)
{
    for (const char *const *name = leftovers; *name; name++)
        flip_each_bit (from, *name, reported, turn, damage);
}

/* Set the original size in the journal's head to 0 pages: SQLite then makes the file empty. */
static void clear_pages (const char *from, uint64_t reported, int turn, struct damage *damage)
{
    char was[sizeof (dir)];
    struct horizon_store_content content;
    idt_error_t err;
    struct stat sb;

    (void)turn;
    memcpy (was, dir, sizeof (dir));
    strcpy (dir, from);
    if (stat (file ("fluid.sqlite-journal"), &sb) == 0 && sb.st_size > 512) {
        overwrite ("fluid.sqlite-journal", 16, "\0\0\0\0", 4);
        struct horizon_store *st = open_store (&content, &err);
        damage->refused += !st;
        damage->wrong += st && (content.is_new || content.record.horizon_ms < reported);
        if (st)
            horizon_store_close (st, NULL, &err);
    }
    memcpy (dir, was, sizeof (dir));
}

typedef void hurt_fn (const char *from, uint64_t reported, int turn, struct damage *damage);

/* Damage the files that a kill, or a power cut, leaves at the nth change of a write. Returns whether there is such a
 * change.
 */
static bool damage_at (int nth, bool power_cut, hurt_fn *hurt, struct damage *damage)
{
    char left[sizeof (dir)];
    struct horizon_store_content content;
    idt_error_t err;

    make_dir ();
    struct horizon_store *st = open_store (&content, &err);
    horizon_store_init (st, 1767225600000, &new_record, &err);
    bool good = write_and_wait (st, 120001, &err);
    make_temp (left);
    disk_fail (nth, true, DISK_TORN);
    uint64_t reported = write_and_wait (st, 620001, &err) ? 620001 : 120001;
    bool met = disk_failed ();
    if (power_cut)
        disk_power_cut (dir, left);
    else
        copy_dir (dir, left);
    disk_fail (0, false, DISK_TORN);
    horizon_store_close (st, NULL, &err);
    for (const char *const *name = leftovers; *name; name++)
        unlink (file (*name));
    rmdir (dir);
    hurt (left, reported, nth, damage);
    strcpy (dir, left);
    for (const char *const *name = leftovers; *name; name++)
        unlink (file (*name));
    rmdir (left);
    return good && met;
}

/* A flipped bit in a file that a crash leaves, at any moment, does no harm or is detected. */
static void test_every_bit (void)
{
    for (int power_cut = 0; power_cut < 2; power_cut++) {
        struct damage damage = { 0, 0, 0, 0 };
        int nth;

        for (nth = 1; nth < 100 && damage_at (nth, power_cut, flip_all, &damage); nth++)
            ;
        ok (damage.wrong == 0 && damage.silent == 0 && damage.refused > 20 && nth > 3 && nth < 100,
            "%d bits are flipped in what %s leaves at any of %d changes: %d of the files are refused, and the "
            "others do no harm",
            damage.flips, power_cut ? "a power cut" : "a kill", nth - 1, damage.refused);
    }
}

static void test_emptied (void)
{
    struct damage damage = { 0, 0, 0, 0 };

    for (int nth = 1; nth < 100 && damage_at (nth, false, clear_pages, &damage); nth++)
        ;
    ok (damage.wrong == 0 && damage.refused > 0,
        "a file of horizons that its journal made empty is not taken for a new one");
}

/* A file of an earlier version, which a crash left with a write-ahead log beside it. */
static void test_log_of_before (void)
{
    static const struct database_kind before = { .name = "fluid.sqlite", .application_id = 1768191078, .version = 1 };
    char left[sizeof (dir)], was[sizeof (dir)];
    struct horizon_store_content content;
    struct stat sb;
    idt_error_t err;

    make_dir ();
    make_temp (left);
    struct horizon_store *st = open_store (&content, &err);
    horizon_store_init (st, 1767225600000, &(struct lease_record){ 620001, 7, 75, 0, 0 }, &err);
    horizon_store_close (st, NULL, &err);
    struct database *d = database_open (&before, dir, "nobody", &err);
    ok (d && database_run (d, "UPDATE fluid SET id = 0;", &err) == 0,
        "a file of horizons of an earlier version has a log: %s", err.text);
    copy_dir (dir, left);
    ok (copy_file (dir, "fluid.sqlite-wal", left), "a crash leaves the log of an earlier version's file");
    database_close (d);
    memcpy (was, dir, sizeof (dir));
    strcpy (dir, left);
    ok ((st = open_store (&content, &err)) && content.record.horizon_ms == 620001
            && stat (file ("fluid.sqlite-wal"), &sb) < 0,
        "the content of an earlier version's log is taken over, and the log is removed: %s", err.text);
    horizon_store_close (st, NULL, &err);
    remove_dir ();
    memcpy (dir, was, sizeof (dir));
    for (const char *const *name = leftovers; *name; name++)
        unlink (file (*name));
    rmdir (dir);
}

/* --- a file that is moved or replaced -------------------------------------------------------------------- */

static void test_moved (void)
{
    char away[sizeof (dir) + 8];
    struct horizon_store_content content;
    idt_error_t err;

    make_dir ();
    struct horizon_store *st = open_store (&content, &err);
    horizon_store_init (st, 1, &new_record, &err);
    ok (write_and_wait (st, 1000, &err), "a horizon is stored in a folder that exists");
    snprintf (away, sizeof (away), "%s-away", dir);
    if (rename (dir, away) < 0)
        bail_out ("rename");
    ok (!write_and_wait (st, 2000, &err) && strstr (err.text, dir) && strstr (err.text, "was removed or replaced"),
        "no horizon is stored after the folder of the store was removed: %s", err.text);
    if (mkdir (dir, 0700) < 0)
        bail_out ("mkdir");
    copy_dir (away, dir);
    ok (!write_and_wait (st, 3000, &err) && strstr (err.text, "was removed or replaced"),
        "no horizon is stored if a copy has replaced the file of the store: %s", err.text);
    for (const char *const *name = leftovers; *name; name++)
        unlink (file (*name));
    if (rmdir (dir) < 0 || rename (away, dir) < 0)
        bail_out ("rename");
    ok (write_and_wait (st, 4000, &err), "a horizon is stored when the original file of the store is back");
    unlink (file ("fluid.sqlite"));
    ok (!write_and_wait (st, 5000, &err)
            && horizon_store_close (st, &(struct lease_record){ 6000, 0, 0, 0, 0 }, &err) < 0
            && strstr (err.text, "was removed or replaced"),
        "if the file of the store is removed, neither a write nor the last record is stored: %s", err.text);
    for (const char *const *name = leftovers; *name; name++)
        unlink (file (*name));
    remove_dir ();
}

static void test_aside (void)
{
    struct horizon_store_content content;
    char path[256];
    idt_error_t err;
    struct stat sb;

    make_dir ();
    overwrite ("fluid.sqlite", 0, "", 0);
    ok (!open_store (&content, &err) && errno == EBADMSG && strstr (err.text, "empty"),
        "an empty file of horizons is not taken for a new one: %s", err.text);
    overwrite ("fluid.sqlite", 0, "junk", 4);
    overwrite ("fluid.sqlite-wal", 0, "more", 4);
    ok (!open_store (&content, &err) && horizon_store_set_aside (dir, path, sizeof (path), &err) == 0
            && strcmp (path, file ("fluid.sqlite.damaged-1")) == 0 && stat (path, &sb) == 0 && sb.st_size == 4,
        "a damaged file of horizons is renamed");
    struct horizon_store *st = open_store (&content, &err);
    ok (st && content.is_new && horizon_store_init (st, 5, &(struct lease_record){ 77, 0, 3, 0, 0 }, &err) == 0,
        "after a damaged file was renamed a new one can be created");
    horizon_store_close (st, NULL, &err);
    st = open_store (&content, &err);
    ok (st && content.record.horizon_ms == 77 && content.record.settle_ms == 3,
        "the file in place of a damaged one gets the given record");
    horizon_store_close (st, NULL, &err);
    overwrite ("fluid.sqlite", 0, "junk", 4);
    ok (horizon_store_set_aside (dir, path, sizeof (path), &err) == 0
            && strcmp (path, file ("fluid.sqlite.damaged-2")) == 0,
        "damaged files that were renamed earlier are kept");
    remove_dir ();
}

int main (int argc, char **argv)
{
    all_bits = argc > 1 && strcmp (argv[1], "all") == 0;
    if (disk_install () < 0)
        bail_out ("SQLite cannot be loaded");
    test_good ();
    test_busy ();
    test_kill ();
    test_damaged ();
    test_full ();
    test_emptied ();
    test_every_bit ();
    test_log_of_before ();
    test_moved ();
    test_aside ();
    test_faults ();
    test_first_start ();
    test_slow ();
    return done_testing ();
}
