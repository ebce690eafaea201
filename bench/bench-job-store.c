/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-job-store.c - the rate of jobs that rank 0 stores in PostgreSQL, compared with bare inserts into like tables
 *
 * BENCH_STORE says how to connect to a server that waits for a second copy with each commit. Its database must have no
 * schema idtree or idtree_bare; both are made, and dropped at the end. Without BENCH_STORE a private server is started
 * on this host, with a copy of its log. Such a server does not sync its files, so its figures are only good to compare
 * the two rates.
 *
 * Bare inserts are a prepared statement with arrays, without a fence and without a row of sums. Turns of both
 * alternate.
 */
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpg/pgstate.h"
#include "line.h"
#include "modules/ingest/root/job_store.h"
#include "test/pg_server.h"
#include "timing.h"

#define JOB_SIZE 1024
#define KEY_SIZE 16
#define MAX_JOBS 1000
#define TURNS 6
#define TURN_S 0.7 /* length of a turn in seconds */
#define UUID "11111111-2222-4333-8444-555555555555"

static void die (const char *what, const char *why)
{
    fprintf (stderr, "bench-job-store: %s: %s\n", what, why);
    exit (1);
}

/* Jobs with increasing ids. Keys are spread over the whole index. */
struct jobs {
    struct job job[MAX_JOBS];
    char key[MAX_JOBS][KEY_SIZE];
    char spec[JOB_SIZE];
    uint64_t id;
};

static void next_jobs (struct jobs *j, size_t n, bool keys)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t id = j->id += 1000, hash = id * UINT64_C (0x9e3779b97f4a7c15);

        memcpy (j->key[i], &hash, sizeof (hash));
        memcpy (j->key[i] + sizeof (hash), &id, sizeof (id));
        j->job[i] = (struct job){ .id = id,
                                  .userid = 1000,
                                  .urgency = 16,
                                  .key = j->key[i],
                                  .key_size = keys ? KEY_SIZE : 0,
                                  .spec = j->spec,
                                  .spec_size = JOB_SIZE };
    }
}

/* --- the store ---------------------------------------------------------------------------------------------------- */

static void work (struct job_store *st, struct job_store_group *group)
{
    struct pollfd pfd = { .fd = job_store_fd (st), .events = POLLIN };
    idt_error_t error;
    int rc;

    job_store_begin (st, group, NULL, 0);
    while ((rc = job_store_result (st, NULL, &error)) == 0)
        poll (&pfd, 1, -1);
    if (rc < 0)
        die ("the store", error.text);
}

static void store_turn (struct job_store *st, struct jobs *j, size_t n, bool keys, struct figures *f)
{
    static struct verdict v[MAX_JOBS];
    double start = now_s ();
    uint64_t jobs = 0;

    do {
        next_jobs (j, n, keys);
        struct job_store_group group = {
            .job = j->job, .verdict = v, .n = n, .max_jobs = UINT64_MAX, .max_bytes = UINT64_MAX
        };
        work (st, &group);
        jobs += n;
    } while (now_s () - start < TURN_S);
    figures_add (f, (double)jobs / (now_s () - start));
    figures_end_turn (f);
}

/* --- bare inserts ------------------------------------------------------------------------------------------------- */

static const char make_bare[] =
    "SET client_min_messages = error; CREATE SCHEMA idtree_bare; CREATE TABLE idtree_bare.jobs (LIKE idtree.jobs"
    " INCLUDING ALL); CREATE TABLE idtree_bare.specs (LIKE idtree.specs INCLUDING ALL)";
static const char insert_bare[] =
    "WITH put AS (INSERT INTO idtree_bare.jobs SELECT * FROM unnest ($1::int8[], $2::int8[], $3::int8[], $4::int8[],"
    " $5::int8[], $6::bytea[])) INSERT INTO idtree_bare.specs SELECT * FROM unnest ($1::int8[], $7::bytea[])";
enum { ARRAYS = 7 };

static void run_bare (PGconn *c, const char *sql)
{
    PGresult *r = PQexec (c, sql);

    if (PQresultStatus (r) == PGRES_FATAL_ERROR)
        die (sql, PQerrorMessage (c));
    PQclear (r);
}

static void bare_insert (PGconn *c, const struct jobs *j, size_t n)
{
    struct pg_array a[ARRAYS];
    struct pg_params p = { 0 };

    for (int i = 0; i < ARRAYS; i++)
        pg_array_init (&a[i], i < 5 ? PG_INT8 : PG_BYTEA);
    for (size_t i = 0; i < n; i++) {
        const struct job *job = &j->job[i];

        pg_array_int (&a[0], (int64_t)job->id);
        pg_array_int (&a[1], job->spec_size + job->key_size);
        pg_array_int (&a[2], job->userid);
        pg_array_int (&a[3], job->urgency);
        pg_array_int (&a[4], job->flags);
        if (job->key_size > 0)
            pg_array_bytes (&a[5], job->key, job->key_size);
        else
            pg_array_null (&a[5]);
        pg_array_bytes (&a[6], job->spec, job->spec_size);
    }
    for (int i = 0; i < ARRAYS; i++)
        pg_put_array (&p, &a[i]);
    PGresult *r = PQexecPrepared (c, "put", ARRAYS, p.value, p.size, p.binary, 1);
    if (PQresultStatus (r) != PGRES_COMMAND_OK)
        die ("bare inserts", PQerrorMessage (c));
    PQclear (r);
    for (int i = 0; i < ARRAYS; i++)
        pg_array_fini (&a[i]);
}

static void bare_turn (PGconn *c, struct jobs *j, size_t n, bool keys, struct figures *f)
{
    double start = now_s ();
    uint64_t jobs = 0;

    do {
        next_jobs (j, n, keys);
        bare_insert (c, j, n);
        jobs += n;
    } while (now_s () - start < TURN_S);
    figures_add (f, (double)jobs / (now_s () - start));
    figures_end_turn (f);
}

/* --- the tables --------------------------------------------------------------------------------------------------- */

static PGconn *make_tables (const char *conninfo)
{
    const struct pg_config config = { .conninfo = conninfo, .application = "bench", .timeout_ms = 60000 };
    const struct pgstate state = { .uuid = UUID, .name = "bench", .created_ms = 1 };
    idt_error_t error;
    struct pg *pg = pg_open (&config, &error);

    if (!pg || pgstate_make (pg, &state, &error) < 0)
        die ("making the tables", error.text);
    pg_close (pg);
    PGconn *c = PQconnectdb (conninfo);
    if (PQstatus (c) != CONNECTION_OK)
        die ("connecting", PQerrorMessage (c));
    run_bare (c, make_bare);
    PGresult *r = PQprepare (c, "put", insert_bare, 0, NULL);
    if (PQresultStatus (r) != PGRES_COMMAND_OK)
        die ("preparing", PQerrorMessage (c));
    PQclear (r);
    return c;
}

static struct job_store *open_store (const char *conninfo)
{
    const struct module_place place = { .store = conninfo, .uuid = UUID, .term = 1 };
    struct job_store_counts counts;
    idt_error_t error;
    struct job_store *st = job_store_open (&place, NULL, &counts, &error);

    if (!st)
        die ("the store", error.text);
    work (st, NULL);
    return st;
}

static void measure (struct job_store *st, PGconn *c, struct jobs *j, size_t n, bool keys)
{
    struct figures store = { .of = FIGURES_MEAN, .more = true }, bare = { .of = FIGURES_MEAN, .more = true };
    char name[64];

    for (int i = 0; i < TURNS; i++) {
        bare_turn (c, j, n, keys, &bare);
        store_turn (st, j, n, keys, &store);
    }
    snprintf (name, sizeof (name), "%zu jobs of 1 KiB a commit%s", n, keys ? ", a key each" : "");
    line_print (&(struct line){ .subject = "jobs in PostgreSQL",
                                .name = name,
                                .unit = "jobs/s",
                                .figures = &store,
                                .bare = &bare,
                                .share = 0.8,
                                .aim = true,
                                .limit_of = "0.8 of bare inserts",
                                .size = (double)n,
                                .size_of = "jobs" });
    figures_fini (&store);
    figures_fini (&bare);
}

int main (void)
{
    static const size_t sizes[] = { 50, 200, 1000 };
    static struct jobs j;
    const char *conninfo = getenv ("BENCH_STORE");
    struct pg_server *server = NULL;

    if (!conninfo && pg_server_lacks ()) {
        fprintf (stderr, "bench-job-store: %s\n", pg_server_lacks ());
        return 0;
    }
    if (!conninfo)
        conninfo = pg_server_conninfo (server = pg_server_start ());
    for (int i = 0; i < JOB_SIZE; i++)
        j.spec[i] = (char)('a' + rand () % 26);
    PGconn *c = make_tables (conninfo);
    struct job_store *st = open_store (conninfo);
    for (int keys = 0; keys < 2; keys++)
        for (size_t i = 0; i < sizeof (sizes) / sizeof (sizes[0]); i++)
            measure (st, c, &j, sizes[i], keys);
    job_store_close (st);
    run_bare (c, "DROP SCHEMA idtree CASCADE; DROP SCHEMA idtree_bare CASCADE");
    PQfinish (c);
    if (server)
        pg_server_destroy (server);
    return 0;
}
