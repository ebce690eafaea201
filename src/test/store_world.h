/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* store_world.h - for tests of the store of jobs: a folder, a store in this folder, and the results of the store
 *
 * With WORLD_PG the store is in PostgreSQL: world_begin () starts a server, which has the tables of one world at a
 * time, and a proxy before it.
 */
#ifndef TEST_STORE_WORLD_H
#define TEST_STORE_WORLD_H

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "modules/ingest/root/job_store.h"
#include "test/tap.h"
#ifdef WORLD_PG
#include "libpg/pgstate.h"
#include "test/pg_proxy.h"
#include "test/pg_server.h"
#endif

struct world {
    char dir[64];
    uint64_t term; /* in PostgreSQL: of the last opening */
    struct job_store *st;
    struct job_store_counts counts;
    idt_error_t error;
};

#define WORLD_UUID "11111111-2222-4333-8444-555555555555"

#ifdef WORLD_PG
static struct pg_server *world_server;
static struct pg_proxy *world_proxy;
static char world_conninfo[160]; /* through the proxy */
#endif

/* Begin the test. Ends the program if there is no server of PostgreSQL, and one is needed. */
__attribute__ ((unused)) static void world_begin (void)
{
#ifdef WORLD_PG
    if (pg_server_lacks ()) {
        printf ("1..0 # SKIP %s\n", pg_server_lacks ());
        exit (0);
    }
    world_server = pg_server_start ();
    world_proxy = pg_proxy_start (pg_server_dir (world_server));
    snprintf (world_conninfo, sizeof (world_conninfo), "host=%s user=postgres dbname=postgres",
              pg_proxy_host (world_proxy));
#endif
}

__attribute__ ((unused)) static void world_end (void)
{
#ifdef WORLD_PG
    pg_proxy_stop (world_proxy);
    pg_server_destroy (world_server);
#endif
}

/* Make the tables of a new instance. */
static inline void world_make_tables (void)
{
#ifdef WORLD_PG
    const struct pg_config config = { .conninfo = pg_server_conninfo (world_server),
                                      .application = "test",
                                      .timeout_ms = TAP_WAIT_S * 1000 };
    const struct pgstate state = { .uuid = WORLD_UUID, .name = "test", .created_ms = 1 };
    idt_error_t error = { "" };
    struct pg *pg = pg_open (&config, &error);

    if (!pg || pg_run (pg, "DROP SCHEMA IF EXISTS idtree CASCADE", NULL, NULL, NULL, &error) < 0
        || pgstate_make (pg, &state, &error) < 0)
        bail_out (error.text);
    pg_close (pg);
#endif
}

__attribute__ ((unused)) static void world_init (struct world *w)
{
    *w = (struct world){ .dir = "/tmp/idtree-store-XXXXXX" };
    if (!mkdtemp (w->dir))
        bail_out ("mkdtemp");
    world_make_tables ();
}

__attribute__ ((unused)) static int world_work (struct world *w, struct job_store_group *group,
                                                struct job_store_read *reads, size_t nreads)
{
    struct pollfd pfd = { .fd = job_store_fd (w->st), .events = POLLIN };
    int rc;

    job_store_begin (w->st, group, reads, nreads);
    wait_until ((rc = job_store_result (w->st, &w->counts, &w->error)) != 0) poll (&pfd, 1, TAP_WAIT_S * 1000);
    return rc;
}

#ifdef WORLD_PG
/* Open the store as a rank 0 of 'term'. Returns NULL with w->error filled. */
__attribute__ ((unused)) static struct job_store *world_open_term (struct world *w, uint64_t term)
{
    const struct module_place place = { .store = world_conninfo, .uuid = WORLD_UUID, .term = term };
    struct job_store *st = job_store_open (&place, NULL, &w->counts, &w->error);

    w->st = st;
    if (st && world_work (w, NULL, NULL, 0) < 0) {
        job_store_close (st);
        w->st = NULL;
    }
    return w->st;
}
#endif

/* Open the store, or close it and open it again. In PostgreSQL every second life has a term of its own. */
__attribute__ ((unused)) static bool world_open (struct world *w)
{
    job_store_close (w->st);
    w->error.text[0] = '\0';
#ifdef WORLD_PG
    world_open_term (w, 1 + w->term++ / 2);
#else
    w->st = job_store_open (&(struct module_place){ .dir = w->dir }, "broker 12345678, process 1 on here", &w->counts,
                            &w->error);
#endif
    return w->st != NULL;
}

/* Close the store, and remove the folder. Returns whether the folder had no files of others. */
__attribute__ ((unused)) static bool world_fini (struct world *w)
{
    static const char *const names[] = { "ingest.sqlite", "ingest.sqlite-wal", "ingest.sqlite-journal" };
    char path[128];

    job_store_close (w->st);
    w->st = NULL;
    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++) {
        snprintf (path, sizeof (path), "%s/%s", w->dir, names[i]);
        unlink (path);
    }
    return rmdir (w->dir) == 0;
}

/* Return a job of user 1. Its key is the text 'key'; "": it has no key. The texts are borrowed. */
__attribute__ ((unused)) static struct job world_job (uint64_t id, const char *key, const char *spec)
{
    return (struct job){ .id = id,
                         .userid = 1,
                         .urgency = 16,
                         .key = key,
                         .key_size = (uint8_t)strlen (key),
                         .spec = spec,
                         .spec_size = (uint32_t)strlen (spec) };
}

/* Store jobs without limits. 'line' is the line of the group. */
__attribute__ ((unused)) static int world_store (struct world *w, uint64_t line, const struct job *job,
                                                 struct verdict *verdict, size_t n)
{
    struct job_store_group group = {
        .job = job, .verdict = verdict, .n = n, .line = line, .max_jobs = UINT64_MAX, .max_bytes = UINT64_MAX
    };
    return world_work (w, &group, NULL, 0);
}

/* Store a job without a key, with the jobspec 'spec'. */
__attribute__ ((unused)) static bool world_put (struct world *w, uint64_t id, const char *spec)
{
    struct job job = world_job (id, "", spec);
    struct verdict v;

    return world_store (w, 0, &job, &v, 1) == 1 && v.kind == VERDICT_STORED;
}

/* Write the jobs that were read as text: ID=SPEC, separated by commas, with "..." at the end if there are more. */
__attribute__ ((unused)) static const char *world_found (const struct job_store_read *read, char *text, size_t size)
{
    struct jobwire_reader r;
    struct job job;
    size_t n = 0;

    text[0] = '\0';
    jobwire_buf_reader (&read->found, &r);
    while (jobwire_next_job (&r, &job) && n < size)
        n += (size_t)snprintf (text + n, size - n, "%s%llu=%.*s", n > 0 ? "," : "", (unsigned long long)job.id,
                               (int)job.spec_size, job.spec);
    if (read->more && n < size)
        snprintf (text + n, size - n, "...");
    return text;
}

/* Write all visible jobs as text in the form of world_found (); "?" if they cannot be read. */
__attribute__ ((unused)) static const char *world_shown (struct world *w, char *text, size_t size)
{
    struct job_store_read read = { .upto = UINT64_MAX, .max_jobs = UINT32_MAX, .max_bytes = SIZE_MAX, .specs = true };

    world_work (w, NULL, &read, 1);
    world_found (&read, text, size);
    jobwire_buf_fini (&read.found);
    return read.errnum ? "?" : text;
}

#endif /* TEST_STORE_WORLD_H */
