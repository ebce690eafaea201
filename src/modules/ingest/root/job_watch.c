/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_watch.c - consumers take turns; for each, the jobs that it was sent and has not confirmed
 *
 * For each such job the list has its id and the running sum of bytes, so that a confirmation is found by binary search,
 * also in the middle of an answer.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/ingest/root/job_watch.h"

TAILQ_HEAD (watchers, watcher);

struct sent {
    uint64_t id;
    uint64_t bytes; /* sum of the bytes up to this job */
};

struct watcher {
    TAILQ_ENTRY (watcher) link; /* in order of number */
    TAILQ_ENTRY (watcher) turn;
    uint64_t number;
    uint64_t after;
    uint32_t window;
    void *owner;
    bool reading;
    uint32_t asked; /* jobs requested by the read that is under way */
    struct sent *sent;
    size_t room, first, nsent; /* sent[first] to sent[nsent - 1] are not confirmed */
    uint64_t bytes_sent, bytes_confirmed;
};

struct job_watch {
    struct watchers all, turns;
    uint32_t count;
    uint64_t number;
};

struct job_watch *job_watch_create (void)
{
    struct job_watch *w = calloc (1, sizeof (*w));

    if (!w)
        return NULL;
    TAILQ_INIT (&w->all);
    TAILQ_INIT (&w->turns);
    return w;
}

void job_watch_destroy (struct job_watch *w)
{
    struct watcher *c;
    int saved = errno;

    if (!w)
        return;
    while ((c = TAILQ_FIRST (&w->all)))
        job_watch_remove (w, c);
    free (w);
    errno = saved;
}

struct watcher *job_watch_add (struct job_watch *w, uint64_t after, uint32_t window, void *owner)
{
    struct watcher *c;

    if (window > JOB_WATCH_WINDOW_MAX)
        return errset_null (EINVAL);
    if (w->count == JOB_WATCH_MAX)
        return errset_null (ENOSPC);
    if (!(c = calloc (1, sizeof (*c))))
        return NULL;
    c->number = ++w->number;
    c->after = after;
    c->window = window > 0 ? window : JOB_WATCH_WINDOW;
    c->owner = owner;
    TAILQ_INSERT_TAIL (&w->all, c, link);
    TAILQ_INSERT_TAIL (&w->turns, c, turn);
    w->count++;
    return c;
}

void job_watch_remove (struct job_watch *w, struct watcher *c)
{
    TAILQ_REMOVE (&w->all, c, link);
    TAILQ_REMOVE (&w->turns, c, turn);
    w->count--;
    free (c->sent);
    free (c);
}

void *watcher_owner (const struct watcher *c)
{
    return c->owner;
}

uint64_t watcher_number (const struct watcher *c)
{
    return c->number;
}

static uint32_t unconfirmed (const struct watcher *c)
{
    return (uint32_t)(c->nsent - c->first);
}

struct watcher_stats watcher_stats (const struct watcher *c)
{
    return (struct watcher_stats){
        .number = c->number,
        .after = c->after,
        .window = c->window,
        .jobs = unconfirmed (c),
        .bytes = c->bytes_sent - c->bytes_confirmed,
    };
}

void job_watch_each (struct job_watch *w, job_watch_each_f f, void *arg)
{
    struct watcher *c, *next;

    for (c = TAILQ_FIRST (&w->all); c; c = next) {
        next = TAILQ_NEXT (c, link);
        f (arg, c);
    }
}

struct watcher *job_watch_find (struct job_watch *w, uint64_t number)
{
    struct watcher *c;

    TAILQ_FOREACH (c, &w->all, link)
        if (c->number == number)
            return c;
    return NULL;
}

/* --- what a consumer may be sent ----------------------------------------------------------------------------- */

/* Make room for 'n' further jobs before they are sent. */
static int make_room (struct watcher *c, uint32_t n)
{
    size_t size = unconfirmed (c) + (size_t)n, room = max_u64 (c->room, JOB_WATCH_ANSWER_JOBS);

    if (c->nsent + n <= c->room)
        return 0;
    while (room < 2 * size) /* then at most half of it is moved at a time */
        room *= 2;
    if (room > c->room) {
        struct sent *sent = realloc (c->sent, room * sizeof (sent[0]));

        if (!sent)
            return errset (ENOMEM);
        c->sent = sent;
        c->room = room;
    }
    memmove (c->sent, c->sent + c->first, unconfirmed (c) * sizeof (c->sent[0]));
    c->nsent -= c->first;
    c->first = 0;
    return 0;
}

static uint64_t bytes_left (const struct watcher *c)
{
    uint64_t bytes = c->bytes_sent - c->bytes_confirmed;

    return bytes < JOB_WATCH_BYTES ? JOB_WATCH_BYTES - bytes : 0;
}

static uint32_t jobs_left (const struct watcher *c)
{
    return c->window - unconfirmed (c);
}

static bool is_ready (struct watcher *c, uint64_t shown)
{
    if (c->reading || c->after >= shown || jobs_left (c) == 0 || bytes_left (c) == 0)
        return false;
    c->asked = (uint32_t)min_u64 (jobs_left (c), JOB_WATCH_ANSWER_JOBS);
    return make_room (c, c->asked) == 0;
}

struct watcher *job_watch_next (struct job_watch *w, uint64_t shown, uint64_t *after, uint32_t *max_jobs,
                                size_t *max_bytes)
{
    struct watcher *c;

    TAILQ_FOREACH (c, &w->turns, turn)
        if (is_ready (c, shown))
            break;
    if (!c)
        return NULL;
    TAILQ_REMOVE (&w->turns, c, turn);
    TAILQ_INSERT_TAIL (&w->turns, c, turn);
    c->reading = true;
    *after = c->after;
    *max_jobs = c->asked;
    *max_bytes = (size_t)min_u64 (bytes_left (c), JOB_WATCH_ANSWER_BYTES);
    return c;
}

void job_watch_sent (struct job_watch *w, struct watcher *c, uint64_t upto, const struct jobwire_reader *jobs)
{
    struct jobwire_reader r = *jobs;
    struct job job;

    assert (c->reading && jobs->count <= c->asked);
    c->reading = false;
    while (jobwire_next_job (&r, &job)) {
        assert (job.id > c->after);
        c->after = job.id;
        c->bytes_sent += jobwire_job_size (&job);
        c->sent[c->nsent++] = (struct sent){ .id = job.id, .bytes = c->bytes_sent };
    }
    if (jobs->count == 0)
        c->after = max_u64 (c->after, upto);
}

/* The number of unconfirmed jobs that are at or below 'id'. */
static size_t count_upto (const struct watcher *c, uint64_t id)
{
    size_t low = c->first, high = c->nsent;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (c->sent[mid].id <= id)
            low = mid + 1;
        else
            high = mid;
    }
    return low - c->first;
}

int job_watch_confirm (struct job_watch *w, struct watcher *c, uint64_t id)
{
    if (id > c->after)
        return errset (EINVAL);
    size_t n = count_upto (c, id);
    if (n == 0)
        return 0;
    c->first += n;
    c->bytes_confirmed = c->sent[c->first - 1].bytes;
    return 0;
}
