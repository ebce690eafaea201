/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_store_disk_test.c - with full or broken disks, removed files, and lives that end, a group is stored completely or
 * not at all
 */
#include <errno.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "test/faulty_disk.h"
#include "test/store_world.h"

static const char *const before = "10=ten", *const all = "10=ten,20=twenty,21=one more",
                         *const other = "10=ten,25=other";

static struct job group_jobs[3], other_job; /* two new jobs, and a copy of the stored one */
static char text[1024];

#define shown(w) world_shown (w, text, sizeof (text))

/* Make a store with one job in it, in a folder whose disk can fail, and with a short log. */
static void make_store (struct world *w)
{
    world_init (w);
    disk_choose (w->dir);
    world_open (w);
    world_open (w);
    world_put (w, 10, "ten");
    group_jobs[0] = world_job (20, "a", "twenty");
    group_jobs[1] = world_job (21, "b", "one more");
    group_jobs[2] = world_job (10, "", "ten");
    other_job = world_job (25, "", "other");
}

static struct job_store_group group_of (struct job *job, struct verdict *v, size_t n)
{
    return (
        struct job_store_group){ .job = job, .verdict = v, .n = n, .max_jobs = UINT64_MAX, .max_bytes = UINT64_MAX };
}

/* --- what the next life would find -------------------------------------------------------------------------- */

static void copy_file (const char *from, const char *to, const char *name)
{
    char path[128], data[4096];
    size_t n;

    snprintf (path, sizeof (path), "%s/%s", from, name);
    FILE *in = fopen (path, "r");
    snprintf (path, sizeof (path), "%s/%s", to, name);
    FILE *out = in ? fopen (path, "w") : NULL;
    while (out && (n = fread (data, 1, sizeof (data), in)) > 0)
        fwrite (data, 1, n, out);
    if (out)
        fclose (out);
    if (in)
        fclose (in);
}

/* Copy the files as they are if this process ends now: all that was written, synced or not. */
static void copy_killed (const struct world *w, const char *to)
{
    copy_file (w->dir, to, "ingest.sqlite");
    copy_file (w->dir, to, "ingest.sqlite-wal");
}

static void copy_cut (const struct world *w, const char *to)
{
    disk_power_cut (w->dir, to);
}

/* The jobs that a store opened on such a copy shows; "?" if it cannot be opened. */
static const char *next_life (const struct world *w, void (*copy) (const struct world *w, const char *to))
{
    struct world next;

    world_init (&next);
    copy (w, next.dir);
    if (!world_open (&next) || shown (&next) != text)
        strcpy (text, "?");
    world_fini (&next);
    return text;
}

static bool is (const char *found, const char *wanted)
{
    if (strcmp (found, wanted) == 0)
        return true;
    diag ("found %s, wanted %s", found, wanted);
    return false;
}

/* --- each write fails in turn ------------------------------------------------------------------------------- */

struct tally {
    int writes;    /* failed ones */
    int unsure;    /* groups that the next life may find */
    int came_back; /* groups found in the copy of a killed process */
    bool told, nothing, found, later, judged;
};

/* After a failure the next life finds nothing of the group, or, if the group is unsure, perhaps all of it. */
static void check_copies (struct tally *t, const struct world *w, bool unsure)
{
    bool back = strcmp (next_life (w, copy_killed), all) == 0;

    t->came_back += back;
    t->found = t->found && (back ? unsure : is (text, before));
    t->found = t->found && (strcmp (next_life (w, copy_cut), all) == 0 ? unsure : is (text, before));
}

/* When the disk works again, the next group is stored, and the failed group does not appear. */
static void go_on (struct tally *t, struct world *w, bool empty)
{
    struct verdict v;
    struct job_store_group group = group_of (&other_job, &v, empty ? 0 : 1);
    const char *wanted = empty ? before : other;

    t->later = t->later && world_work (w, &group, NULL, 0) == 1 && !group.unsure && is (shown (w), wanted)
               && is (next_life (w, copy_killed), wanted) && is (next_life (w, copy_cut), wanted)
               && w->counts.jobs == (empty ? 1 : 2) && w->counts.bytes == (empty ? 3 : 8);
}

/* When the disk works again, the failed group can be stored. */
static void try_again (struct tally *t, struct world *w)
{
    struct verdict v[2];
    struct job_store_group group = group_of (group_jobs, v, 2);

    t->later = t->later && world_work (w, &group, NULL, 0) == 1 && v[0].kind == VERDICT_STORED
               && v[1].kind == VERDICT_STORED && is (shown (w), all) && is (next_life (w, copy_cut), all)
               && w->counts.jobs == 3 && w->counts.bytes == 19 && world_open (w) && is (shown (w), all);
}

/* Whether the verdicts of a failed group are those of the jobs stored before. */
static bool is_judged (const struct verdict *v)
{
    return v[0].kind == VERDICT_REFUSED && v[1].kind == VERDICT_REFUSED && v[2].kind == VERDICT_STORED;
}

/* Store a group while the nth write fails. Returns whether there was an nth write. */
static bool fail_at (struct tally *t, int nth, bool on, enum disk_fault fault)
{
    struct world w;
    struct verdict v[3];
    struct job_store_group group = group_of (group_jobs, v, 3);

    make_store (&w);
    disk_fail (nth, on, fault);
    int rc = world_work (&w, &group, NULL, 0);
    int errnum = errno;
    bool failed = disk_failed ();
    t->writes += failed;
    t->told = t->told && (rc == 1 || (rc < 0 && errnum != 0 && strstr (w.error.text, w.dir)));
    if (rc < 0) {
        t->unsure += group.unsure;
        t->judged = t->judged && (group.unsure || is_judged (v));
        t->nothing = t->nothing && is (shown (&w), before) && w.counts.jobs == 1 && w.counts.bytes == 3;
        check_copies (t, &w, group.unsure);
        disk_fail (0, false, fault);
        if (nth % 3 > 0)
            go_on (t, &w, nth % 3 == 1);
        if (nth % 3 != 2)
            try_again (t, &w);
    }
    else
        t->later = t->later && is (next_life (&w, copy_killed), all) && is (next_life (&w, copy_cut), all);
    disk_fail (0, false, fault);
    world_fini (&w);
    return failed;
}

static struct tally fail_each (bool on, enum disk_fault fault, const char *what)
{
    struct tally t = { .told = true, .nothing = true, .found = true, .later = true, .judged = true };
    int nth = 0;

    while (fail_at (&t, ++nth, on, fault) && nth < 200)
        ;
    ok (t.writes > 4 && t.told, "%s: at each of %d writes the group is reported as failed, or is durable", what,
        t.writes);
    ok (t.judged, "%s: unless the group is unsure, its verdicts say what was stored before", what);
    ok (t.nothing, "%s: no job of a failed group is shown or counted", what);
    ok (t.found, "%s: the next life finds no failed group that was not unsure (%d of %d were found)", what, t.came_back,
        t.unsure);
    ok (t.later, "%s: when the disk works again groups are stored, and the failed group does not appear", what);
    return t;
}

/* If a sync fails for lack of space, the data is written: the next life finds it after this process is killed. */
static void check_full_late (void)
{
    struct world w;
    struct verdict v[3];
    struct job_store_group group = group_of (group_jobs, v, 3);

    make_store (&w);
    disk_fail (1, true, DISK_FULL_LATE);
    ok (world_work (&w, &group, NULL, 0) < 0 && group.unsure && is (next_life (&w, copy_killed), all),
        "if a sync fails for lack of space it is unsure whether the group is stored: %s", w.error.text);
    disk_fail (0, false, DISK_FULL_LATE);
    world_fini (&w);
}

static void check_room (enum disk_fault fault, const char *fault_text)
{
    struct world w;
    struct verdict v[3];
    struct job_store_group group = group_of (group_jobs, v, 3);

    make_store (&w);
    disk_fail (1, true, fault);
    ok (world_work (&w, &group, NULL, 0) < 0 && errno == ENOSPC && strstr (w.error.text, fault_text),
        "a failed group on a full disk is reported with the lack of space: %s", w.error.text);
    disk_fail (0, false, fault);
    world_fini (&w);
}

static void check_faults (void)
{
    struct tally t = fail_each (true, DISK_BROKEN, "a broken disk");

    ok (t.came_back > 0, "a group that was written and not synced is found by the next life");
    fail_each (false, DISK_BROKEN, "a write that fails once");
    fail_each (true, DISK_TORN, "a disk that tears writes");
    fail_each (true, DISK_FULL, "a full disk that pads sectors");
    disk_whole (true);
    t = fail_each (true, DISK_FULL, "a full disk");
    ok (t.unsure < t.writes / 2, "on a full disk a failed group is sure not to be stored (%d of %d not)", t.unsure,
        t.writes);
    t = fail_each (true, DISK_QUOTA, "a used-up quota");
    ok (t.unsure < t.writes / 2, "with a used-up quota a failed group is sure not to be stored (%d of %d not)",
        t.unsure, t.writes);
    t = fail_each (true, DISK_LIMIT, "a file that may not grow");
    ok (t.unsure < t.writes / 2, "at the limit of file sizes a failed group is sure not to be stored (%d of %d not)",
        t.unsure, t.writes);
    disk_whole (false);
    check_full_late ();
}

/* An acknowledgement that fails changes nothing. */
static void check_ack_fails (void)
{
    struct world w;
    struct job_store_group group = { .ack = 10, .now_s = 100 }, forget = { .now_s = 200, .forget_s = 150 };
    struct job_store_read read = { .upto = 10, .one = true, .specs = true };

    make_store (&w);
    disk_fail (1, true, DISK_FULL);
    ok (world_work (&w, &group, &read, 1) < 0 && errno == ENOSPC && strstr (w.error.text, "disk is full"),
        "a failed acknowledgement is reported: %s", w.error.text);
    ok (w.counts.jobs == 1 && w.counts.acked == 0 && w.counts.remembered == 0,
        "after a failed acknowledgement no job is acknowledged");
    ok (read.found.count == 1 && !read.acked && read.errnum == 0,
        "reads in the same piece of work are done even if the group failed");
    jobwire_buf_fini (&read.found);
    disk_fail (0, false, DISK_FULL);
    ok (world_work (&w, &group, NULL, 0) == 1 && w.counts.jobs == 0 && w.counts.remembered == 1,
        "a failed acknowledgement can be tried again");
    disk_fail (1, true, DISK_FULL);
    ok (world_work (&w, &forget, NULL, 0) < 0 && w.counts.remembered == 1 && w.counts.floor == 0,
        "if jobs cannot be forgotten on a full disk no job is forgotten");
    disk_fail (0, false, DISK_FULL);
    ok (world_work (&w, &forget, NULL, 0) == 1 && w.counts.remembered == 0 && w.counts.floor == 11,
        "forgetting jobs that failed can be tried again");
    world_fini (&w);
}

/* --- the file is removed ------------------------------------------------------------------------------------ */

static void move (const struct world *w, const char *from, const char *to)
{
    char path[128], other_path[128];

    snprintf (path, sizeof (path), "%s/%s", w->dir, from);
    snprintf (other_path, sizeof (other_path), "%s/%s", w->dir, to);
    rename (path, other_path);
}

static void take_away (const struct world *w)
{
    move (w, "ingest.sqlite", "aside");
}

static void put_back (const struct world *w)
{
    move (w, "aside", "ingest.sqlite");
}

static void check_replaced (void)
{
    struct world w;
    struct verdict v[2];
    struct job_store_group group = group_of (group_jobs, v, 2);

    make_store (&w);
    take_away (&w);
    ok (world_work (&w, &group, NULL, 0) < 0 && errno == ESTALE && !group.unsure,
        "no group is stored into a store whose file was moved away: %s", w.error.text);
    put_back (&w);
    ok (is (next_life (&w, copy_killed), before),
        "a file that was moved away does not have a group that was refused meanwhile");
    ok (world_work (&w, &group, NULL, 0) == 1 && v[1].kind == VERDICT_STORED && is (shown (&w), all),
        "when the file of a store is moved back groups are stored again");
    world_fini (&w);
}

/* The file is moved away during the commit: the group is reported as failed, but it is in the file. */
static void check_replaced_late (void)
{
    struct world w;
    struct verdict v[2];
    struct job_store_group group = group_of (group_jobs, v, 2);

    make_store (&w);
    disk_hang (true);
    job_store_begin (w.st, &group, NULL, 0);
    wait_until (disk_hangs ());
    take_away (&w);
    disk_hang (false);
    int rc;
    wait_until ((rc = job_store_result (w.st, &w.counts, &w.error)) != 0);
    ok (rc < 0 && errno == ESTALE && group.unsure,
        "if the file is moved away during the commit it is unsure whether the group is stored: %s", w.error.text);
    put_back (&w);
    ok (is (next_life (&w, copy_killed), all),
        "after the file was moved away during a commit and back, the next life finds the group");
    ok (world_work (&w, &group, NULL, 0) == 1 && v[0].kind == VERDICT_STORED && w.counts.jobs == 3
            && w.counts.bytes == 19,
        "after the file was moved away during a commit and back, the same life stores the group again, and counts "
        "it once");
    world_fini (&w);
}

static void remove_log (const struct world *w)
{
    char path[128];

    snprintf (path, sizeof (path), "%s/ingest.sqlite-wal", w->dir);
    if (unlink (path) < 0)
        bail_out ("there is no log");
}

/* Only the log is removed: no group is reported as stored that a crash would lose. */
static void check_log_removed (void)
{
    struct world w;
    struct verdict v[2];
    struct job_store_group group = group_of (group_jobs, v, 2);

    make_store (&w);
    remove_log (&w);
    ok (world_work (&w, &group, NULL, 0) < 0 && errno == ESTALE && !group.unsure && v[1].kind == VERDICT_REFUSED
            && strstr (w.error.text, "ingest.sqlite-wal: was removed"),
        "no group is stored into a store whose log was removed: %s", w.error.text);
    job_store_close (w.st);
    w.st = NULL;
    ok (world_open (&w) && is (shown (&w), before), "a clean end of a store keeps the data of a removed log");
    disk_hang (true);
    job_store_begin (w.st, &group, NULL, 0);
    wait_until (disk_hangs ());
    remove_log (&w);
    disk_hang (false);
    int rc;
    wait_until ((rc = job_store_result (w.st, &w.counts, &w.error)) != 0);
    ok (rc < 0 && errno == ESTALE && group.unsure,
        "if the log is removed during the commit it is unsure whether the group is stored: %s", w.error.text);
    job_store_close (w.st);
    w.st = NULL;
    ok (world_open (&w) && is (shown (&w), all),
        "a clean end of a store keeps the group whose log was removed during the commit");
    world_fini (&w);
}

/* --- lives that end ----------------------------------------------------------------------------------------- */

static void check_killed (void)
{
    struct world w;
    struct verdict v[2];
    struct job_store_group group = group_of (group_jobs, v, 2);

    make_store (&w);
    disk_hang (true);
    job_store_begin (w.st, &group, NULL, 0);
    ok (job_store_result (w.st, &w.counts, &w.error) == 0,
        "while the disk hangs job_store_result () returns without waiting");
    ok (is (next_life (&w, copy_cut), before), "a group that was not synced is lost in a power cut");
    disk_hang (false);
    job_store_close (w.st);
    w.st = NULL;
    world_open (&w);
    ok (strcmp (shown (&w), all) == 0 || strcmp (text, before) == 0,
        "closing a store waits for the group under way, which is stored or not: %s", text);
    world_fini (&w);
}

int main (void)
{
    if (disk_install () < 0) {
        printf ("1..0 # SKIP SQLite is not installed\n");
        return 0;
    }
    check_faults ();
    check_room (DISK_FULL, "the disk is full");
    check_room (DISK_QUOTA, "the disk quota of its owner is used up");
    check_room (DISK_LIMIT, "it may not grow: raise the limit of file sizes");
    check_ack_fails ();
    check_replaced ();
    check_replaced_late ();
    check_log_removed ();
    check_killed ();
    return done_testing ();
}
