/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_store_test.c - verdicts rule by rule; reads for consumers; acknowledgement; forgetting */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "test/store_world.h"

static char text[1024];

#define shown(w) world_shown (w, text, sizeof (text))

/* Store one job; returns its verdict. */
static struct verdict judge (struct world *w, uint64_t line, struct job job)
{
    struct verdict v = { 0 };

    if (world_store (w, line, &job, &v, 1) != 1)
        v.kind = 0;
    return v;
}

/* Whether the job was refused with 'errnum', and a text that contains 'words'. */
static bool refused (const struct verdict *v, int errnum, const char *words)
{
    char why[JOBWIRE_TEXT_MAX + 1];

    if (v->kind != VERDICT_REFUSED || v->errnum != errnum || v->text_size > JOBWIRE_TEXT_MAX)
        return false;
    snprintf (why, sizeof (why), "%.*s", (int)v->text_size, v->text);
    return strstr (why, words) != NULL;
}

static bool counts_are (const struct world *w, uint64_t jobs, uint64_t bytes, uint64_t remembered)
{
    bool good = w->counts.jobs == jobs && w->counts.bytes == bytes && w->counts.remembered == remembered;

    if (!good)
        diag ("%llu jobs, %llu bytes, %llu remembered", (unsigned long long)w->counts.jobs,
              (unsigned long long)w->counts.bytes, (unsigned long long)w->counts.remembered);
    return good;
}

/* Acknowledge jobs up to 'id' at 'now_s', and forget jobs acknowledged before 'forget_s'. */
static int acknowledge (struct world *w, uint64_t id, int64_t now_s, int64_t forget_s)
{
    return world_work (w, &(struct job_store_group){ .ack = id, .now_s = now_s, .forget_s = forget_s }, NULL, 0);
}

#ifdef WORLD_PG
#define SCHEMA "idtree."
#else
#define SCHEMA ""
#endif

/* --- changes to the file --------------------------------------------------------------------------------------- */

static int number_cb (void *arg, int n, char **value, char **name)
{
    *(int *)arg = atoi (value[0]);
    return 0;
}

/* Run a statement on the file between two lives, or read a number from it. */
static int change_file (struct world *w, const char *sql)
{
    char path[128];
    sqlite3 *db;
    int number = 0;

    job_store_close (w->st);
    w->st = NULL;
#ifdef WORLD_PG
    return (int)pg_server_sql (world_server, sql);
#endif
    snprintf (path, sizeof (path), "%s/ingest.sqlite", w->dir);
    if (sqlite3_open (path, &db) != SQLITE_OK || sqlite3_exec (db, sql, number_cb, &number, NULL) != SQLITE_OK)
        bail_out (sqlite3_errmsg (db));
    sqlite3_close (db);
    return number;
}

/* --- storing ------------------------------------------------------------------------------------------------ */

static void check_stored (void)
{
    struct world w;

    world_init (&w);
    ok (world_open (&w) && counts_are (&w, 0, 0, 0) && w.counts.newest == 0 && w.counts.acked == 0
            && w.counts.floor == 0 && !w.counts.untidy,
        "a new store has no jobs");
    ok (job_store_result (w.st, NULL, NULL) == 0, "before the first work a store has no result");
    ok (strcmp (shown (&w), "") == 0, "a new store returns no jobs");
    struct job jobs[] = { world_job (20, "k1", "{20}"), world_job (10, "", "{10}"), world_job (30, "k1", "{30}") };
    jobs[2].userid = 2;
    struct verdict v[3];
    ok (world_store (&w, 5, jobs, v, 3) == 1 && v[0].kind == VERDICT_STORED && v[1].kind == VERDICT_STORED
            && v[2].kind == VERDICT_STORED,
        "jobs are stored in any order, and two users may have the same key");
    ok (counts_are (&w, 3, 16, 0) && w.counts.newest == 30,
        "a store counts its jobs and their bytes, including the bytes of their keys");
    ok (strcmp (shown (&w), "10={10},20={20},30={30}") == 0, "jobs are returned in order of their ids: %s", text);
    ok (world_open (&w) && counts_are (&w, 3, 16, 0) && w.counts.newest == 30 && !w.counts.untidy,
        "the next life of a store has the same counts");
    ok (strcmp (shown (&w), "10={10},20={20},30={30}") == 0, "the next life of a store returns the same jobs: %s",
        text);
#ifndef WORLD_PG
    struct job_store *second = job_store_open (&(struct module_place){ .dir = w.dir }, "other", &w.counts, &w.error);
    ok (!second && errno == EBUSY && strstr (w.error.text, "in use by broker 12345678"),
        "a store cannot be opened twice at the same time: %s", w.error.text);
#endif
    ok (world_fini (&w), "the folder of a store has no other files");
}

static void check_fields (void)
{
    struct world w;
    char key[JOBWIRE_KEY_MAX];
    struct jobwire_reader r;

    memset (key, 0, sizeof (key));
    world_init (&w);
    world_open (&w);
    struct job job = { INT64_MAX, UINT32_MAX, UINT32_MAX, JOBWIRE_URGENCY_MAX, sizeof (key), key, "s", 1, 0 }, found;
    ok (judge (&w, INT64_MAX - 1, job).kind == VERDICT_STORED && judge (&w, 0, world_job (7, "", "")).kind,
        "the largest and the smallest of all fields can be stored");
    world_open (&w);
    struct job_store_read read = { .upto = UINT64_MAX, .max_jobs = 2, .max_bytes = SIZE_MAX, .specs = true };
    world_work (&w, NULL, &read, 1);
    jobwire_buf_reader (&read.found, &r);
    ok (jobwire_next_job (&r, &found) && found.id == 7 && found.key_size == 0 && found.spec_size == 0
            && found.urgency == 16,
        "a job with the smallest fields is read again");
    ok (jobwire_next_job (&r, &found) && found.id == INT64_MAX && found.userid == UINT32_MAX
            && found.flags == UINT32_MAX && found.urgency == JOBWIRE_URGENCY_MAX && found.key_size == sizeof (key)
            && memcmp (found.key, key, sizeof (key)) == 0 && found.spec_size == 1 && found.spec[0] == 's',
        "a job with the largest fields is read again, with a key of zero bytes");
    jobwire_buf_fini (&read.found);
    world_fini (&w);
}

static void check_limits (void)
{
    struct world w;
    struct job jobs[] = { world_job (10, "", "12345"), world_job (11, "", "12345"), world_job (12, "", "1"),
                          world_job (13, "", "1"), world_job (10, "", "12345") };
    struct verdict v[5] = { { 0 } };
    struct job_store_group group = { .job = jobs, .verdict = v, .n = 5, .max_jobs = 2, .max_bytes = 9 };

    world_init (&w);
    world_open (&w);
    ok (world_work (&w, &group, NULL, 0) == 1 && v[0].kind == VERDICT_STORED && v[2].kind == VERDICT_STORED
            && v[4].kind == VERDICT_STORED,
        "a job that fits into the limits is stored after one that did not fit");
    ok (refused (&v[1], ENOSPC, "more than 9 bytes: ingest.max-mib"), "a job above the limit of bytes is refused: %.*s",
        (int)v[1].text_size, v[1].text);
    ok (refused (&v[3], ENOSPC, "ingest.max-jobs is 2"), "a job above the limit of jobs is refused: %.*s",
        (int)v[3].text_size, v[3].text);
    ok (counts_are (&w, 2, 6, 0) && strcmp (shown (&w), "10=12345,12=1") == 0, "refused jobs are not stored: %s", text);
    group.max_bytes = UINT64_MAX;
    group.max_jobs = 4;
    ok (world_work (&w, &group, NULL, 0) == 1 && v[1].kind == VERDICT_STORED && v[3].kind == VERDICT_STORED
            && counts_are (&w, 4, 12, 0),
        "jobs that were refused are stored when the limits are raised");
    jobs[0] = world_job (20, "", "1234567890");
    group = (struct job_store_group){ .job = jobs, .verdict = v, .n = 1, .max_jobs = 1, .max_bytes = 10, .ack = 13 };
    ok (world_work (&w, &group, NULL, 0) == 1 && v[0].kind == VERDICT_STORED && counts_are (&w, 1, 10, 4),
        "an acknowledgement in the same group makes space before the jobs are stored");
    world_fini (&w);
}

/* Half of the limits is for the owner's jobs only. */
static void check_owner_first (void)
{
    struct world w;
    struct job jobs[] = { world_job (10, "", "1"),  world_job (11, "", "1"), world_job (12, "", "1"),
                          world_job (13, "", "12"), world_job (14, "", "1"), world_job (15, "", "1") };
    struct verdict v[6] = { { 0 } };
    struct job_store_group group = {
        .job = jobs, .verdict = v, .n = 6, .max_jobs = 4, .max_bytes = 9, .owner_first = true, .owner = 7
    };

    jobs[3].userid = jobs[4].userid = jobs[5].userid = 7;
    world_init (&w);
    world_open (&w);
    ok (world_work (&w, &group, NULL, 0) == 1 && v[0].kind == VERDICT_STORED && v[1].kind == VERDICT_STORED
            && refused (&v[2], ENOSPC, "users other than the owner may use half"),
        "all users except the owner may store half of the jobs: %.*s", (int)v[2].text_size, v[2].text);
    ok (v[3].kind == VERDICT_STORED && v[4].kind == VERDICT_STORED && refused (&v[5], ENOSPC, "ingest.max-jobs is 4"),
        "the owner may store as many jobs as the limit: %.*s", (int)v[5].text_size, v[5].text);
    world_fini (&w);
}

/* --- the rules, in their order ------------------------------------------------------------------------------ */

/* Jobs 10 (key a, forgotten), 20 (key b, remembered), 30 (key c) and 40; the floor is at 11. */
static void make_history (struct world *w)
{
    struct job jobs[] = { world_job (10, "a", "{}"), world_job (20, "b", "{}"), world_job (30, "c", "{}"),
                          world_job (40, "", "{}") };
    struct verdict v[4];

    world_init (w);
    world_open (w);
    world_store (w, 0, jobs, v, 4);
    acknowledge (w, 10, 100, 0);
    acknowledge (w, 25, 200, 150);
}

static void check_rules_now (struct world *w, const char *when)
{
    struct verdict v;
    bool stored = judge (w, 1000, world_job (40, "", "{}")).kind == VERDICT_STORED
                  && judge (w, 1000, world_job (30, "b", "{}")).kind == VERDICT_STORED
                  && judge (w, 1000, world_job (20, "c", "{}")).kind == VERDICT_STORED;

    ok (stored, "%s: a job whose id is stored or remembered is STORED, with any line and key", when);
    ok (judge (w, 1000, world_job (10, "b", "")).kind == VERDICT_FORGOTTEN
            && judge (w, 1000, world_job (9, "", "")).kind == VERDICT_FORGOTTEN
            && judge (w, 0, world_job (10, "a", "")).kind == VERDICT_FORGOTTEN,
        "%s: a job below the floor is FORGOTTEN", when);
    ok (judge (w, 50, world_job (50, "b", "")).kind == VERDICT_LATE
            && judge (w, 50, world_job (11, "", "")).kind == VERDICT_LATE
            && judge (w, 50, world_job (35, "c", "")).kind == VERDICT_LATE,
        "%s: a job at or below the line is LATE, also with a known key", when);
    ok (judge (w, 0, world_job (25, "", "")).kind == VERDICT_LATE, "%s: a job at or below the acknowledged ids is LATE",
        when);
    v = judge (w, 50, world_job (51, "b", ""));
    struct verdict other = judge (w, 50, world_job (51, "c", ""));
    ok (v.kind == VERDICT_SAME && v.id == 20 && other.kind == VERDICT_SAME && other.id == 30,
        "%s: a known key gives SAME with the id of its job, acknowledged or not", when);
    v = judge (w, 0, world_job ((uint64_t)INT64_MAX + 1, "b", ""));
    ok (refused (&v, EOVERFLOW, "jobs need an instance with a later epoch")
            && judge (w, 0, world_job (0, "", "")).errnum == EINVAL,
        "%s: an id that cannot be stored is refused: %.*s", when, (int)v.text_size, v.text);
    ok (counts_are (w, 2, 5, 1) && strcmp (shown (w), "30={},40={}") == 0,
        "%s: the jobs that were judged leave the store unchanged: %s", when, text);
}

static void check_rules (void)
{
    struct world w;

    make_history (&w);
    ok (w.counts.floor == 11 && w.counts.acked == 25 && w.counts.newest == 40 && counts_are (&w, 2, 5, 1),
        "of the acknowledged jobs of the history the oldest is forgotten");
    check_rules_now (&w, "in the same life");
    world_open (&w);
    ok (w.counts.floor == 11 && w.counts.acked == 25 && w.counts.newest == 40 && counts_are (&w, 2, 5, 1),
        "the next life of the store has the same counts and floor");
    check_rules_now (&w, "in the next life");
    ok (judge (&w, 50, world_job (51, "a", "x")).kind == VERDICT_STORED,
        "the key of a forgotten job may be used again");
    struct job full = world_job (52, "c", "");
    struct verdict v = { 0 };
    struct job_store_group group = { .job = &full, .verdict = &v, .n = 1 };
    ok (world_work (&w, &group, NULL, 0) == 1 && v.kind == VERDICT_SAME,
        "a job with a known key gets SAME even if the limits are reached");
    world_fini (&w);
}

static void check_copies (void)
{
    struct world w;
    struct job jobs[] = { world_job (10, "a", "one"),   world_job (10, "a", "one"),  world_job (11, "a", "two"),
                          world_job (12, "b", "three"), world_job (12, "a", "four"), world_job (8, "b", "five") };
    struct verdict v[6];

    world_init (&w);
    world_open (&w);
    ok (world_store (&w, 0, jobs, v, 6) == 1 && v[0].kind == VERDICT_STORED && v[1].kind == VERDICT_STORED,
        "a copy of a job in the same group is STORED");
    ok (v[2].kind == VERDICT_SAME && v[2].id == 10 && v[5].kind == VERDICT_SAME && v[5].id == 12,
        "a key of another job in the same group gives SAME, for higher and lower ids");
    ok (v[3].kind == VERDICT_STORED && v[4].kind == VERDICT_STORED && strcmp (shown (&w), "10=one,12=three") == 0,
        "of two jobs with the same id in a group the first is stored: %s", text);
    ok (counts_are (&w, 2, 10, 0), "a copy of a job in the same group is counted once");
    world_fini (&w);
}

/* --- reading ------------------------------------------------------------------------------------------------ */

/* The jobs with after < id <= upto that a read finds within its limits. */
static const char *find (struct world *w, uint64_t after, uint64_t upto, uint32_t max_jobs, size_t max_bytes,
                         bool specs)
{
    struct job_store_read read = {
        .after = after, .upto = upto, .max_jobs = max_jobs, .max_bytes = max_bytes, .specs = specs
    };

    world_work (w, NULL, &read, 1);
    world_found (&read, text, sizeof (text));
    jobwire_buf_fini (&read.found);
    return read.errnum == 0 ? text : "?";
}

static void check_reads (void)
{
    struct world w;
    const size_t all = SIZE_MAX;

    world_init (&w);
    world_open (&w);
    for (uint64_t id = 10; id <= 50; id += 10)
        world_put (&w, id, id == 30 ? "a much longer jobspec" : "{}");
    ok (strcmp (find (&w, 10, 40, 9, all, true), "20={},30=a much longer jobspec,40={}") == 0,
        "a read finds the jobs between two ids: %s", text);
    ok (strcmp (find (&w, 10, 40, 9, all, false), "20=,30=,40=") == 0, "a read may leave out jobspecs: %s", text);
    ok (strcmp (find (&w, 0, 40, 2, all, true), "10={},20={}...") == 0
            && strcmp (find (&w, 0, 20, 2, all, true), "10={},20={}") == 0,
        "a read finds at most max_jobs, and reports whether there are more");
    size_t two = 2 * jobwire_job_size (&(struct job){ .spec_size = 2 }) + 8;
    ok (strcmp (find (&w, 0, 99, 9, two, true), "10={},20={}...") == 0
            && strcmp (find (&w, 0, 99, 9, two - 1, true), "10={}...") == 0,
        "a read finds at most max_bytes");
    ok (strcmp (find (&w, 20, 99, 9, 1, true), "30=a much longer jobspec...") == 0,
        "a read returns its first job even if that exceeds max_bytes: %s", text);
    ok (strcmp (find (&w, 0, 99, 0, all, true), "...") == 0,
        "with max_jobs 0 a read only reports whether there are jobs");
    ok (strcmp (find (&w, 50, UINT64_MAX, 9, all, true), "") == 0
            && strcmp (find (&w, UINT64_MAX, UINT64_MAX, 9, all, true), "") == 0
            && strcmp (find (&w, 40, 20, 9, all, true), "") == 0,
        "a read of a range without jobs returns no jobs");
    acknowledge (&w, 20, 100, 0);
    ok (strcmp (find (&w, 0, 40, 9, all, true), "30=a much longer jobspec,40={}") == 0,
        "acknowledged jobs are not returned by a read: %s", text);
    world_fini (&w);
}

static void check_one (void)
{
    struct world w;
    struct job_store_read reads[] = {
        { .upto = 20, .specs = true, .one = true }, { .upto = 30, .one = true, .specs = true },
        { .upto = 31, .specs = true, .one = true }, { .upto = 0, .one = true },
        { .upto = UINT64_MAX, .one = true },        { .upto = 30, .one = true }
    };
    struct job job = world_job (40, "", "new");
    struct verdict v;

    world_init (&w);
    world_open (&w);
    world_put (&w, 20, "twenty");
    world_put (&w, 30, "thirty");
    acknowledge (&w, 20, 100, 0);
    struct job_store_group group = { .job = &job, .verdict = &v, .n = 1, .max_jobs = 9, .max_bytes = 99 };
    world_work (&w, &group, reads, 6);
    ok (strcmp (world_found (&reads[0], text, sizeof (text)), "20=") == 0 && reads[0].acked,
        "an acknowledged job is found by its id, without its jobspec");
    ok (strcmp (world_found (&reads[1], text, sizeof (text)), "30=thirty") == 0 && !reads[1].acked,
        "a stored job is found by its id, with its jobspec: %s", text);
    ok (reads[2].found.count == 0 && reads[2].errnum == 0 && reads[3].found.count == 0 && reads[4].found.count == 0
            && reads[3].errnum == 0 && reads[4].errnum == 0,
        "a read of an unknown id returns no job");
    ok (strcmp (world_found (&reads[5], text, sizeof (text)), "30=") == 0,
        "a read of one job may leave out its jobspec");
    for (int i = 0; i < 6; i++)
        jobwire_buf_fini (&reads[i].found);
    ok (strcmp (shown (&w), "30=thirty,40=new") == 0, "a group and reads can be one piece of work: %s", text);
    world_fini (&w);
}

/* --- acknowledging and forgetting --------------------------------------------------------------------------- */

static void check_acknowledged (void)
{
    struct world w;

    world_init (&w);
    world_open (&w);
    for (uint64_t id = 10; id <= 50; id += 10)
        world_put (&w, id, "{}");
    acknowledge (&w, 25, 100, 0);
    ok (counts_are (&w, 3, 6, 2) && w.counts.acked == 25 && w.counts.floor == 0,
        "jobs up to an id are acknowledged, even if no job has that id");
    acknowledge (&w, 20, 500, 0);
    ok (counts_are (&w, 3, 6, 2) && w.counts.acked == 25, "an acknowledgement up to a lower id changes nothing");
    acknowledge (&w, 0, 500, 100);
    ok (counts_are (&w, 3, 6, 2) && w.counts.floor == 0, "jobs that were acknowledged at forget_s are kept");
    world_open (&w);
    acknowledge (&w, 30, 200, 101);
    ok (counts_are (&w, 2, 4, 1) && w.counts.floor == 21,
        "jobs acknowledged before forget_s are forgotten, and jobs acknowledged later are remembered");
    acknowledge (&w, 0, 300, 300);
    ok (counts_are (&w, 2, 4, 0) && w.counts.floor == 31,
        "with a later forget_s the other acknowledged jobs are forgotten");
    acknowledge (&w, UINT64_MAX, 400, 0);
    ok (counts_are (&w, 0, 0, 2) && w.counts.acked == INT64_MAX && w.counts.newest == 50,
        "all jobs of a store can be acknowledged");
    acknowledge (&w, 0, 500, 500);
    ok (counts_are (&w, 0, 0, 0) && w.counts.floor == 51 && w.counts.newest == 50,
        "all acknowledged jobs can be forgotten");
    ok (change_file (&w, "SELECT (SELECT count(*) FROM " SCHEMA "acks) + (SELECT count(*) FROM " SCHEMA "jobs)"
                         " + (SELECT count(*) FROM " SCHEMA "specs);")
            == 0,
        "forgotten jobs leave no rows in the file");
    world_open (&w);
    ok (counts_are (&w, 0, 0, 0) && w.counts.floor == 51 && w.counts.newest == 50 && w.counts.acked == INT64_MAX,
        "the next life of a store whose jobs were all forgotten has the same counts");
    ok (judge (&w, 0, world_job (60, "", "")).kind == VERDICT_LATE
            && judge (&w, 0, world_job (50, "", "")).kind == VERDICT_FORGOTTEN,
        "no job is stored at or below the acknowledged ids");
    world_fini (&w);
}

static void check_clock (void)
{
    struct world w;

    world_init (&w);
    world_open (&w);
    for (uint64_t id = 10; id <= 30; id += 10)
        world_put (&w, id, "{}");
    acknowledge (&w, 10, 1000000, 0);
    acknowledge (&w, 20, 100, 0);
    acknowledge (&w, 0, 101, 100);
    ok (counts_are (&w, 1, 2, 2), "after the clock was set back, acknowledged jobs are remembered");
    acknowledge (&w, 0, 101, 101);
    ok (counts_are (&w, 1, 2, 0) && w.counts.floor == 21,
        "after the clock was set back, acknowledged jobs are forgotten by the new time");
    acknowledge (&w, 30, 1000000, 0);
    world_open (&w);
    acknowledge (&w, 0, 200, 150);
    ok (counts_are (&w, 0, 0, 1), "in the next life acknowledged jobs are remembered by the new time");
    acknowledge (&w, 0, 300, 201);
    ok (counts_are (&w, 0, 0, 0) && w.counts.floor == 31,
        "in the next life acknowledged jobs are forgotten without a further acknowledgement");
    world_fini (&w);
}

/* --- slices ------------------------------------------------------------------------------------------------- */

/* Store jobs 1 ... n, each with a jobspec of 'bytes'. */
static void fill (struct world *w, uint64_t n, size_t bytes)
{
    char *spec = calloc (1, bytes);
    struct job *jobs = calloc (n, sizeof (*jobs));
    struct verdict *v = calloc (n, sizeof (*v));

    if (!spec || !jobs || !v)
        bail_out ("out of memory");
    for (uint64_t i = 0; i < n; i++)
        jobs[i] = (struct job){ .id = i + 1, .spec = spec, .spec_size = (uint32_t)bytes };
    world_store (w, 0, jobs, v, n);
    free (v);
    free (jobs);
    free (spec);
}

/* Commit empty groups until nothing is untidy. Returns their number. */
static int tidy (struct world *w, int64_t forget_s)
{
    int n = 0;

    while (w->counts.untidy && n < 100) {
        acknowledge (w, 0, 1000, forget_s);
        n++;
    }
    return n;
}

static void check_slices (void)
{
    struct world w;
    bool floor_below = true;

    world_init (&w);
    world_open (&w);
    fill (&w, 25001, 10);
    acknowledge (&w, 25000, 100, 0);
    ok (counts_are (&w, 1, 10, 25000) && w.counts.untidy && strncmp (shown (&w), "25001=", 6) == 0,
        "many jobs are acknowledged in one commit, and their jobspecs are deleted later");
    world_open (&w);
    ok (counts_are (&w, 1, 10, 25000) && w.counts.untidy,
        "the next life continues to delete the jobspecs of acknowledged jobs");
    ok (tidy (&w, 0) == 2 && counts_are (&w, 1, 10, 25000), "jobspecs of acknowledged jobs are deleted in slices");
    int groups = 0;
    do {
        acknowledge (&w, 0, 1000, 500);
        floor_below = floor_below && w.counts.floor <= 25001 && w.counts.remembered == 25000 - (w.counts.floor - 1);
        groups++;
    } while (w.counts.untidy && groups < 100);
    ok (groups == 3 && floor_below && counts_are (&w, 1, 10, 0) && w.counts.floor == 25001,
        "jobs are forgotten in slices, and the floor rises with them");
    world_fini (&w);
    world_init (&w);
    world_open (&w);
    fill (&w, 20000, 1);
    acknowledge (&w, 20000, 100, 500);
    ok (w.counts.untidy && w.counts.remembered == 10000 && w.counts.floor == 10001,
        "a job is not forgotten before its jobspec is deleted");
    ok (tidy (&w, 500) <= 2 && counts_are (&w, 0, 0, 0) && w.counts.floor == 20001,
        "later groups forget the jobs that are left");
    world_fini (&w);
    world_init (&w);
    world_open (&w);
    fill (&w, 5, 6 << 20);
    acknowledge (&w, 5, 100, 0);
    ok (counts_are (&w, 0, 0, 5) && tidy (&w, 0) == 1, "slices with large jobspecs have fewer jobs");
    world_fini (&w);
    world_init (&w);
    world_open (&w);
    fill (&w, 5, 6 << 20);
    acknowledge (&w, 5, 100, 500);
    ok (counts_are (&w, 0, 0, 2) && w.counts.floor == 4 && tidy (&w, 500) == 1 && counts_are (&w, 0, 0, 0),
        "jobs with large jobspecs are forgotten after the jobspecs are deleted");
    ok (change_file (&w, "SELECT count(*) FROM " SCHEMA "specs;") == 0, "no jobspec of an acknowledged job is left");
    world_fini (&w);
}

#ifndef WORLD_PG
/* --- damaged files ------------------------------------------------------------------------------------------ */

/* A store with jobs 10 (forgotten) and 20 whose file is changed by 'sql' must be refused. */
static void check_damage (const char *sql, const char *what)
{
    struct world w;

    world_init (&w);
    world_open (&w);
    world_put (&w, 10, "{}");
    world_put (&w, 20, "{}");
    acknowledge (&w, 10, 100, 101);
    change_file (&w, sql);
    ok (!world_open (&w) && errno == EBADMSG && strstr (w.error.text, w.dir), "a store with %s is refused: %s", what,
        w.error.text);
    ok (world_fini (&w), "the damaged file of a store is not changed");
}

static void check_unreadable (const char *sql, const char *what)
{
    struct world w;
    struct job_store_read read = { .upto = 99, .max_jobs = 9, .max_bytes = 99, .specs = true };

    world_init (&w);
    world_open (&w);
    world_put (&w, 10, "{}");
    change_file (&w, sql);
    world_open (&w);
    world_work (&w, NULL, &read, 1);
    ok (read.errnum == EBADMSG && read.found.count == 0 && strstr (read.error.text, "damaged"),
        "a read of %s fails: %s", what, read.error.text);
    world_fini (&w);
}

static void check_refused (void)
{
    struct world w;
    char path[128];

    check_damage ("PRAGMA application_id = 1768191075;", "a file of another kind");
    check_damage ("PRAGMA user_version = 2;", "a file of another version");
    check_damage ("DELETE FROM meta;", "a file without a row of meta");
    check_damage ("UPDATE meta SET acked = -1;", "a file with a negative acknowledged id");
    check_damage ("UPDATE meta SET floor = 12;", "a file that forgot jobs that were not acknowledged");
    check_damage ("UPDATE meta SET floor = 21, acked = 30;", "a file with jobs below the floor");
    check_damage ("INSERT INTO jobs VALUES (-5, 0, 0, 0, 0, NULL);", "a file with a job of a negative id");
    check_damage ("DELETE FROM jobs;", "a file with jobspecs without jobs");
    check_unreadable ("DELETE FROM specs;", "a job without its jobspec");
    check_unreadable ("UPDATE jobs SET urgency = 32;", "a job with a wrong urgency");
    check_unreadable ("UPDATE jobs SET key = zeroblob (65);", "a job with a wrong key");
    world_init (&w);
    snprintf (path, sizeof (path), "%s/ingest.sqlite", w.dir);
    int fd = open (path, O_WRONLY | O_CREAT, 0600);
    ok (!world_open (&w) && errno == EBADMSG, "a store with an empty file is refused: %s", w.error.text);
    ok (write (fd, "garbage, and no more", 20) > 0 && !world_open (&w) && errno == EBADMSG,
        "a store with a file of garbage is refused: %s", w.error.text);
    close (fd);
    world_fini (&w);
    strcpy (w.dir, "/nowhere");
    ok (!world_open (&w) && errno != 0 && strstr (w.error.text, "/nowhere/ingest.sqlite"),
        "a store in a missing folder is refused with the folder's name: %s", w.error.text);
    errno = EINTR;
    job_store_close (NULL);
    ok (errno == EINTR, "job_store_close (NULL) does nothing and keeps errno");
}

#endif /* WORLD_PG */

int main (void)
{
    world_begin ();
    check_stored ();
    check_fields ();
    check_limits ();
    check_owner_first ();
    check_rules ();
    check_copies ();
    check_reads ();
    check_one ();
    check_acknowledged ();
    check_clock ();
    check_slices ();
#ifndef WORLD_PG
    check_refused ();
#endif
    world_end ();
    return done_testing ();
}
