/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* watch_test.c - each consumer is sent jobs up to its limits, in turns */
#include <errno.h>
#include <stdlib.h>

#include "test/tap.h"
#include "modules/ingest/root/watch.h"

static void must (bool good)
{
    if (!good)
        bail_out ("no memory");
}

/* A consumer's turn, and the read for it. */
struct turn {
    struct watcher *c;
    uint64_t after;
    uint32_t max_jobs;
    size_t max_bytes;
};

static bool next (struct watch *w, uint64_t shown, struct turn *t)
{
    return (t->c = watch_next (w, shown, &t->after, &t->max_jobs, &t->max_bytes)) != NULL;
}

/* Send a consumer 'n' jobs with ids from 'first' on. */
static void send (struct watch *w, struct watcher *c, uint64_t upto, uint64_t first, uint32_t n, uint32_t spec_size)
{
    struct jobwire_buf b = { 0 };
    struct jobwire_reader jobs;
    char *spec = calloc (1, spec_size);

    must (spec != NULL);
    for (uint32_t i = 0; i < n; i++)
        must (jobwire_add_job (&b, &(struct job){ .id = first + i, .spec = spec, .spec_size = spec_size }) == 0);
    jobwire_buf_reader (&b, &jobs);
    watch_sent (w, c, upto, &jobs);
    jobwire_buf_fini (&b);
    free (spec);
}

static void test_window (void)
{
    struct watch *w = watch_create ();
    struct turn t;
    int owner;

    must (w != NULL);
    struct watcher *c = watch_add (w, 10, 5, &owner);
    ok (c && watcher_owner (c) == &owner && watcher_number (c) == 1 && watch_find (w, 1) == c && !watch_find (w, 2),
        "consumers have numbers from 1");
    ok (!next (w, 10, &t), "a consumer that has all visible jobs gets no turn");
    ok (next (w, 100, &t) && t.c == c && t.after == 10 && t.max_jobs == 5 && t.max_bytes == WATCH_ANSWER_BYTES,
        "a consumer may be sent as many jobs as its window allows");
    ok (!next (w, 100, &t), "during a read the consumer gets no other turn");
    send (w, c, 100, 20, 3, 2);
    ok (next (w, 100, &t) && t.after == 22 && t.max_jobs == 2,
        "the next read begins behind the jobs sent, and is for the rest of the window");
    send (w, c, 100, 30, 2, 2);
    ok (!next (w, 100, &t), "a consumer with a full window gets no turn");
    ok (watch_confirm (w, c, 32) < 0 && errno == EINVAL, "jobs that were not sent cannot be confirmed");
    ok (watch_confirm (w, c, 15) == 0 && !next (w, 100, &t),
        "confirming jobs before the first sent one frees no window");
    ok (watch_confirm (w, c, 21) == 0 && next (w, 100, &t) && t.max_jobs == 2,
        "confirming a part of an answer frees that part of the window");
    send (w, c, 100, 0, 0, 1);
    ok (watcher_stats (c).after == 100 && watcher_stats (c).jobs == 3 && !next (w, 100, &t),
        "after an empty read the consumer has all jobs up to its end");
    ok (watch_confirm (w, c, 100) == 0 && watcher_stats (c).jobs == 0 && watcher_stats (c).bytes == 0,
        "a consumer may confirm up to the end of an empty read");
    ok (watch_confirm (w, c, 30) == 0, "a consumer may confirm the same jobs again");
    ok (next (w, 101, &t) && t.after == 100 && t.max_jobs == 5, "jobs that become visible later are sent");
    watch_destroy (w);
}

static void test_limits (void)
{
    struct watch *w = watch_create ();
    struct watcher *c[WATCH_MAX], *first;
    struct turn t;

    must (w != NULL);
    ok (!watch_add (w, 0, WATCH_WINDOW_MAX + 1, NULL) && errno == EINVAL, "a window above WATCH_WINDOW_MAX is refused");
    for (int i = 0; i < WATCH_MAX; i++)
        must ((c[i] = watch_add (w, 0, 0, NULL)) != NULL);
    ok (!watch_add (w, 0, 0, NULL) && errno == ENOSPC, "a consumer above WATCH_MAX is refused");
    bool turns = true;
    for (int i = 0; i < WATCH_MAX; i++)
        turns = next (w, 9, &t) && t.c == c[i] && turns;
    ok (turns && !next (w, 9, &t), "each consumer gets one turn");
    ok (t.c == NULL && watcher_stats (c[0]).window == WATCH_WINDOW, "the default window is %d jobs", WATCH_WINDOW);
    first = c[0];
    send (w, c[1], 0, 0, 0, 1);
    send (w, first, 0, 0, 0, 1);
    ok (next (w, 9, &t) && t.c == first && next (w, 9, &t) && t.c == c[1],
        "the next turns are in the order of the previous ones");
    watch_remove (w, first);
    ok (watch_add (w, 0, WATCH_WINDOW_MAX, NULL) != NULL && !watch_find (w, 1) && watch_find (w, 65),
        "after a consumer is removed another can be added");
    watch_destroy (w);
    watch_destroy (NULL);
}

static void test_bytes (void)
{
    struct watch *w = watch_create ();
    struct turn t;

    must (w != NULL);
    struct watcher *c = watch_add (w, 0, 0, NULL);
    for (uint64_t i = 1; i <= 7; i++) {
        must (c && next (w, 1000, &t));
        send (w, c, 1000, i, 1, 1u << 20);
    }
    ok (next (w, 1000, &t) && t.max_bytes == WATCH_ANSWER_BYTES, "an answer has at most WATCH_ANSWER_BYTES");
    send (w, c, 1000, 8, 1, (1u << 20) - 400);
    ok (next (w, 1000, &t) && t.max_bytes < 400 && t.max_bytes > 0,
        "near WATCH_BYTES an answer has only the bytes that are left");
    send (w, c, 1000, 9, 1, 10u << 20);
    ok (!next (w, 1000, &t), "at WATCH_BYTES the consumer gets no turn");
    must (watch_confirm (w, c, 8) == 0);
    ok (!next (w, 1000, &t), "a single job above WATCH_BYTES blocks further ones");
    must (watch_confirm (w, c, 9) == 0);
    ok (next (w, 1000, &t) && t.after == 9, "after that job is confirmed the consumer gets a turn");
    watch_destroy (w);
}

/* Send many jobs to a consumer that confirms some of them at a time: each job is counted once. */
static void test_many (void)
{
    struct watch *w = watch_create ();
    struct turn t;
    uint64_t sent = 0, confirmed = 0;
    bool good = true;

    must (w != NULL);
    struct watcher *c = watch_add (w, 0, 1000, NULL);
    must (c != NULL);
    while (sent < 100000) {
        while (next (w, 200000, &t)) {
            good = good && t.after == sent && sent + t.max_jobs <= confirmed + 1000;
            send (w, c, 200000, sent + 1, t.max_jobs, 2);
            sent += t.max_jobs;
        }
        good = good && sent == confirmed + 1000;
        confirmed += 900;
        good = watch_confirm (w, c, confirmed) == 0 && good;
        good = good && watcher_stats (c).jobs == sent - confirmed && watcher_stats (c).bytes == 32 * (sent - confirmed);
    }
    ok (good, "a consumer that confirms 900 of 1,000 jobs at a time gets all jobs");
    watch_destroy (w);
}

static void count_cb (void *arg, struct watcher *c)
{
    struct watch **w = arg;

    if (watcher_number (c) % 2)
        watch_remove (*w, c);
}

static void test_each (void)
{
    struct watch *w = watch_create ();

    must (w && watch_add (w, 0, 1, NULL) && watch_add (w, 0, 1, NULL) && watch_add (w, 0, 1, NULL));
    watch_each (w, count_cb, &w);
    ok (!watch_find (w, 1) && watch_find (w, 2) && !watch_find (w, 3),
        "a consumer may be removed when watch_each () calls for it");
    watch_destroy (w);
}

int main (void)
{
    test_window ();
    test_limits ();
    test_bytes ();
    test_many ();
    test_each ();
    return done_testing ();
}
