/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_watch_test.c - each consumer is sent jobs up to its limits, in turns */
#include <errno.h>
#include <stdlib.h>

#include "test/tap.h"
#include "modules/ingest/root/visibility.h"

/* A consumer's turn, and the read for it. */
struct turn {
    struct watcher *c;
    uint64_t after;
    uint32_t max_jobs;
    size_t max_bytes;
};

static bool next (struct job_watch *w, uint64_t shown, struct turn *t)
{
    return (t->c = job_watch_next (w, shown, &t->after, &t->max_jobs, &t->max_bytes)) != NULL;
}

/* Send a consumer 'n' jobs with ids from 'first' on. */
static void send (struct job_watch *w, struct watcher *c, uint64_t upto, uint64_t first, uint32_t n, uint32_t spec_size)
{
    struct jobwire_buf b = { 0 };
    struct jobwire_reader jobs;
    char *spec = calloc (1, spec_size);

    tap_must (spec != NULL);
    for (uint32_t i = 0; i < n; i++)
        tap_must (jobwire_add_job (&b, &(struct job){ .id = first + i, .spec = spec, .spec_size = spec_size }) == 0);
    jobwire_buf_reader (&b, &jobs);
    job_watch_sent (w, c, upto, &jobs);
    jobwire_buf_fini (&b);
    free (spec);
}

static void test_window (void)
{
    struct job_watch *w = job_watch_create ();
    struct turn t;
    int owner;

    tap_must (w != NULL);
    struct watcher *c = job_watch_add (w, 10, 5, &owner);
    ok (c && watcher_owner (c) == &owner && watcher_number (c) == 1 && job_watch_find (w, 1) == c
            && !job_watch_find (w, 2),
        "consumers have numbers from 1");
    ok (!next (w, 10, &t), "a consumer that has all visible jobs gets no turn");
    ok (next (w, 100, &t) && t.c == c && t.after == 10 && t.max_jobs == 5 && t.max_bytes == JOB_WATCH_ANSWER_BYTES,
        "a consumer may be sent as many jobs as its window allows");
    ok (!next (w, 100, &t), "while a read for a consumer is under way the consumer gets no other turn");
    send (w, c, 100, 20, 3, 2);
    ok (next (w, 100, &t) && t.after == 22 && t.max_jobs == 2,
        "the next read for a consumer begins behind the jobs that were sent, and is for the rest of the window");
    send (w, c, 100, 30, 2, 2);
    ok (!next (w, 100, &t), "a consumer with a full window gets no turn");
    ok (job_watch_confirm (w, c, 32) < 0 && errno == EINVAL, "jobs that were not sent cannot be confirmed");
    ok (job_watch_confirm (w, c, 15) == 0 && !next (w, 100, &t),
        "a consumer that confirms only jobs before the first sent one frees no window");
    ok (job_watch_confirm (w, c, 21) == 0 && next (w, 100, &t) && t.max_jobs == 2,
        "a consumer that confirms a part of the jobs that were sent frees that part of the window");
    send (w, c, 100, 0, 0, 1);
    ok (watcher_stats (c).after == 100 && watcher_stats (c).jobs == 3 && !next (w, 100, &t),
        "after an empty read the consumer has all jobs up to the end of the read");
    ok (job_watch_confirm (w, c, 100) == 0 && watcher_stats (c).jobs == 0 && watcher_stats (c).bytes == 0,
        "a consumer may confirm up to the end of an empty read");
    ok (job_watch_confirm (w, c, 30) == 0, "a consumer may confirm the same jobs again");
    ok (next (w, 101, &t) && t.after == 100 && t.max_jobs == 5,
        "jobs that become visible later are sent to a consumer that had all jobs");
    job_watch_destroy (w);
}

static void test_ask (void)
{
    struct job_watch *w = job_watch_create ();
    struct turn t;

    tap_must (w != NULL);
    struct watcher *c = job_watch_add (w, 10, 0, NULL);
    tap_must (c != NULL);
    job_watch_ask (c);
    ok (next (w, 5, &t) && t.c == c && t.after == 10, "a consumer that asks for a read gets a turn without jobs");
    send (w, c, 5, 0, 0, 1);
    ok (watcher_stats (c).after == 10 && !next (w, 10, &t), "it gets one such turn, and has the same jobs after it");
    job_watch_destroy (w);
}

static void test_limits (void)
{
    struct job_watch *w = job_watch_create ();
    struct watcher *c[JOB_WATCH_MAX], *first;
    struct turn t;

    tap_must (w != NULL);
    ok (!job_watch_add (w, 0, JOB_WATCH_WINDOW_MAX + 1, NULL) && errno == EINVAL,
        "a window above JOB_WATCH_WINDOW_MAX is refused");
    for (int i = 0; i < JOB_WATCH_MAX; i++)
        tap_must ((c[i] = job_watch_add (w, 0, 0, NULL)) != NULL);
    ok (!job_watch_add (w, 0, 0, NULL) && errno == ENOSPC, "a consumer above JOB_WATCH_MAX is refused");
    bool turns = true;
    for (int i = 0; i < JOB_WATCH_MAX; i++)
        turns = next (w, 9, &t) && t.c == c[i] && turns;
    ok (turns && !next (w, 9, &t), "each of many consumers gets one turn");
    ok (t.c == NULL && watcher_stats (c[0]).window == JOB_WATCH_WINDOW, "the default window of a consumer is %d jobs",
        JOB_WATCH_WINDOW);
    first = c[0];
    send (w, c[1], 0, 0, 0, 1);
    send (w, first, 0, 0, 0, 1);
    ok (next (w, 9, &t) && t.c == first && next (w, 9, &t) && t.c == c[1],
        "the next turns of consumers are in the order of the previous ones");
    job_watch_remove (w, first);
    ok (job_watch_add (w, 0, JOB_WATCH_WINDOW_MAX, NULL) != NULL && !job_watch_find (w, 1) && job_watch_find (w, 65),
        "after one consumer is removed another can be added");
    job_watch_destroy (w);
    job_watch_destroy (NULL);
}

static void test_bytes (void)
{
    struct job_watch *w = job_watch_create ();
    struct turn t;

    tap_must (w != NULL);
    struct watcher *c = job_watch_add (w, 0, 0, NULL);
    for (uint64_t i = 1; i <= 7; i++) {
        tap_must (c && next (w, 1000, &t));
        send (w, c, 1000, i, 1, 1u << 20);
    }
    ok (next (w, 1000, &t) && t.max_bytes == JOB_WATCH_ANSWER_BYTES,
        "a response to a consumer has at most JOB_WATCH_ANSWER_BYTES");
    send (w, c, 1000, 8, 1, (1u << 20) - 400);
    ok (next (w, 1000, &t) && t.max_bytes < 400 && t.max_bytes > 0,
        "if a consumer's unconfirmed jobs are near JOB_WATCH_BYTES, its next response has only the bytes that are "
        "left");
    send (w, c, 1000, 9, 1, 10u << 20);
    ok (!next (w, 1000, &t), "a consumer whose unconfirmed jobs have JOB_WATCH_BYTES gets no turn");
    tap_must (job_watch_confirm (w, c, 8) == 0);
    ok (!next (w, 1000, &t), "a consumer with a single unconfirmed job above JOB_WATCH_BYTES gets no further job");
    tap_must (job_watch_confirm (w, c, 9) == 0);
    ok (next (w, 1000, &t) && t.after == 9, "a consumer that has confirmed a job above JOB_WATCH_BYTES gets a turn");
    job_watch_destroy (w);
}

/* Send many jobs to a consumer that confirms some of them at a time: each job is counted once. */
static void test_many (void)
{
    struct job_watch *w = job_watch_create ();
    struct turn t;
    uint64_t sent = 0, confirmed = 0;
    bool good = true;

    tap_must (w != NULL);
    struct watcher *c = job_watch_add (w, 0, 1000, NULL);
    tap_must (c != NULL);
    while (sent < 100000) {
        while (next (w, 200000, &t)) {
            good = good && t.after == sent && sent + t.max_jobs <= confirmed + 1000;
            send (w, c, 200000, sent + 1, t.max_jobs, 2);
            sent += t.max_jobs;
        }
        good = good && sent == confirmed + 1000;
        confirmed += 900;
        good = job_watch_confirm (w, c, confirmed) == 0 && good;
        good = good && watcher_stats (c).jobs == sent - confirmed && watcher_stats (c).bytes == 32 * (sent - confirmed);
    }
    ok (good, "a consumer that confirms 900 of 1,000 jobs at a time gets all jobs");
    job_watch_destroy (w);
}

static void count_cb (void *arg, struct watcher *c)
{
    struct job_watch **w = arg;

    if (watcher_number (c) % 2)
        job_watch_remove (*w, c);
}

static void test_each (void)
{
    struct job_watch *w = job_watch_create ();

    tap_must (w && job_watch_add (w, 0, 1, NULL) && job_watch_add (w, 0, 1, NULL) && job_watch_add (w, 0, 1, NULL));
    job_watch_each (w, count_cb, &w);
    ok (!job_watch_find (w, 1) && job_watch_find (w, 2) && !job_watch_find (w, 3),
        "a consumer may be removed when job_watch_each () calls for it");
    job_watch_destroy (w);
}

int main (void)
{
    test_window ();
    test_ask ();
    test_limits ();
    test_bytes ();
    test_many ();
    test_each ();
    return done_testing ();
}
