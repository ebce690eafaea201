/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* visibility.c - which jobs consumers may see, and which jobs each consumer is sent next
 *
 * The line only rises. It follows the watermark and the time of ids, and rises to the ids of refused jobs.
 *
 * Consumers take turns. Each has a list of the jobs that it was sent and has not confirmed, with ids and the running
 * sum of bytes. A consumer may confirm up to any job, also in the middle of an answer. A binary search finds that job
 * in the list.
 */
#include <assert.h>
#include <errno.h>
#include <idtree/fluid.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/ingest/root/visibility.h"

#define CALM_MS 10000      /* time without a late job after which the distance of the line is halved */
#define SLACK_MAX_MS 60000 /* jobs that are later than this do not hold back the line */

void visibility_init (struct visibility *l, uint64_t first, uint64_t settle_ms)
{
    *l = (struct visibility){ .at = first, .shown = first, .settle_ms = settle_ms, .slack_ms = settle_ms };
}

static void rise (struct visibility *l, uint64_t id)
{
    l->at = max_u64 (l->at, id);
    if (!l->under_way)
        l->shown = l->at;
    assert (l->shown <= l->at);
}

void visibility_watermark (struct visibility *l, uint64_t id)
{
    if (id > 0)
        rise (l, id - 1);
}

static uint64_t first_of (uint64_t ms)
{
    return min_u64 (ms, FLUID_TIMESTAMP_MAX) << 24;
}

void visibility_time (struct visibility *l, uint64_t now_ms)
{
    if (l->slack_ms > l->settle_ms && now_ms > l->late_ms + CALM_MS) {
        l->slack_ms = max_u64 (l->slack_ms / 2, l->settle_ms);
        l->late_ms = now_ms;
    }
    if (now_ms > l->slack_ms)
        rise (l, first_of (now_ms - l->slack_ms) - 1);
}

void visibility_late (struct visibility *l, uint64_t id, uint64_t now_ms)
{
    uint64_t made_ms = id >> 24, age_ms = now_ms > made_ms ? now_ms - made_ms : 0;

    l->late_ms = now_ms;
    if (age_ms <= SLACK_MAX_MS)
        l->slack_ms = max_u64 (l->slack_ms, 2 * age_ms);
}

uint64_t visibility_begin (struct visibility *l)
{
    assert (!l->under_way);
    l->under_way = true;
    return l->at;
}

/* The jobs that the group stored above its own line are durable now, and later groups are judged by this line or a
 * higher one. So jobs up to the line may become visible.
 */
void visibility_end (struct visibility *l, uint64_t refused)
{
    assert (l->under_way);
    l->under_way = false;
    rise (l, refused);
}

/* --- times that do not move until they are reached or cancelled ---------------------------------------------- */

void pace_want (struct pace *p, enum pace_task task, bool wanted, uint64_t now_ms, uint64_t after_ms)
{
    if (!wanted)
        p->due_ms[task] = 0;
    else if (p->due_ms[task] == 0)
        p->due_ms[task] = max_u64 (now_ms + after_ms, 1);
}

bool pace_take (struct pace *p, enum pace_task task, uint64_t now_ms)
{
    if (p->due_ms[task] == 0 || now_ms < p->due_ms[task])
        return false;
    p->due_ms[task] = 0;
    return true;
}

uint64_t pace_due (const struct pace *p)
{
    uint64_t due_ms = UINT64_MAX;

    for (int i = 0; i < PACE_TASKS; i++)
        if (p->due_ms[i] > 0)
            due_ms = min_u64 (due_ms, p->due_ms[i]);
    return due_ms;
}

/* --- consumers ----------------------------------------------------------------------------------------------- */

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
    bool asks;      /* a read is wanted, even if it can find no job */
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
    assert (w->count > 0);
    w->count--;
    free (c->sent);
    free (c);
}

void job_watch_ask (struct watcher *c)
{
    c->asks = true;
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
    while (room < 2 * size) /* so that at most half of the array is moved at a time */
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
    assert (unconfirmed (c) <= c->window);
    return c->window - unconfirmed (c);
}

static bool is_ready (struct watcher *c, uint64_t shown)
{
    if (c->reading || (c->after >= shown && !c->asks) || jobs_left (c) == 0 || bytes_left (c) == 0)
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
    c->asks = false;
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
    assert (c->first <= c->nsent && c->bytes_confirmed <= c->bytes_sent);
    return 0;
}
