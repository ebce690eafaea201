/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-ingest.c - the rate of durable jobs, and the latency of one job, compared with the disk and SQLite
 *
 * If there is no instance, it runs itself under `idtree start` in a chain of four brokers of which only rank 0 may
 * generate. So rank 3 is an idle rank, three hops away from rank 0. The state is in a new folder of BENCH_DIR (default:
 * the build's folder). An argument selects one part: local, far.
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

#include "line.h"
#include "test/job_request.h"
#include "timing.h"

#define JOB_SIZE 1024
#define OUTSTANDING 2000
#define TEXTS 512 /* number of different jobs */
#define TURNS 6
#define TURN_S 0.5   /* length of a flood in seconds */
#define WARMUP_S 0.5 /* seconds at the beginning of a flood that do not count, because the pipeline is not full */
#define SINGLES 150  /* single jobs of a turn; also writes of a turn to the disk */
#define WARMUP 50
#define SYNC_SIZE 8192
#define ROWS 200   /* rows that one commit stores */
#define COMMITS 30 /* commits of a turn */
#define PATH_SIZE 512

static void die (const char *what)
{
    fprintf (stderr, "bench-ingest: %s: %s\n", what, strerror (errno));
    exit (1);
}

/* --- the machine's limits ----------------------------------------------------------------------------------------- */

/* A file for bare writes and a database for bare commits, in the folder of the state. */
struct disk {
    char sync_path[PATH_SIZE], sql_path[PATH_SIZE];
    int fd;
    sqlite3 *db;
    sqlite3_stmt *insert;
    sqlite3_int64 rows;
};

static void sync_once (void *arg)
{
    static const char data[SYNC_SIZE];
    struct disk *disk = arg;

    if (write (disk->fd, data, sizeof (data)) != sizeof (data) || fdatasync (disk->fd) < 0)
        die ("fdatasync");
}

static void sql (sqlite3 *db, const char *text)
{
    if (sqlite3_exec (db, text, NULL, NULL, NULL) != SQLITE_OK) {
        fprintf (stderr, "bench-ingest: %s: %s\n", text, sqlite3_errmsg (db));
        exit (1);
    }
}

static void commit_rows (struct disk *disk)
{
    static const char row[JOB_SIZE];

    sql (disk->db, "BEGIN");
    for (int i = 0; i < ROWS; i++) {
        sqlite3_bind_int64 (disk->insert, 1, disk->rows++);
        sqlite3_bind_blob (disk->insert, 2, row, sizeof (row), SQLITE_STATIC);
        if (sqlite3_step (disk->insert) != SQLITE_DONE || sqlite3_reset (disk->insert) != SQLITE_OK)
            die (sqlite3_errmsg (disk->db));
    }
    sql (disk->db, "COMMIT");
}

/* Measure one turn: rows per second. */
static void time_commits (struct disk *disk, struct figures *f)
{
    double start = now_s ();

    for (int i = 0; i < COMMITS; i++)
        commit_rows (disk);
    figures_add (f, COMMITS * ROWS / (now_s () - start));
    figures_end_turn (f);
}

static void disk_open (struct disk *disk, const char *dir)
{
    *disk = (struct disk){ 0 };
    snprintf (disk->sync_path, sizeof (disk->sync_path), "%s/sync", dir);
    if ((disk->fd = open (disk->sync_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) < 0)
        die (disk->sync_path);
    snprintf (disk->sql_path, sizeof (disk->sql_path), "%s/bare.sqlite", dir);
    if (sqlite3_open (disk->sql_path, &disk->db) != SQLITE_OK)
        die (disk->sql_path);
    sql (disk->db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; "
                   "CREATE TABLE row (id INTEGER PRIMARY KEY, data BLOB)");
    if (sqlite3_prepare_v2 (disk->db, "INSERT INTO row VALUES (?, ?)", -1, &disk->insert, NULL) != SQLITE_OK)
        die (sqlite3_errmsg (disk->db));
}

static void disk_close (struct disk *disk)
{
    close (disk->fd);
    unlink (disk->sync_path);
    sqlite3_finalize (disk->insert);
    sqlite3_close (disk->db);
    unlink (disk->sql_path);
}

/* --- one after the other ------------------------------------------------------------------------------------------ */

/* Make a request. Most of the environment of a job is the same for all jobs of its user. */
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

struct single {
    idt_t *h;
    char *text;
};

static void submit_once (void *arg)
{
    struct single *s = arg;
    idt_future_t *f = idt_rpc (s->h, "job-ingest.submit", s->text, IDT_NODEID_ANY, 0);

    if (!f || idt_rpc_get (f, NULL) < 0)
        die (f ? idt_future_error (f) : "job-ingest.submit");
    idt_future_destroy (f);
}

static void measure_single (const char *uri, int hops, struct disk *disk)
{
    struct single s = { open_broker (uri), make_request (1) };
    struct figures f = { .of = FIGURES_MEDIAN, .warmup = WARMUP }, bare = f;

    for (int i = 0; i < WARMUP; i++) {
        submit_once (&s);
        sync_once (disk);
    }
    for (int turn = 0; turn < TURNS; turn++) {
        figures_time_calls (&f, submit_once, &s, SINGLES);
        figures_time_calls (&bare, sync_once, disk, SINGLES);
    }
    line_print (&(struct line){
        .subject = "ingest",
        .name = "one job, durable",
        .unit = "us",
        .figures = &f,
        .bare = &bare,
        .limit_of = "fdatasync of 8192 bytes",
        .size = hops,
        .size_of = "hops",
    });
    figures_fini (&f);
    figures_fini (&bare);
    free (s.text);
    idt_close (s.h);
}

/* --- many at a time ----------------------------------------------------------------------------------------------- */

struct flood {
    idt_t *h;
    char *text[TEXTS];
    double start; /* when the part that counts begins */
    unsigned next;
    uint64_t jobs[TURNS];
    int outstanding;
};

static void submit (struct flood *fl);

static void answered (idt_future_t *f, void *arg)
{
    struct flood *fl = arg;
    double turn = (now_s () - fl->start) / TURN_S;
    json_int_t id;

    if (idt_rpc_get_unpack (f, "{s:I}", "id", &id) < 0)
        die (idt_future_error (f));
    idt_future_destroy (f);
    fl->outstanding--;
    if (turn >= 0 && turn < TURNS)
        fl->jobs[(int)turn]++;
    if (turn < TURNS)
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

static void run_flood (struct flood *fl)
{
    fl->start = now_s () + WARMUP_S;
    for (int i = 0; i < OUTSTANDING; i++)
        submit (fl);
    if (idt_reactor_run (idt_get_reactor (fl->h), IDT_REACTOR_DEFAULT) < 0)
        die ("reactor");
}

/* Measure a flood of jobs. The bare database would disturb the flood, so half of the database's turns are before the
 * flood and half are after it.
 */
static void measure_flood (const char *uri, int hops, struct disk *disk)
{
    struct figures f = { .more = true }, bare = { .more = true };
    struct flood fl = { .h = open_broker (uri) };

    for (uint32_t i = 0; i < TEXTS; i++)
        fl.text[i] = make_request (i + 1);
    for (int i = 0; i < TURNS / 2; i++)
        time_commits (disk, &bare);
    run_flood (&fl);
    for (int i = 0; i < TURNS / 2; i++)
        time_commits (disk, &bare);
    for (int i = 0; i < TURNS; i++) {
        figures_add (&f, fl.jobs[i] / TURN_S);
        figures_end_turn (&f);
    }
    line_print (&(struct line){
        .subject = "ingest",
        .name = "jobs of 1 KiB, durable, 2000 outstanding",
        .unit = "/s",
        .figures = &f,
        .bare = &bare,
        .limit_of = "bare SQLite, 200 rows a commit",
        .size = hops,
        .size_of = "hops",
    });
    figures_fini (&f);
    figures_fini (&bare);
    for (int i = 0; i < TEXTS; i++)
        free (fl.text[i]);
    idt_close (fl.h);
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static const char *idtree_path (void)
{
    return getenv ("IDTREE") ? getenv ("IDTREE") : BUILDDIR "/src/cmd/idtree";
}

/* Run this program inside of an instance. The output of the brokers goes to stderr, so stdout has only results. */
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
    struct disk disk;
    disk_open (&disk, argv[2]);
    if (all || strcmp (part, "local") == 0) {
        measure_single (uri, 0, &disk);
        measure_flood (uri, 0, &disk);
    }
    if (all || strcmp (part, "far") == 0) {
        measure_single (far, 3, &disk);
        measure_flood (far, 3, &disk);
    }
    disk_close (&disk);
    return 0;
}
