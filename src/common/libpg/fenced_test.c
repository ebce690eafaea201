/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fenced_test.c - a write is done once or not at all, and only by the root of the newest term
 *
 * The server is a real one with a synchronous copy. Between it and the store is a proxy, which loses statements and
 * answers, or delivers statements late. A write adds a row with the next number to the table "written", so the rows
 * tell which writes were done, and how often.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "libpg/fenced.h"
#include "libpg/pgstate.h"
#include "test/pg_proxy.h"
#include "test/pg_server.h"
#include "test/tap.h"

#define UUID "01234567-89ab-4cde-8f01-23456789abcd"
#define OTHER "11234567-89ab-4cde-8f01-23456789abcd"
#define WRITE ", put AS (INSERT INTO written SELECT $4 FROM fence) SELECT serial FROM fence"
#define WAITING "SELECT count (*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"

static struct pg_server *server;
static struct pg_proxy *proxy;
static char conninfo[128]; /* through the proxy */
static int64_t next_row = 1;

/* --- a store ----------------------------------------------------------------------------------------- */

static struct fenced *try_open (uint64_t term, const char *uuid, bool trust, idt_error_t *errp)
{
    const struct fenced_config config = {
        .conninfo = conninfo, .store = "jobs", .uuid = uuid, .term = term, .trust = trust, .timeout_ms = 10000
    };

    return fenced_open (&config, errp);
}

static struct fenced *open_term (uint64_t term)
{
    idt_error_t error;
    struct fenced *f = try_open (term, UUID, false, &error);

    if (!f)
        bail_out (error.text);
    return f;
}

struct attempt {
    struct fenced *f;
    int64_t row;
    int rc, errnum;
    bool unsure;
    idt_error_t error;
    pthread_t thread;
    _Atomic bool ended;
};

static void write_row (struct attempt *a)
{
    struct pg_params p;

    fenced_params (a->f, &p);
    pg_put_int (&p, a->row);
    a->rc = fenced_write (a->f, WRITE, &p, &a->unsure, &a->error);
    a->errnum = errno;
}

static struct attempt write_next (struct fenced *f)
{
    struct attempt a = { .f = f, .row = next_row++ };

    write_row (&a);
    return a;
}

static void *write_main (void *arg)
{
    struct attempt *a = arg;

    write_row (a);
    a->ended = true;
    return NULL;
}

/* Write in a thread, and return when the server waits for the copy. */
static void begin_write (struct attempt *a, struct fenced *f)
{
    *a = (struct attempt){ .f = f, .row = next_row++ };
    if (pthread_create (&a->thread, NULL, write_main, a) != 0)
        bail_out ("no thread");
    pg_server_wait (server, WAITING, 1);
}

static void end_write (struct attempt *a)
{
    pthread_join (a->thread, NULL);
}

/* Wait until it is not known whether the write is done, and 'text' is a part of the reason. Returns false if it ended.
 */
static bool wait_until_unsure (struct attempt *a, const char *text)
{
    idt_error_t why = { "" };

    while (!a->ended && (!fenced_is_unsure (a->f, &why) || !strstr (why.text, text)))
        poll (NULL, 0, 5);
    return !a->ended;
}

/* How often the row of a write is there. */
static int64_t times (int64_t row)
{
    char sql[80];

    snprintf (sql, sizeof (sql), "SELECT count (*) FROM written WHERE n = %lld", (long long)row);
    return pg_server_sql (server, sql);
}

/* --- opening ----------------------------------------------------------------------------------------- */

static void test_refused (void)
{
    struct pgstate s = { .uuid = UUID, .name = "test", .created_ms = 1 };
    struct pg_config config = { .conninfo = pg_server_conninfo (server), .application = "test", .timeout_ms = 10000 };
    idt_error_t error;
    struct pg *pg = pg_open (&config, &error);

    ok (!try_open (1, UUID, false, &error) && errno == STATE_REFUSED && strstr (error.text, "run idtree init"),
        "a database without tables is refused");
    ok (pgstate_make (pg, &s, &error) == 0, "the tables are made");
    ok (pgstate_make (pg, &s, &error) < 0 && errno == EEXIST, "they are not made again");
    ok (!try_open (1, OTHER, false, &error) && errno == STATE_REFUSED && strstr (error.text, UUID),
        "another instance is refused, and the message names the one of the database");
    pg_server_set_names (server, "");
    ok (!try_open (1, UUID, false, &error) && errno == ENOTSUP && strstr (error.text, "synchronous_standby_names"),
        "a server that waits for no copy is refused");
    struct fenced *f = try_open (1, UUID, true, &error);
    ok (f != NULL, "unless it is trusted");
    fenced_close (f);
    pg_server_set_names (server, "*");
    pg_server_sql (server, "UPDATE idtree.instance SET version = 99");
    ok (!try_open (1, UUID, false, &error) && errno == STATE_REFUSED && strstr (error.text, "99"),
        "tables of a later version are refused");
    pg_server_sql (server, "UPDATE idtree.instance SET version = 1, filled = false");
    ok (!try_open (1, UUID, false, &error) && errno == STATE_REFUSED && strstr (error.text, "not complete"),
        "tables that are not complete are refused");
    pg_server_sql (server, "UPDATE idtree.instance SET filled = true");
    pg_server_sql (server, "CREATE TABLE written (n bigint)");
    pg_close (pg);
}

/* --- one fault --------------------------------------------------------------------------------------- */

static void test_done (void)
{
    struct fenced *f = open_term (2);
    struct attempt a = write_next (f), b = write_next (f);

    ok (a.rc == 0 && b.rc == 0 && times (a.row) == 1 && times (b.row) == 1, "a write is done, and so is the next");
    ok (!fenced_is_unsure (f, NULL), "nothing is unsure");
    pg_server_sql (server, "ALTER TABLE written ADD CHECK (n <> -1)");
    struct attempt bad = { .f = f, .row = -1 };
    write_row (&bad);
    ok (bad.rc < 0 && bad.errnum == EIO && !bad.unsure, "a write that the server refuses is not done");
    a = write_next (f);
    ok (a.rc == 0 && times (a.row) == 1, "and the next one is");
    fenced_close (f);
}

static void test_fault (enum pg_fault fault, const char *what)
{
    struct fenced *f = open_term (3);
    struct attempt a;

    pg_proxy_fault (proxy, fault);
    a = write_next (f);
    ok (!pg_proxy_is_armed (proxy) && a.rc == 0 && times (a.row) == 1, "%s: the write is done once", what);
    pg_proxy_deliver (proxy);
    ok (times (a.row) == 1, "%s: also after what is late", what);
    a = write_next (f);
    ok (a.rc == 0 && times (a.row) == 1, "%s: the next write is done", what);
    fenced_close (f);
}

/* A write is lost, and then the statement that finds out whether it was done. The serial says that, not its change. */
static void test_settle (enum pg_fault of_write, enum pg_fault of_settle, const char *what)
{
    struct fenced *f = open_term (3);
    struct attempt a, b;

    pg_proxy_fault (proxy, of_write);
    pg_proxy_fault_then (proxy, of_settle, "serial = serial + 2");
    a = write_next (f);
    ok (!pg_proxy_is_armed (proxy) && a.rc == 0 && times (a.row) == 1, "%s: the write is done once", what);
    b = write_next (f);
    pg_proxy_deliver (proxy);
    ok (b.rc == 0 && times (a.row) == 1 && times (b.row) == 1, "%s: so is the next, also after what is late", what);
    fenced_close (f);
}

/* A late statement of an earlier user of the store, in the same term and in an earlier one. */
static void test_late (uint64_t term, const char *what)
{
    struct fenced *f = open_term (4), *g;
    struct attempt a = { .f = f, .row = next_row++ }, b;

    pg_proxy_fault (proxy, PG_FAULT_LATE);
    if (pthread_create (&a.thread, NULL, write_main, &a) != 0)
        bail_out ("no thread");
    while (pg_proxy_is_armed (proxy))
        poll (NULL, 0, 1);
    fenced_stop (f);
    end_write (&a);
    int64_t before = times (a.row);
    g = open_term (term);
    pg_proxy_deliver (proxy);
    ok (times (a.row) == before, "a late write of an earlier user in %s changes nothing", what);
    b = write_next (g);
    ok (b.rc == 0 && times (b.row) == 1, "and the user of the store writes");
    fenced_close (f);
    fenced_close (g);
}

/* --- random faults ----------------------------------------------------------------------------------- */

static _Atomic bool over;
static _Atomic int budget; /* faults that may still happen to the current write */

static void *fault_main (void *arg)
{
    static const enum pg_fault faults[] = { PG_FAULT_QUERY, PG_FAULT_ANSWER, PG_FAULT_LATE };
    unsigned draws = *(unsigned *)arg;

    while (!over) {
        if (budget > 0) {
            budget--;
            pg_proxy_fault (proxy, faults[rand_r (&draws) % 3]);
        }
        while (pg_proxy_is_armed (proxy) && !over)
            poll (NULL, 0, 1);
        poll (NULL, 0, rand_r (&draws) % 3);
        if (rand_r (&draws) % 8 == 0)
            pg_proxy_deliver (proxy);
    }
    pg_proxy_fault (proxy, PG_FAULT_NONE);
    pg_proxy_deliver (proxy);
    return NULL;
}

static void test_random (unsigned seed)
{
    struct fenced *f = open_term (5);
    int64_t first = next_row;
    unsigned draws = seed;
    pthread_t thread;
    bool good = true;
    int n = 40;

    over = false;
    if (pthread_create (&thread, NULL, fault_main, &seed) != 0)
        bail_out ("no thread");
    for (int i = 0; i < n; i++) {
        budget = rand_r (&draws) % 4;
        struct attempt a = write_next (f);

        if (a.rc < 0) {
            diag ("row %lld: %s", (long long)a.row, a.error.text);
            good = good && times (a.row) == 0 && !a.unsure;
        }
        else if (times (a.row) != 1)
            good = false;
    }
    over = true;
    pthread_join (thread, NULL);
    char sql[160];
    snprintf (sql, sizeof (sql), "SELECT count (*) - count (DISTINCT n) FROM written WHERE n >= %lld",
              (long long)first);
    ok (good && pg_server_sql (server, sql) == 0, "seed %u: each of %d writes was done once, or was said not to be",
        seed, n);
    fenced_close (f);
}

/* --- the copy ---------------------------------------------------------------------------------------- */

static void test_cancelled (void)
{
    struct fenced *f = open_term (6);
    struct attempt a;

    pg_server_copy_stop (server);
    begin_write (&a, f);
    pg_server_sql (server, "SELECT pg_cancel_backend (pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    ok (wait_until_unsure (&a, "") && times (a.row) == 1, "a wait for the copy that is cancelled ends the commit");
    if (!a.ended)
        pg_server_wait (server, WAITING, 1);
    ok (fenced_is_unsure (f, NULL), "but the write does not count: a further statement waits for the copy");
    pg_server_copy_continue (server);
    end_write (&a);
    ok (a.rc == 0 && times (a.row) == 1 && !fenced_is_unsure (f, NULL),
        "it counts when that is acknowledged, and is done once");
    fenced_close (f);
}

static void test_terminated (void)
{
    struct fenced *f = open_term (6);
    struct attempt a;

    pg_server_copy_stop (server);
    begin_write (&a, f);
    pg_server_sql (server, "SELECT pg_terminate_backend (pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    bool unsure = wait_until_unsure (&a, "");
    if (unsure)
        pg_server_wait (server, WAITING, 1);
    pg_server_copy_continue (server);
    end_write (&a);
    ok (unsure && a.rc == 0 && times (a.row) == 1,
        "a session that is terminated while it waits for the copy: done once");
    fenced_close (f);
}

static void test_names_emptied (void)
{
    struct fenced *f = open_term (6);
    struct attempt a, b;

    pg_server_copy_stop (server);
    begin_write (&a, f);
    pg_server_set_names (server, "");
    ok (wait_until_unsure (&a, "synchronous_standby_names") && times (a.row) == 1,
        "when the names of copies are emptied, the server ends commits that wait");
    pg_server_copy_continue (server);
    pg_server_set_names (server, "*");
    end_write (&a);
    ok (a.rc == 0 && times (a.row) == 1, "such a write counts only when commits wait for copies again");
    pg_server_set_names (server, "");
    b = write_next (f);
    ok (b.rc < 0 && b.errnum == ENOTSUP && !b.unsure && times (b.row) == 0, "without copies nothing is written");
    pg_server_set_names (server, "*");
    b = write_next (f);
    ok (b.rc == 0 && times (b.row) == 1, "with copies it is");
    fenced_close (f);
}

static void test_killed (void)
{
    struct fenced *f = open_term (6);
    struct attempt a;

    pg_server_copy_stop (server);
    begin_write (&a, f);
    pg_server_kill (server);
    ok (wait_until_unsure (&a, ""), "a server is killed while a write waits");
    pg_server_copy_end (server);
    pg_server_run (server);
    pg_server_copy_start (server);
    end_write (&a);
    ok (a.rc == 0 && times (a.row) == 1, "it is started again: the write is done once");
    a = write_next (f);
    ok (a.rc == 0 && times (a.row) == 1, "and the next write is done");
    fenced_close (f);
}

static void test_stopped (void)
{
    struct fenced *f = open_term (6);
    struct attempt a;

    pg_server_copy_stop (server);
    begin_write (&a, f);
    fenced_stop (f);
    end_write (&a);
    ok (a.rc < 0 && a.errnum == ECANCELED && a.unsure, "a write that is stopped may be done");
    a = write_next (f);
    ok (a.rc < 0 && a.errnum == ECANCELED && !a.unsure, "a later one is not");
    pg_server_copy_continue (server);
    fenced_close (f);
    pg_server_wait (server, WAITING, 0);
}

/* --- terms ------------------------------------------------------------------------------------------- */

static void *open_main (void *arg)
{
    *(struct fenced **)arg = open_term (8);
    return NULL;
}

static void test_terms (void)
{
    struct fenced *f = open_term (7), *g = NULL;
    struct attempt a, b;
    struct pg_params p;
    struct pg_rows rows;
    idt_error_t error;
    pthread_t thread;

    pg_server_copy_stop (server);
    begin_write (&a, f);
    if (pthread_create (&thread, NULL, open_main, &g) != 0)
        bail_out ("no thread");
    pg_server_wait (server, "SELECT count (*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'", 1);
    pg_server_copy_continue (server);
    end_write (&a);
    pthread_join (thread, NULL);
    ok (a.rc == 0 && times (a.row) == 1 && g, "a later term waits for a write that is under way");
    a = write_next (f);
    b = write_next (g);
    ok (a.rc < 0 && a.errnum == ESTALE && !a.unsure && times (a.row) == 0,
        "afterwards the earlier term writes nothing");
    ok (b.rc == 0 && times (b.row) == 1, "the later one does");
    fenced_params (f, &p);
    ok (fenced_read (f, "SELECT n FROM written WHERE " FENCED_HOLDS, &p, &rows, &error) == 0 && rows.count == 0,
        "the earlier term reads nothing");
    pg_rows_free (&rows);
    fenced_params (g, &p);
    ok (fenced_read (g, "SELECT n FROM written WHERE " FENCED_HOLDS, &p, &rows, &error) == 0 && rows.count > 0,
        "the later one reads");
    pg_rows_free (&rows);
    ok (!try_open (7, UUID, false, &error) && errno == ESTALE && strstr (error.text, "term 8"),
        "an earlier term cannot be opened");
    fenced_close (f);
    fenced_close (g);
}

static void test_store_went_back (void)
{
    struct fenced *f = open_term (9);
    struct attempt a = write_next (f);

    ok (a.rc == 0, "a write is done");
    pg_server_sql (server, "UPDATE idtree.fence SET serial = serial - 1 WHERE store = 'jobs'");
    a = write_next (f);
    ok (a.rc < 0 && a.errnum == STATE_REFUSED && strstr (a.error.text, "has lost commits"),
        "a store that has lost an acknowledged write is refused");
    fenced_close (f);
}

static void test_read_only (void)
{
    struct fenced *f = open_term (10);
    struct attempt a;

    pg_server_sql (server, "ALTER DATABASE postgres SET default_transaction_read_only = on");
    pg_server_sql (server,
                   "SELECT pg_terminate_backend (pid) FROM pg_stat_activity WHERE application_name = 'idtree jobs'");
    pg_server_wait (server, "SELECT count (*) FROM pg_stat_activity WHERE application_name = 'idtree jobs'", 0);
    a = (struct attempt){ .f = f, .row = next_row++ };
    if (pthread_create (&a.thread, NULL, write_main, &a) != 0)
        bail_out ("no thread");
    ok (wait_until_unsure (&a, "read-only"), "a write to a server that became read-only waits");
    pg_server_sql (server, "ALTER DATABASE postgres RESET default_transaction_read_only");
    end_write (&a);
    ok (a.rc == 0 && times (a.row) == 1, "it is done when the server is not any longer");
    fenced_close (f);
}

/* --- a server that accepts connections, and says nothing -------------------------------------------------------- */

static int listen_silently (char dir[32])
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    strcpy (dir, "/tmp/idtree-fenced.XXXXXX");
    if (!mkdtemp (dir))
        bail_out (dir);
    snprintf (addr.sun_path, sizeof (addr.sun_path), "%s/.s.PGSQL.5432", dir);
    if (fd < 0 || bind (fd, (struct sockaddr *)&addr, sizeof (addr)) < 0 || listen (fd, 1) < 0)
        bail_out (addr.sun_path);
    return fd;
}

static void *take_store (void *arg)
{
    struct attempt *a = arg;

    a->rc = fenced_take (a->f, &a->error);
    a->errnum = errno;
    return NULL;
}

static void test_stop_take (void)
{
    char dir[32], path[64], info[64];
    struct fenced_config config = {
        .conninfo = info, .store = "jobs", .uuid = UUID, .term = 1, .timeout_ms = 24 * 3600000
    };
    int listener = listen_silently (dir);
    struct attempt a = { .rc = 0 };
    pthread_t thread;

    snprintf (info, sizeof (info), "host=%s user=postgres", dir);
    a.f = fenced_create (&config, &a.error);
    if (!a.f || pthread_create (&thread, NULL, take_store, &a) != 0)
        bail_out (a.error.text);
    int fd = accept (listener, NULL, NULL);
    fenced_stop (a.f);
    pthread_join (thread, NULL);
    ok (a.rc < 0 && a.errnum == ECANCELED, "a store that waits for a connection can be stopped: %s", a.error.text);
    ok (fenced_take (a.f, &a.error) < 0 && errno == ECANCELED, "it stays stopped");
    fenced_close (a.f);
    close (fd);
    close (listener);
    snprintf (path, sizeof (path), "%s/.s.PGSQL.5432", dir);
    unlink (path);
    rmdir (dir);
}

static void test_take_again (void)
{
    struct fenced *f = open_term (2);
    struct attempt before = write_next (f);
    idt_error_t error;

    ok (before.rc == 0 && fenced_take (f, &error) == 0 && write_next (f).rc == 0,
        "a store can be taken again, and then written");
    fenced_close (f);
}

int main (void)
{
    const char *lacks = pg_server_lacks ();

    if (lacks) {
        skip ("writes to PostgreSQL", lacks);
        return done_testing ();
    }
    server = pg_server_start ();
    proxy = pg_proxy_start (pg_server_dir (server));
    snprintf (conninfo, sizeof (conninfo), "host=%s user=postgres dbname=postgres", pg_proxy_host (proxy));
    test_stop_take ();
    test_refused ();
    test_done ();
    test_take_again ();
    test_fault (PG_FAULT_QUERY, "a statement is lost");
    test_fault (PG_FAULT_ANSWER, "an answer is lost");
    test_fault (PG_FAULT_LATE, "a statement is late");
    test_settle (PG_FAULT_QUERY, PG_FAULT_QUERY, "a write and its settlement are lost");
    test_settle (PG_FAULT_QUERY, PG_FAULT_ANSWER, "a write and the answer of its settlement are lost");
    test_settle (PG_FAULT_QUERY, PG_FAULT_LATE, "a write is lost, its settlement is late");
    test_settle (PG_FAULT_ANSWER, PG_FAULT_ANSWER, "the answers of a write and of its settlement are lost");
    test_settle (PG_FAULT_ANSWER, PG_FAULT_LATE, "the answer of a write is lost, its settlement is late");
    test_settle (PG_FAULT_LATE, PG_FAULT_ANSWER, "a write is late, the answer of its settlement is lost");
    test_settle (PG_FAULT_LATE, PG_FAULT_LATE, "a write and its settlement are late");
    test_late (4, "the same term");
    test_late (5, "an earlier term");
    for (unsigned seed = 1; seed <= 3; seed++)
        test_random (seed);
    test_cancelled ();
    test_terminated ();
    test_names_emptied ();
    test_killed ();
    test_stopped ();
    test_terms ();
    test_store_went_back ();
    test_read_only ();
    pg_proxy_stop (proxy);
    return done_testing ();
}
