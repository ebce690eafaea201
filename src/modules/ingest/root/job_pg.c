/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_pg.c - the jobs of an instance in PostgreSQL
 *
 *   jobs, specs, acks  as in job_disk.c
 *   ingest             one row with the state: it changes with each group, so that a store with millions of jobs can be
 *                      opened without counting them
 *
 * A group is two or three statements: reads of what is stored under its ids and keys, and of what can be cleared away,
 * if it needs them; then one write with all changes. Between them nothing else changes the tables, because a term has
 * one writer: if another rank 0 has taken over, the write changes nothing. Until the write, changes are kept in memory.
 *
 * Another rank 0 may have taken over without notice. So a read finds nothing unless the term still holds (J_READ), and
 * a verdict that says that a job is not stored needs a write that is acknowledged (job_backend.shared). What a new life
 * has read counts when a write of its own is acknowledged, because only then a second server has it, too.
 *
 * Ranges of ids begin at the first id that can still be there. Rows that were deleted stay in the indexes for some
 * time, and a search from the beginning would pass all of them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpg/fenced.h"
#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/ingest/root/job_backend.h"
#include "modules/ingest/root/job_table.h"

#define LED_BY_US " WHERE " FENCED_HOLDS

static const char load_sql[] =
    "SELECT acked, floor, newest, cleared, jobs, bytes, remembered, (SELECT max (acked_s) FROM idtree.acks),"
    " (SELECT min (acked_s) FROM idtree.acks) FROM idtree.ingest" LED_BY_US;

/* A row for each job, in order: whether its id is stored, and the id of the job with its key. No EXISTS: for many jobs
 * the server would answer it by reading the whole table.
 */
static const char find_sql[] = "SELECT (SELECT true FROM idtree.jobs j WHERE j.id = u.id),"
                               " (SELECT j.id FROM idtree.jobs j WHERE j.userid = u.userid AND j.key = u.key)"
                               " FROM unnest ($4, $5, $6) WITH ORDINALITY u (id, userid, key, n)" LED_BY_US
                               " ORDER BY u.n";

/* What can be acknowledged and cleared away. Parameters: $4 acked before the group, $5 acked after it, $6 cleared,
 * $7 floor, $8 now_s or NULL, $9 forget_s or NULL; $10 and $11 are the limits of a slice.
 */
static const char tidy_sql[] =
    "WITH s AS (SELECT count (*) AS jobs, coalesce (sum (bytes), 0)::bigint AS bytes FROM idtree.jobs"
    "  WHERE id > $4 AND id <= $5),"
    " w AS (SELECT id, row_number () OVER o <= $10 AND sum (bytes) OVER o - bytes < $11 AS fits"
    "  FROM (SELECT id, bytes FROM idtree.jobs WHERE id > $6 AND id <= $5 ORDER BY id LIMIT $10 + 1) x"
    "  WINDOW o AS (ORDER BY id ROWS UNBOUNDED PRECEDING)),"
    " c AS (SELECT CASE WHEN count (*) > count (*) FILTER (WHERE fits) THEN max (id) FILTER (WHERE fits) ELSE $5 END"
    "  AS upto FROM w),"
    " o AS (SELECT greatest ((SELECT max (upto) FROM idtree.acks WHERE acked_s < $9 AND (acked_s < $8) IS NOT FALSE),"
    "  CASE WHEN $8 < $9 THEN $5 END) AS old),"
    " d AS (SELECT max (id) AS last, count (*) AS n FROM (SELECT j.id FROM idtree.jobs j, c, o"
    "  WHERE j.id >= $7 AND j.id <= o.old AND j.id <= c.upto ORDER BY j.id LIMIT $10) x)"
    " SELECT s.jobs, s.bytes, c.upto, o.old, d.last, d.n, (SELECT min (acked_s) FROM idtree.acks)"
    " FROM s, c, o, d" LED_BY_US;

/* Jobs after $4 up to $5, at most $6; jobspecs if $7 is 1, while the jobs before have less than $8 bytes. Without jobs
 * the row is NULL.
 */
static const char read_sql[] =
    "SELECT x.id, x.userid, x.urgency, x.flags, x.key, x.before < $8,"
    " CASE WHEN $7 = 1 AND x.before < $8 THEN (SELECT spec FROM idtree.specs WHERE specs.id = x.id) END"
    " FROM (SELECT" LED_BY_US ") led LEFT JOIN"
    " (SELECT y.*, coalesce (sum (bytes) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS"
    "  before FROM (SELECT * FROM idtree.jobs WHERE id > $4 AND id <= $5 ORDER BY id LIMIT $6) y) x"
    " ON true ORDER BY x.id";

/* Parts of a write. $4 is an array of numbers, $5 ... $10 are arrays with a member for each new job. */
enum number {
    ACKED,
    FLOOR,
    NEWEST,
    CLEARED,
    JOBS,
    BYTES,
    REMEMBERED,
    NOTED,
    FORGOTTEN,
    OLD_FLOOR,
    OLD_CLEARED,
    NUMBERS
};

#define V(n) "($4::bigint[])[" n "]"

static const char write_state[] =
    ", state AS (UPDATE idtree.ingest SET acked = " V ("1") ", floor = " V ("2") ", newest = " V (
        "3") ", cleared = " V ("4") ", jobs = " V ("5") ", bytes = " V ("6") ", remembered = " V ("7") " FROM fence)";
static const char write_jobs[] =
    ", put AS (INSERT INTO idtree.jobs (id, bytes, userid, urgency, flags, key)"
    " SELECT u.id, octet_length (u.spec) + coalesce (octet_length (u.key), 0), u.userid, u.urgency, u.flags, u.key"
    " FROM fence, unnest ($5, $6, $7, $8, $9, $10) u (id, userid, urgency, flags, key, spec)),"
    " put_specs AS (INSERT INTO idtree.specs (id, spec)"
    " SELECT u.id, u.spec FROM fence, unnest ($5, $10) u (id, spec))";
static const char write_cleared[] = ", clear AS (DELETE FROM idtree.specs USING fence WHERE id > " V (
    "11") " AND id <= " V ("4") ")";
static const char write_dropped[] = ", dropped AS (DELETE FROM idtree.jobs USING fence WHERE id >= " V (
    "10") " AND id < " V ("2") ")";
/* A time is noted unless it is forgotten in the same group. */
static const char write_times[] = ", times AS (DELETE FROM idtree.acks USING fence WHERE acked_s > " V (
    "8") " OR acked_s < " V ("9") "),"
                                  " note AS (INSERT INTO idtree.acks (acked_s, upto) SELECT " V ("8") ", " V (
                                      "1") " FROM fence"
                                           " WHERE " V ("8") " IS NOT NULL AND (" V ("8") " < " V (
                                               "9") ") IS NOT TRUE"
                                                    " ON CONFLICT (acked_s) DO UPDATE SET upto = EXCLUDED.upto)";
static const char write_end[] = " SELECT serial FROM fence";

/* What tidy_sql has found. */
struct tidied {
    uint64_t jobs, bytes, cleared, old, last, n;
};

/* What was stored before a job of the group. */
struct stored {
    bool id;
    uint64_t same; /* the id of the job with its key; 0: none */
};

struct job_pg {
    struct job_backend base; /* first */
    char *uuid;              /* of the instance */
    uint64_t term;
    struct fenced *fenced;
    bool taken; /* it is connected, and has the term */
    bool based; /* a write of this life was acknowledged */
    const struct job_store_group *group;
    struct job_store_state now;
    struct job_table put;  /* the jobs that the group stores */
    struct stored *stored; /* for each job of the group */
    size_t room;
    struct tidied tidied;
    int64_t oldest_s; /* the lowest time in 'acks' that this life knows; INT64_MIN: it must be read */
    /* changes that are to be written: */
    int64_t noted_s, forget_s;
    bool notes, forgets, clears, drops;
};

static struct job_pg *pg_of (struct job_backend *b)
{
    return (struct job_pg *)b;
}

/* End a function that has failed. Where the store may soon do what it did not do now, jobs wait. If another rank 0 has
 * the store, it has to answer them; requesters get EAGAIN. They get it, too, if the store did not answer, because
 * ETIMEDOUT would say that rank 0 did not. Returns -1.
 */
static int fail (struct job_pg *k)
{
    int e = errno;

    k->base.passing = k->base.passing || e == ECONNREFUSED || e == ECONNRESET || e == ETIMEDOUT || e == EROFS
                      || e == EAGAIN || e == ECANCELED || e == ESTALE;
    errno = e == ESTALE || e == ETIMEDOUT ? EAGAIN : e;
    return -1;
}

/* Run a read that finds at least one row while the term holds. Returns 0, or -1 with errno set and 'errp' filled. */
static int read_led (struct job_pg *k, const char *sql, const struct pg_params *p, struct pg_rows *rows,
                     idt_error_t *errp)
{
    if (fenced_read (k->fenced, sql, p, rows, errp) < 0)
        return fail (k);
    if (rows->count > 0)
        return 0;
    pg_rows_free (rows);
    errsetf (errp, ESTALE, "PostgreSQL %s: another rank 0 has taken over, with a later term than %" PRIu64,
             fenced_server (k->fenced), k->term);
    return fail (k);
}

static int write_led (struct job_pg *k, const char *body, struct pg_params *p, bool *maybe, idt_error_t *errp)
{
    if (fenced_write (k->fenced, body, p, maybe, errp) < 0)
        return fail (k);
    k->based = true;
    return 0;
}

/* --- the state ------------------------------------------------------------------------------------------------ */

static int connect_store (struct job_pg *k, idt_error_t *errp)
{
    if (!k->taken && fenced_take (k->fenced, errp) < 0)
        return fail (k);
    k->taken = true;
    return 0;
}

static void take_state (struct job_pg *k, const struct pg_rows *rows, struct job_store_state *s)
{
    struct job_store_counts *c = &s->counts;

    c->acked = (uint64_t)pg_int (rows, 0, 0);
    c->floor = (uint64_t)pg_int (rows, 0, 1);
    c->newest = (uint64_t)pg_int (rows, 0, 2);
    s->cleared = (uint64_t)pg_int (rows, 0, 3);
    c->jobs = (uint64_t)pg_int (rows, 0, 4);
    c->bytes = (uint64_t)pg_int (rows, 0, 5);
    c->remembered = (uint64_t)pg_int (rows, 0, 6);
    c->acked_s = pg_int (rows, 0, 7);
    k->oldest_s = pg_is_null (rows, 0, 8) ? INT64_MAX : pg_int (rows, 0, 8);
}

static int pg_load (struct job_backend *b, struct job_store_state *s, idt_error_t *errp)
{
    struct job_pg *k = pg_of (b);
    struct pg_params p;
    struct pg_rows rows;

    if (connect_store (k, errp) < 0)
        return -1;
    fenced_params (k->fenced, &p);
    if (read_led (k, load_sql, &p, &rows, errp) < 0)
        return -1;
    take_state (k, &rows, s);
    pg_rows_free (&rows);
    if (s->cleared > s->counts.acked || s->counts.floor > s->counts.acked + 1)
        return errsetf (
            errp, EBADMSG,
            "PostgreSQL %s: the numbers in idtree.ingest contradict each other: see A STANDBY FOR RANK 0 in idtree-operations(7)",
            fenced_server (k->fenced));
    return k->based ? 0 : write_led (k, write_end, &p, NULL, errp);
}

/* --- finding what is stored ----------------------------------------------------------------------------------- */

static int make_room (struct job_pg *k, size_t n, idt_error_t *errp)
{
    if (n > k->room) {
        struct stored *stored = realloc (k->stored, n * sizeof (*stored));
        if (!stored)
            return errsetf (errp, ENOMEM, "%s: out of memory", k->base.where);
        k->stored = stored;
        k->room = n;
    }
    if (n > 0)
        memset (k->stored, 0, n * sizeof (*k->stored));
    if (job_table_begin (&k->put, k->group->job, n) < 0)
        return errsetf (errp, ENOMEM, "%s: out of memory", k->base.where);
    return 0;
}

static bool may_be_stored (const struct job_pg *k, const struct job *job)
{
    return job->id > 0 && job->id <= k->now.counts.newest;
}

static void put_key (struct pg_array *a, const struct job *job)
{
    if (job->key_size > 0)
        pg_array_bytes (a, job->key, job->key_size);
    else
        pg_array_null (a);
}

static int run_find (struct job_pg *k, struct pg_array *ids, struct pg_array *users, struct pg_array *keys,
                     idt_error_t *errp)
{
    struct pg_params p;
    struct pg_rows rows;

    fenced_params (k->fenced, &p);
    pg_put_array (&p, ids);
    pg_put_array (&p, users);
    pg_put_array (&p, keys);
    if (read_led (k, find_sql, &p, &rows, errp) < 0)
        return -1;
    for (int i = 0; i < rows.count && (size_t)i < k->group->n; i++) {
        k->stored[i].id = pg_int (&rows, i, 0) != 0;
        k->stored[i].same = (uint64_t)pg_int (&rows, i, 1);
    }
    pg_rows_free (&rows);
    return 0;
}

/* Find which ids and keys of the group are stored. Most groups have no keys, and ids above all stored ones. */
static int find_stored (struct job_pg *k, idt_error_t *errp)
{
    struct pg_array ids, users, keys;
    bool needed = false;
    int rc = 0;

    pg_array_init (&ids, PG_INT8);
    pg_array_init (&users, PG_INT8);
    pg_array_init (&keys, PG_BYTEA);
    for (size_t i = 0; i < k->group->n; i++) {
        const struct job *job = &k->group->job[i];

        needed = needed || job->key_size > 0 || may_be_stored (k, job);
        if (may_be_stored (k, job))
            pg_array_int (&ids, (int64_t)job->id);
        else
            pg_array_null (&ids);
        pg_array_int (&users, job->userid);
        put_key (&keys, job);
    }
    if (needed)
        rc = run_find (k, &ids, &users, &keys, errp);
    pg_array_fini (&ids);
    pg_array_fini (&users);
    pg_array_fini (&keys);
    return rc;
}

/* --- finding what can be cleared away ------------------------------------------------------------------------- */

static void put_optional (struct pg_params *p, bool is_set, int64_t value)
{
    pg_put_int (p, value);
    if (!is_set)
        p->value[p->count - 1] = NULL;
}

static void take_tidied (struct job_pg *k, const struct pg_rows *rows)
{
    k->tidied = (struct tidied){
        .jobs = (uint64_t)pg_int (rows, 0, 0),
        .bytes = (uint64_t)pg_int (rows, 0, 1),
        .cleared = (uint64_t)pg_int (rows, 0, 2),
        .old = (uint64_t)pg_int (rows, 0, 3),
        .last = (uint64_t)pg_int (rows, 0, 4),
        .n = (uint64_t)pg_int (rows, 0, 5),
    };
    k->oldest_s = pg_is_null (rows, 0, 6) ? INT64_MAX : pg_int (rows, 0, 6);
}

static int find_tidy (struct job_pg *k, const struct job_backend_group *g, idt_error_t *errp)
{
    const struct job_store_group *group = g->group;
    bool forgets = group->forget_s != 0
                   && (group->forget_s > k->oldest_s || (g->notes && group->now_s < group->forget_s));
    struct pg_params p;
    struct pg_rows rows;

    k->tidied = (struct tidied){ 0 };
    if (g->acked == g->now.counts.acked && g->now.cleared == g->acked && !forgets)
        return 0;
    fenced_params (k->fenced, &p);
    pg_put_int (&p, (int64_t)g->now.counts.acked);
    pg_put_int (&p, (int64_t)g->acked);
    pg_put_int (&p, (int64_t)g->now.cleared);
    pg_put_int (&p, (int64_t)g->now.counts.floor);
    put_optional (&p, g->notes, group->now_s);
    put_optional (&p, group->forget_s != 0, group->forget_s);
    pg_put_int (&p, JOB_SLICE_JOBS);
    pg_put_int (&p, JOB_SLICE_BYTES);
    if (read_led (k, tidy_sql, &p, &rows, errp) < 0)
        return -1;
    take_tidied (k, &rows);
    pg_rows_free (&rows);
    return 0;
}

static int pg_begin (struct job_backend *b, const struct job_backend_group *g, idt_error_t *errp)
{
    struct job_pg *k = pg_of (b);

    k->group = g->group;
    k->now = g->now;
    k->notes = k->forgets = k->clears = k->drops = false;
    if (make_room (k, g->group->n, errp) < 0 || find_stored (k, errp) < 0)
        return -1;
    return find_tidy (k, g, errp);
}

/* --- a group: what was found, and what is to be written ------------------------------------------------------- */

static int pg_sum (struct job_backend *b, uint64_t after, uint64_t upto, uint64_t *jobs, uint64_t *bytes,
                   idt_error_t *errp)
{
    *jobs = pg_of (b)->tidied.jobs;
    *bytes = pg_of (b)->tidied.bytes;
    return 0;
}

static int pg_note_time (struct job_backend *b, int64_t now_s, uint64_t upto, idt_error_t *errp)
{
    pg_of (b)->notes = true;
    pg_of (b)->noted_s = now_s;
    return 0;
}

static int pg_has_id (struct job_backend *b, size_t i, idt_error_t *errp)
{
    struct job_pg *k = pg_of (b);

    return k->stored[i].id || job_table_has_id (&k->put, i);
}

static int pg_find_key (struct job_backend *b, size_t i, uint64_t *id, idt_error_t *errp)
{
    struct job_pg *k = pg_of (b);

    *id = k->stored[i].same ? k->stored[i].same : job_table_find_key (&k->put, i);
    return *id > 0;
}

static int pg_put (struct job_backend *b, size_t i, uint64_t bytes, idt_error_t *errp)
{
    job_table_put (&pg_of (b)->put, i);
    return 0;
}

static int pg_clear_specs (struct job_backend *b, uint64_t cleared, uint64_t acked, uint64_t *upto, idt_error_t *errp)
{
    pg_of (b)->clears = true;
    *upto = pg_of (b)->tidied.cleared;
    return 0;
}

static int pg_find_old (struct job_backend *b, int64_t forget_s, uint64_t *old, idt_error_t *errp)
{
    *old = pg_of (b)->tidied.old;
    return *old > 0;
}

static int pg_drop_jobs (struct job_backend *b, uint64_t upto, uint64_t *last, uint64_t *n, idt_error_t *errp)
{
    struct job_pg *k = pg_of (b);

    *last = k->tidied.last;
    *n = k->tidied.n;
    k->drops = *n > 0;
    return 0;
}

static int pg_drop_times (struct job_backend *b, int64_t forget_s, idt_error_t *errp)
{
    pg_of (b)->forgets = true;
    pg_of (b)->forget_s = forget_s;
    return 0;
}

/* --- the write ------------------------------------------------------------------------------------------------ */

static void put_optional_member (struct pg_array *a, bool is_set, int64_t value)
{
    if (is_set)
        pg_array_int (a, value);
    else
        pg_array_null (a);
}

static void put_numbers (const struct job_pg *k, const struct job_store_state *s, struct pg_array *a)
{
    const struct job_store_counts *c = &s->counts;
    const uint64_t state[] = { c->acked, c->floor, c->newest, s->cleared, c->jobs, c->bytes, c->remembered };

    pg_array_init (a, PG_INT8);
    for (int i = 0; i < NOTED; i++)
        pg_array_int (a, (int64_t)state[i]);
    put_optional_member (a, k->notes, k->noted_s);
    put_optional_member (a, k->forgets, k->forget_s);
    pg_array_int (a, (int64_t)k->now.counts.floor);
    pg_array_int (a, (int64_t)k->now.cleared);
}

/* The members of a job in a write: id, user, urgency, flags, key, jobspec. */
enum { JOB_ARRAYS = 6 };

static void put_jobs (const struct job_pg *k, struct pg_array a[JOB_ARRAYS])
{
    for (int i = 0; i < JOB_ARRAYS; i++)
        pg_array_init (&a[i], i < 4 ? PG_INT8 : PG_BYTEA);
    for (size_t i = 0; i < k->put.count; i++) {
        const struct job *job = &k->group->job[k->put.order[i]];

        pg_array_int (&a[0], (int64_t)job->id);
        pg_array_int (&a[1], job->userid);
        pg_array_int (&a[2], job->urgency);
        pg_array_int (&a[3], job->flags);
        put_key (&a[4], job);
        pg_array_bytes (&a[5], job->spec, job->spec_size);
    }
}

static bool changes_anything (const struct job_pg *k)
{
    return k->put.count > 0 || k->notes || k->forgets || k->clears || k->drops;
}

static int run_write (struct job_pg *k, const struct job_store_state *s, bool *maybe, idt_error_t *errp)
{
    char body[sizeof (write_state) + sizeof (write_jobs) + sizeof (write_cleared) + sizeof (write_dropped)
              + sizeof (write_times) + sizeof (write_end)];
    struct pg_array numbers, jobs[JOB_ARRAYS];
    struct pg_params p;

    snprintf (body, sizeof (body), "%s%s%s%s%s%s", changes_anything (k) ? write_state : "",
              k->put.count > 0 ? write_jobs : "", k->clears ? write_cleared : "", k->drops ? write_dropped : "",
              k->notes || k->forgets ? write_times : "", write_end);
    put_numbers (k, s, &numbers);
    put_jobs (k, jobs);
    fenced_params (k->fenced, &p);
    pg_put_array (&p, &numbers);
    for (int i = 0; i < JOB_ARRAYS; i++)
        pg_put_array (&p, &jobs[i]);
    int rc = write_led (k, body, &p, maybe, errp), saved = errno;
    pg_array_fini (&numbers);
    for (int i = 0; i < JOB_ARRAYS; i++)
        pg_array_fini (&jobs[i]);
    errno = saved;
    return rc;
}

static int pg_commit (struct job_backend *b, const struct job_store_state *s, bool writes, bool *maybe,
                      idt_error_t *errp)
{
    struct job_pg *k = pg_of (b);

    *maybe = false;
    if (!changes_anything (k) && !writes)
        return 0;
    if (run_write (k, s, maybe, errp) < 0)
        return -1;
    if (k->notes)
        k->oldest_s = min_i64 (k->oldest_s, k->noted_s);
    if (k->forgets)
        k->oldest_s = INT64_MIN;
    return 0;
}

/* Changes are only in memory. */
static void pg_rollback (struct job_backend *b)
{
}

/* --- reads ----------------------------------------------------------------------------------------------------- */

/* Take a job from a row. Returns false if pg_put () cannot have written the row. */
static bool take_job (const struct pg_rows *rows, int i, bool specs, struct job *job)
{
    size_t key_size = 0, spec_size = 0;
    int64_t urgency = pg_int (rows, i, 2);
    const char *key = pg_is_null (rows, i, 4) ? NULL : pg_bytes (rows, i, 4, &key_size);
    bool has_spec = !pg_is_null (rows, i, 6);
    const char *spec = has_spec ? pg_bytes (rows, i, 6, &spec_size) : NULL;

    *job = (struct job){
        .id = (uint64_t)pg_int (rows, i, 0),
        .userid = (uint32_t)pg_int (rows, i, 1),
        .urgency = (uint8_t)urgency,
        .flags = (uint32_t)pg_int (rows, i, 3),
        .key_size = (uint8_t)key_size,
        .key = key,
        .spec = spec,
        .spec_size = (uint32_t)spec_size,
    };
    return urgency >= 0 && urgency <= JOBWIRE_URGENCY_MAX && key_size <= JOBWIRE_KEY_MAX
           && spec_size <= JOBWIRE_SPEC_MAX && (!specs || has_spec);
}

/* Add row 'i' to a read. Returns like job_store_found (). The row after a full read has no jobspec. */
static int add_row (struct job_pg *k, struct job_store_read *read, const struct pg_rows *rows, int i, bool specs)
{
    struct job job;

    if (pg_is_null (rows, i, 0))
        return 0;
    if (pg_int (rows, i, 5) == 0) {
        read->more = true;
        return 0;
    }
    if (take_job (rows, i, specs, &job))
        return job_store_found (&k->base, read, &job);
    return errsetf (&read->error, EBADMSG,
                    "PostgreSQL %s: the tables are damaged: the record of job %" PRIu64
                    " is invalid: see A STANDBY FOR RANK 0 in idtree-operations(7)",
                    fenced_server (k->fenced), job.id);
}

static int pg_read (struct job_backend *b, struct job_store_read *read, uint64_t after, bool specs)
{
    struct job_pg *k = pg_of (b);
    struct pg_params p;
    struct pg_rows rows;
    int rc = 1;

    fenced_params (k->fenced, &p);
    pg_put_int (&p, (int64_t)min_u64 (after, INT64_MAX));
    pg_put_int (&p, (int64_t)min_u64 (read->upto, INT64_MAX));
    pg_put_int (&p, (int64_t)read->max_jobs + 1);
    pg_put_int (&p, specs);
    pg_put_int (&p, (int64_t)min_u64 (max_u64 (read->max_bytes, 1), INT64_MAX));
    if (read_led (k, read_sql, &p, &rows, &read->error) < 0)
        return -1;
    for (int i = 0; i < rows.count && rc > 0; i++)
        rc = add_row (k, read, &rows, i, specs);
    int saved = errno;
    pg_rows_free (&rows);
    errno = saved;
    return rc < 0 ? -1 : 0;
}

/* --- open and close ------------------------------------------------------------------------------------------- */

static void pg_stop_work (struct job_backend *b)
{
    fenced_stop (pg_of (b)->fenced);
}

static bool pg_waits (struct job_backend *b, idt_error_t *why)
{
    return fenced_is_unsure (pg_of (b)->fenced, why);
}

static void pg_close_store (struct job_backend *b)
{
    struct job_pg *k = pg_of (b);

    fenced_close (k->fenced);
    job_table_fini (&k->put);
    free (k->stored);
    free (k->uuid);
    free (k);
}

static const struct job_backend_ops ops = {
    .load = pg_load,
    .look = pg_begin,
    .begin = pg_begin,
    .sum = pg_sum,
    .note_time = pg_note_time,
    .has_id = pg_has_id,
    .find_key = pg_find_key,
    .put = pg_put,
    .clear_specs = pg_clear_specs,
    .find_old = pg_find_old,
    .drop_jobs = pg_drop_jobs,
    .drop_times = pg_drop_times,
    .commit = pg_commit,
    .rollback = pg_rollback,
    .read = pg_read,
    .stop = pg_stop_work,
    .waits = pg_waits,
    .close = pg_close_store,
};

static struct fenced *create_fenced (const struct job_pg *k, const struct module_place *place, idt_error_t *errp)
{
    const struct fenced_config config = {
        .conninfo = place->store, .store = "jobs", .uuid = k->uuid, .term = place->term, .trust = place->trust
    };

    return fenced_create (&config, errp);
}

struct job_backend *job_pg_open (const struct module_place *place, idt_error_t *errp)
{
    struct job_pg *k = calloc (1, sizeof (*k));

    if (!k)
        return errsetf_null (errp, ENOMEM, "out of memory while the stored jobs are opened");
    k->base = (struct job_backend){ .ops = &ops, .where = "the jobs in root.store", .shared = true };
    k->term = place->term;
    if (!(k->uuid = strdup (place->uuid)))
        errprintf (errp, "out of memory while the stored jobs are opened");
    else if ((k->fenced = create_fenced (k, place, errp)))
        return &k->base;
    pg_close_store (&k->base);
    return NULL;
}
