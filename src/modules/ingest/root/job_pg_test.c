/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_pg_test.c - jobs in PostgreSQL: another rank 0 takes over, answers are lost, the server goes away */
#include <errno.h>

#include "test/store_world.h"

#define OLD_LIFE 100
#define NEW_LIFE 200

static char text[1024];

#define shown(w) world_shown (w, text, sizeof (text))

static struct job_store_group group_of (const struct job *job, struct verdict *v, size_t n, uint64_t life)
{
    return (struct job_store_group){
        .job = job, .verdict = v, .n = n, .life = life, .max_jobs = UINT64_MAX, .max_bytes = UINT64_MAX
    };
}

static struct job job_of (uint64_t id, const char *key, uint64_t life)
{
    struct job job = world_job (id, key, "{}");

    job.life = life;
    return job;
}

/* Store jobs in a life; returns like job_store_result (). */
static int store (struct world *w, struct job *job, struct verdict *v, size_t n, uint64_t life, bool *unsure)
{
    struct job_store_group group = group_of (job, v, n, life);
    int rc = world_work (w, &group, NULL, 0);

    *unsure = group.unsure;
    return rc;
}

static bool is (const char *found, const char *wanted)
{
    if (strcmp (found, wanted) == 0)
        return true;
    diag ("found %s, wanted %s", found, wanted);
    return false;
}

static void start (struct world *w, uint64_t term)
{
    struct job job = job_of (10, "ten", OLD_LIFE);
    struct verdict v;
    bool unsure;

    world_init (w);
    if (!world_open_term (w, term) || store (w, &job, &v, 1, OLD_LIFE, &unsure) != 1 || v.kind != VERDICT_STORED)
        bail_out (w->error.text);
}

/* The ranks send the batch of the old life again, to the new rank 0, and what is late with a new id. Each job must be
 * stored once, by id and by key.
 */
static void check_sent_again (struct world *w, bool was_stored, const char *key, const char *when)
{
    struct job jobs[] = { job_of (20, key, OLD_LIFE), job_of (21, "", OLD_LIFE) };
    struct job again[] = { job_of (1020, key, NEW_LIFE), job_of (1021, "", NEW_LIFE) };
    struct verdict v[2];
    enum verdict_kind wanted = was_stored ? VERDICT_STORED : VERDICT_LATE;
    bool unsure;

    ok (store (w, jobs, v, 2, NEW_LIFE, &unsure) == 1 && v[0].kind == wanted && v[1].kind == wanted,
        "%s: the new rank 0 answers that the jobs are %s", when, was_stored ? "STORED" : "LATE");
    if (!was_stored)
        tap_must (store (w, again, v, 2, NEW_LIFE, &unsure) == 1 && v[0].kind == VERDICT_STORED);
    if (key[0])
        ok (store (w, again, v, 1, NEW_LIFE, &unsure) == 1 && v[0].kind == VERDICT_SAME && v[0].id == 20,
            "%s: a key is stored once", when);
    ok (is (shown (w), was_stored ? "10={},20={},21={}" : "10={},1020={},1021={}"), "%s: each job is stored once",
        when);
}

/* The old rank 0 does not know that it was replaced. */
static void check_replaced (struct world *old, const char *when)
{
    struct job late = job_of (5, "", OLD_LIFE), fresh = job_of (99, "z", OLD_LIFE), known = job_of (10, "", OLD_LIFE);
    struct job foreign = job_of (1021, "", NEW_LIFE), bare = job_of (98, "", OLD_LIFE);
    struct job *const each[] = { &late, &fresh, &known, &foreign };
    struct job_store_read read = { .upto = UINT64_MAX, .max_jobs = 9, .max_bytes = 999, .specs = true };
    struct verdict v;
    struct job_store_group both = group_of (&bare, &v, 1, OLD_LIFE);
    bool unsure = true, all = true;

    both.ack = 10;
    both.now_s = 1;
    ok (world_work (old, &both, NULL, 0) < 0 && errno == EAGAIN && both.unsure,
        "%s: if the old rank 0 cannot acknowledge jobs, new jobs of the same group wait", when);
    for (size_t i = 0; i < sizeof (each) / sizeof (each[0]); i++)
        all = all && store (old, each[i], &v, 1, OLD_LIFE, &unsure) < 0 && errno == EAGAIN && unsure;
    ok (all && strstr (old->error.text, "term"), "%s: the old rank 0 gives no verdict: %s", when, old->error.text);
    ok (world_work (old, &(struct job_store_group){ .ack = 10, .now_s = 1 }, NULL, 0) < 0 && errno == EAGAIN,
        "%s: the old rank 0 acknowledges no jobs", when);
    world_work (old, NULL, &read, 1);
    ok (read.errnum == EAGAIN && read.found.count == 0, "%s: the old rank 0 shows no jobs: %s", when, read.error.text);
    jobwire_buf_fini (&read.found);
}

/* --- a takeover in the middle of a batch ---------------------------------------------------------------------- */

/* Let the old rank 0 store jobs 20 and 21 while the copy is stopped and 'fault' is set, and another rank 0 take over.
 * The first statement that changes the fence waits for the copy, and the takeover waits for that statement; then the
 * copy goes on. Returns whether the new rank 0 finds the jobs. (If the first statement came late, a second attempt may
 * come before the takeover.)
 */
static bool replace_in (struct world *old, struct world *w, enum pg_fault fault, const char *when)
{
    const struct module_place place = { .store = world_conninfo, .uuid = WORLD_UUID, .term = 2 };
    struct job jobs[] = { job_of (20, "", OLD_LIFE), job_of (21, "", OLD_LIFE) }; /* no keys: the write comes first */
    struct verdict v[2];
    struct job_store_group group = group_of (jobs, v, 2, OLD_LIFE);
    struct job_store_read lookup = { .upto = 1, .one = true };
    int rc;

    world_work (old, NULL, &lookup, 1);
    *w = (struct world){ .st = job_store_open (&place, NULL, &w->counts, &w->error) };
    pg_server_copy_stop (world_server);
    pg_proxy_fault (world_proxy, fault);
    job_store_begin (old->st, &group, NULL, 0);
    pg_server_wait (world_server, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'", 1);
    job_store_begin (w->st, NULL, NULL, 0);
    pg_server_wait (world_server, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'", 1);
    pg_server_copy_continue (world_server);
    wait_until ((rc = job_store_result (w->st, &w->counts, &w->error)) != 0);
    if (rc < 0)
        bail_out (w->error.text);
    wait_until ((rc = job_store_result (old->st, NULL, &old->error)) != 0);
    bool found = strstr (shown (w), "20={},21={}") != NULL;
    ok (rc == 1 ? found : group.unsure, "%s: the old rank 0 does not say that jobs are not stored: %s", when,
        old->error.text);
    return found;
}

static void end (struct world *old, struct world *w)
{
    job_store_close (w->st);
    world_fini (old);
}

static void check_before_commit (void)
{
    const char *when = "takeover before the commit";
    struct world old, w;

    start (&old, 1);
    bool found = replace_in (&old, &w, PG_FAULT_LATE, when);
    ok (pg_proxy_deliver (world_proxy) == 1 && found == (strstr (shown (&w), "20={}") != NULL),
        "%s: the statement that comes late changes nothing: %s", when, text);
    check_replaced (&old, when);
    check_sent_again (&w, found, "", when);
    end (&old, &w);
}

static void check_committed (void)
{
    const char *when = "takeover after the commit, before the answer";
    struct world old, w;

    start (&old, 1);
    bool found = replace_in (&old, &w, PG_FAULT_ANSWER, when);
    ok (found, "%s: the new rank 0 finds the jobs", when);
    check_replaced (&old, when);
    check_sent_again (&w, true, "", when);
    end (&old, &w);
}

static void check_answered (void)
{
    const char *when = "takeover after the answer";
    struct job jobs[] = { job_of (20, "a", OLD_LIFE), job_of (21, "", OLD_LIFE) };
    struct verdict v[2];
    struct world old, w = { .dir = "" };
    bool unsure;

    start (&old, 1);
    tap_must (store (&old, jobs, v, 2, OLD_LIFE, &unsure) == 1 && v[0].kind == VERDICT_STORED);
    tap_must (world_open_term (&w, 2) != NULL);
    ok (is (shown (&w), "10={},20={},21={}") && w.counts.newest == 21,
        "%s: the new rank 0 shows the jobs, and its line begins at the newest", when);
    check_replaced (&old, when);
    check_sent_again (&w, true, "a", when);
    end (&old, &w);
}

/* --- lives and terms -------------------------------------------------------------------------------------------- */

static void check_terms (void)
{
    struct world old, w = { .dir = "" };

    start (&old, 5);
    ok (!world_open_term (&w, 4) && errno == EAGAIN && strstr (w.error.text, "term 5"),
        "a rank 0 of an earlier term does not get the store: %s", w.error.text);
    ok (world_open_term (&w, 5) && is (shown (&w), "10={}"), "a later life of the same term gets it");
    job_store_close (w.st);
    world_fini (&old);
}

/* Another rank 0 takes over in the middle of the statement that reads the state. That statement itself sees nothing of
 * it.
 */
static void check_replaced_while_opening (void)
{
    struct world old, w = { .dir = "" };

    start (&old, 1);
    pg_server_sql (world_server, "CREATE FUNCTION replace () RETURNS int LANGUAGE sql AS"
                                 " $$UPDATE idtree.fence SET term = 9 WHERE store = 'jobs' RETURNING 1$$");
    pg_server_sql (world_server, "ALTER TABLE idtree.ingest RENAME TO state");
    pg_server_sql (world_server, "CREATE VIEW idtree.ingest AS SELECT s.* FROM idtree.state s, replace ()");
    ok (!world_open_term (&w, 2) && errno == EAGAIN && strstr (w.error.text, "term 9"),
        "a rank 0 that is replaced while it reads the state does not get the store: %s", w.error.text);
    pg_server_sql (world_server, "DROP VIEW idtree.ingest");
    pg_server_sql (world_server, "ALTER TABLE idtree.state RENAME TO ingest");
    pg_server_sql (world_server, "DROP FUNCTION replace ()");
    ok (world_open_term (&w, 10) && is (shown (&w), "10={}"), "a rank 0 that is not replaced gets it");
    job_store_close (w.st);
    world_fini (&old);
}

/* --- the server ------------------------------------------------------------------------------------------------- */

static void check_server (void)
{
    struct world w;
    struct job job = job_of (20, "", OLD_LIFE);
    struct verdict v;
    struct job_store_group group = group_of (&job, &v, 1, OLD_LIFE);
    idt_error_t why = { "" };
    bool unsure;

    start (&w, 1);
    pg_server_set_names (world_server, "");
    ok (store (&w, &job, &v, 1, OLD_LIFE, &unsure) < 0 && errno == ENOTSUP && !unsure && v.kind == VERDICT_REFUSED,
        "without a second server no job is stored: %s", w.error.text);
    pg_server_set_names (world_server, "*");
    ok (store (&w, &job, &v, 1, OLD_LIFE, &unsure) == 1 && v.kind == VERDICT_STORED,
        "when there is a second server again, jobs are stored");
    job = job_of (30, "k", OLD_LIFE);
    pg_server_kill (world_server);
    job_store_begin (w.st, &group, NULL, 0);
    int rc;
    wait_until ((rc = job_store_result (w.st, NULL, &w.error)) != 0 || job_store_waits (w.st, &why));
    ok (rc == 0 || group.unsure, "while the server is away, jobs wait: %s", rc == 0 ? why.text : w.error.text);
    pg_server_run (world_server);
    pg_server_copy_start (world_server);
    wait_until (rc != 0 || (rc = job_store_result (w.st, NULL, &w.error)) != 0);
    wait_until (rc == 1 || (rc = world_work (&w, &group, NULL, 0)) == 1);
    ok (v.kind == VERDICT_STORED && is (shown (&w), "10={},20={},30={}"), "when the server is back, they are stored");
    world_fini (&w);
}

/* While an answer is lost and the server does not confirm, the work goes on, and says why. */
static void check_waits (void)
{
    struct world w;
    struct job job = job_of (20, "", OLD_LIFE);
    struct verdict v;
    struct job_store_group group = group_of (&job, &v, 1, OLD_LIFE);
    idt_error_t why = { "" };
    int rc;

    start (&w, 1);
    ok (!job_store_waits (w.st, &why), "a store that has no work waits for no server");
    pg_proxy_fault (world_proxy, PG_FAULT_ANSWER);
    pg_server_copy_stop (world_server);
    job_store_begin (w.st, &group, NULL, 0);
    wait_until (job_store_waits (w.st, &why));
    ok (job_store_result (w.st, NULL, NULL) == 0 && why.text[0], "work without an answer waits, and says why: %s",
        why.text);
    pg_server_copy_continue (world_server);
    wait_until ((rc = job_store_result (w.st, NULL, NULL)) != 0);
    ok (rc == 1 && v.kind == VERDICT_STORED && is (shown (&w), "10={},20={}"),
        "when the server answers, the job is stored once");
    pg_server_copy_stop (world_server);
    job.id = 30;
    job_store_begin (w.st, &group, NULL, 0);
    job_store_close (w.st);
    w.st = NULL;
    pg_server_copy_continue (world_server);
    tap_must (world_open_term (&w, 2) != NULL);
    ok (strncmp (shown (&w), "10={},20={}", 11) == 0, "closing a store ends work that waits: %s", text);
    world_fini (&w);
}

int main (void)
{
    world_begin ();
    check_before_commit ();
    check_committed ();
    check_answered ();
    check_terms ();
    check_replaced_while_opening ();
    check_server ();
    check_waits ();
    world_end ();
    return done_testing ();
}
