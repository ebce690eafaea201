/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-ingest.c - jobs made durable, and how long one takes, each beside what the disk and SQLite can do
 *
 * Started alone it runs itself under `idtree start` in a chain of four brokers of which only rank 0 may generate, so
 * that rank 3 is an idle rank three hops away from it; the state is in a new folder of BENCH_DIR (else the build's).
 * An argument names one part alone: limits, local, far.
 */
#define _GNU_SOURCE
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "test/job_request.h"
#include "timing.h"

#define JOB_SIZE 1024
#define OUTSTANDING 2000
#define TEXTS 512 /* jobs that differ */
#define SECONDS 4.0
#define WARM_S 0.5 /* until the pipe is full */
#define SINGLES 1000
#define SYNC_SIZE 8192
#define SYNCS 1000
#define ROWS 200 /* of a commit */
#define COMMITS 200
#define PATH_SIZE 512

struct limits {
    double sync_p50_us;
    double rows_per_s;
};

static void die (const char *what)
{
    fprintf (stderr, "bench-ingest: %s: %s\n", what, strerror (errno));
    exit (1);
}

static int compare (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double quantile (double *t, int n, int percent)
{
    qsort (t, (size_t)n, sizeof (t[0]), compare);
    return t[n * percent / 100];
}

/* --- the machine's limits ----------------------------------------------------------------------------------------- */

static double measure_sync (const char *dir)
{
    static double t[SYNCS];
    static char data[SYNC_SIZE];
    char path[PATH_SIZE];

    snprintf (path, sizeof (path), "%s/sync", dir);
    int fd = open (path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        die (path);
    for (int i = 0; i < SYNCS; i++) {
        double start = now_s ();

        if (write (fd, data, sizeof (data)) != sizeof (data) || fdatasync (fd) < 0)
            die ("fdatasync");
        t[i] = (now_s () - start) * 1e6;
    }
    close (fd);
    unlink (path);
    double p50 = quantile (t, SYNCS, 50);
    printf ("{\"bench\":\"ingest-fdatasync\",\"bytes\":%d,\"p50_us\":%.1f,\"p99_us\":%.1f}\n", SYNC_SIZE, p50,
            quantile (t, SYNCS, 99));
    return p50;
}

static void sql (sqlite3 *db, const char *text)
{
    if (sqlite3_exec (db, text, NULL, NULL, NULL) != SQLITE_OK) {
        fprintf (stderr, "bench-ingest: %s: %s\n", text, sqlite3_errmsg (db));
        exit (1);
    }
}

static void commit_rows (sqlite3 *db, sqlite3_stmt *insert, sqlite3_int64 first)
{
    static const char row[JOB_SIZE];

    sql (db, "BEGIN");
    for (int i = 0; i < ROWS; i++) {
        sqlite3_bind_int64 (insert, 1, first + i);
        sqlite3_bind_blob (insert, 2, row, sizeof (row), SQLITE_STATIC);
        if (sqlite3_step (insert) != SQLITE_DONE || sqlite3_reset (insert) != SQLITE_OK)
            die (sqlite3_errmsg (db));
    }
    sql (db, "COMMIT");
}

static double measure_sqlite (const char *dir)
{
    char path[PATH_SIZE];
    sqlite3 *db;
    sqlite3_stmt *insert;

    snprintf (path, sizeof (path), "%s/bare.sqlite", dir);
    if (sqlite3_open (path, &db) != SQLITE_OK)
        die (path);
    sql (db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE row (id INTEGER PRIMARY KEY, data BLOB)");
    if (sqlite3_prepare_v2 (db, "INSERT INTO row VALUES (?, ?)", -1, &insert, NULL) != SQLITE_OK)
        die (sqlite3_errmsg (db));
    double start = now_s ();
    for (int i = 0; i < COMMITS; i++)
        commit_rows (db, insert, (sqlite3_int64)i * ROWS);
    double seconds = now_s () - start, rate = COMMITS * ROWS / seconds;
    sqlite3_finalize (insert);
    sqlite3_close (db);
    printf ("{\"bench\":\"ingest-bare-sqlite\",\"rows\":%d,\"bytes\":%d,\"rows_per_s\":%.0f,\"commit_us\":%.1f}\n",
            ROWS, JOB_SIZE, rate, seconds / COMMITS * 1e6);
    return rate;
}

static struct limits measure_limits (const char *dir)
{
    struct limits limits = { measure_sync (dir), measure_sqlite (dir) };

    fflush (stdout);
    return limits;
}

/* --- one after the other ------------------------------------------------------------------------------------------ */

/* A job's environment is much like that of others of its user, and in part its own. */
static char *make_request (uint32_t seed)
{
    struct job_request r = { .tag = "bench", .userid = getuid (), .size = JOB_SIZE, .seed = seed };
    char *text = job_request_text (&r);

    if (!text)
        die ("memory");
    return text;
}

static idt_t *open_broker (const char *uri)
{
    idt_error_t error;
    idt_t *h = idt_open (uri, &error);

    if (!h) {
        fprintf (stderr, "bench-ingest: %s\n", error.text);
        exit (1);
    }
    return h;
}

static void submit_once (idt_t *h, const char *text)
{
    idt_future_t *f = idt_rpc (h, "job-ingest.submit", text, IDT_NODEID_ANY, 0);

    if (!f || idt_rpc_get (f, NULL) < 0)
        die (f ? idt_future_error (f) : "job-ingest.submit");
    idt_future_destroy (f);
}

static void measure_single (const char *name, const char *uri, const struct limits *limits)
{
    static double t[SINGLES];
    idt_t *h = open_broker (uri);
    char *text = make_request (1);

    for (int i = 0; i < SINGLES; i++) {
        double start = now_s ();

        submit_once (h, text);
        t[i] = (now_s () - start) * 1e3;
    }
    double p50 = quantile (t, SINGLES, 50);
    printf (
        "{\"bench\":\"ingest-single-%s\",\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"fdatasync_p50_ms\":%.3f,\"ratio\":%.2f}\n",
        name, p50, quantile (t, SINGLES, 99), limits->sync_p50_us / 1e3, p50 * 1e3 / limits->sync_p50_us);
    fflush (stdout);
    free (text);
    idt_close (h);
}

/* --- many at a time ----------------------------------------------------------------------------------------------- */

struct flood {
    idt_t *h;
    char *text[TEXTS];
    double start, end; /* of the time that counts */
    unsigned next;
    uint64_t jobs;
    int outstanding;
};

static void submit (struct flood *fl);

static void answered (idt_future_t *f, void *arg)
{
    struct flood *fl = arg;
    double t = now_s ();
    json_int_t id;

    if (idt_rpc_get_unpack (f, "{s:I}", "id", &id) < 0)
        die (idt_future_error (f));
    idt_future_destroy (f);
    fl->outstanding--;
    fl->jobs += t >= fl->start && t < fl->end;
    if (t < fl->end)
        submit (fl);
    else if (fl->outstanding == 0)
        idt_reactor_stop (idt_get_reactor (fl->h));
}

static void submit (struct flood *fl)
{
    idt_future_t *f = idt_rpc (fl->h, "job-ingest.submit", fl->text[fl->next++ % TEXTS], IDT_NODEID_ANY, 0);

    if (!f || idt_future_then (f, -1., answered, fl) < 0)
        die ("job-ingest.submit");
    fl->outstanding++;
}

static void measure_flood (const char *name, const char *uri, const struct limits *limits)
{
    struct flood fl = { .h = open_broker (uri) };

    for (uint32_t i = 0; i < TEXTS; i++)
        fl.text[i] = make_request (i + 1);
    fl.start = now_s () + WARM_S;
    fl.end = fl.start + SECONDS;
    for (int i = 0; i < OUTSTANDING; i++)
        submit (&fl);
    if (idt_reactor_run (idt_get_reactor (fl.h), IDT_REACTOR_DEFAULT) < 0)
        die ("reactor");
    double rate = (double)fl.jobs / SECONDS;
    printf (
        "{\"bench\":\"ingest-%s\",\"outstanding\":%d,\"bytes\":%d,\"jobs_per_s\":%.0f,\"bare_sqlite_rows_per_s\":%.0f,"
        "\"ratio\":%.2f}\n",
        name, OUTSTANDING, JOB_SIZE, rate, limits->rows_per_s, rate / limits->rows_per_s);
    fflush (stdout);
    for (int i = 0; i < TEXTS; i++)
        free (fl.text[i]);
    idt_close (fl.h);
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static const char *idtree_path (void)
{
    return getenv ("IDTREE") ? getenv ("IDTREE") : BUILDDIR "/src/cmd/idtree";
}

/* The brokers' output goes to stderr, as ours does: what is measured stands alone on stdout. */
static int run_inside_of_instance (const char *self, const char *dir, const char *part)
{
    const char *idtree = idtree_path ();
    char state[PATH_SIZE + 16];
    int status = 0;
    pid_t pid = fork ();

    snprintf (state, sizeof (state), "statedir=%s", dir);
    if (pid == 0) {
        execl (idtree, idtree, "start", "-s", "4", "--topology", "kary:1", "-o", "fluid.max-generators=1", "-o",
               "fluid.share=off", "-o", "broker.modules=fluid,job-ingest", "-o", "ingest.max-jobs=100000000", "-o",
               "ingest.max-mib=65536", "-o", state, self, "inside", dir, part, (char *)NULL);
        die (idtree);
    }
    if (pid < 0 || waitpid (pid, &status, 0) != pid)
        die ("fork");
    return WIFEXITED (status) ? WEXITSTATUS (status) : 1;
}

static void make_state (const char *dir)
{
    char command[2 * PATH_SIZE];

    snprintf (command, sizeof (command), "'%s' init --statedir '%s' >&2", idtree_path (), dir);
    if (system (command) != 0)
        die (dir);
}

static int run_in_new_folder (const char *self, const char *part)
{
    char dir[PATH_SIZE], command[PATH_SIZE + 16];

    snprintf (dir, sizeof (dir), "%s/bench-ingest.XXXXXX", getenv ("BENCH_DIR") ? getenv ("BENCH_DIR") : BUILDDIR);
    if (!mkdtemp (dir))
        die (dir);
    make_state (dir);
    int status = run_inside_of_instance (self, dir, part);
    snprintf (command, sizeof (command), "rm -rf '%s'", dir);
    return system (command) == 0 ? status : 1;
}

int main (int argc, char **argv)
{
    const char *uri = getenv ("IDTREE_URI");
    char far[PATH_SIZE];

    if (argc < 4 || strcmp (argv[1], "inside") != 0)
        return run_in_new_folder (argv[0], argc > 1 ? argv[1] : "all");
    if (!uri || strlen (uri) < 2) {
        errno = EINVAL;
        die ("IDTREE_URI");
    }
    snprintf (far, sizeof (far), "%.*s3", (int)strlen (uri) - 1, uri);
    const char *part = argv[3];
    bool all = strcmp (part, "all") == 0;
    struct limits limits = measure_limits (argv[2]);
    if (all || strcmp (part, "local") == 0) {
        measure_single ("local", uri, &limits);
        measure_flood ("local", uri, &limits);
    }
    if (all || strcmp (part, "far") == 0) {
        measure_single ("3-hops", far, &limits);
        measure_flood ("3-hops", far, &limits);
    }
    return 0;
}
