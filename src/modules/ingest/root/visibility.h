/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* visibility.h - at rank 0: which jobs consumers may see, and which of them each is sent next
 *
 * Jobs up to an id are visible. A job at or below the line that is not stored will never be stored
 * (doc/design/ingest.md, "Verdicts"). Groups are stored one at a time. A group is judged by the line as it was when the
 * group began, so the visible id follows the line only when the group has ended.
 */
#ifndef INGEST_VISIBILITY_H
#define INGEST_VISIBILITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modules/ingest/job/wire.h"

struct visibility {
    uint64_t at;        /* the line */
    uint64_t settle_ms; /* the least distance of the line from the time of ids, */
    uint64_t slack_ms;  /* and its distance now */
    uint64_t late_ms;   /* when a job was late last */
    uint64_t shown; /* jobs up to this id are visible: no other job at or below it will ever be stored; only rises */
    bool under_way;
};

/* Start at 'first': all jobs that were visible in earlier lives are at or below it. The line follows the watermark, and
 * the time of ids at a distance of at least 'settle_ms'.
 */
void visibility_init (struct visibility *l, uint64_t first, uint64_t settle_ms);

/* Report the time of ids: 'now_ms'. */
void visibility_time (struct visibility *l, uint64_t now_ms);

/* Report a job with an id at or below the line. The line then stays at least twice as far behind the time as this id
 * is, so that the next id of a rank that is slow, or whose clock is behind, is above the line. If the id is more than a
 * minute old, the distance does not change. Without late jobs the distance shrinks again.
 */
void visibility_late (struct visibility *l, uint64_t id, uint64_t now_ms);

/* Report the watermark: a FLUID below which no id will be made any longer. A watermark below an earlier one is ignored.
 */
void visibility_watermark (struct visibility *l, uint64_t id);

/* visibility_begin () begins a group and returns its line; no other group may be under way. visibility_end () ends the
 * group: 'refused' is the highest id in it that must never be stored, because its job was refused or was the same as an
 * earlier one; 0: none. After visibility_end () these verdicts may be sent.
 */
uint64_t visibility_begin (struct visibility *l);
void visibility_end (struct visibility *l, uint64_t refused);

/* --- when to request the watermark next, to retry failed work, to report that the disk does not answer -----------
 *
 * The time of a task is set when the task is first wanted. It does not move until it is reached, or until the task is
 * no longer wanted. Submissions and reads call pace_want () often; if these calls moved the time, a busy rank 0 would
 * never reach it.
 */

enum pace_task { PACE_ASK, PACE_AGAIN, PACE_SLOW, PACE_TASKS };

struct pace {
    uint64_t due_ms[PACE_TASKS]; /* 0: not wanted */
};

/* Want the task 'after_ms' from now, unless it is wanted already; or, if 'wanted' is false, cancel it. */
void pace_want (struct pace *p, enum pace_task task, bool wanted, uint64_t now_ms, uint64_t after_ms);

/* Whether the task's time is reached. If so, the task is no longer wanted. */
bool pace_take (struct pace *p, enum pace_task task, uint64_t now_ms);

/* The earliest time of any task; UINT64_MAX: no task is wanted. */
uint64_t pace_due (const struct pace *p);

/* --- consumers, and what each may be sent now --------------------------------------------------------------------
 *
 * A consumer gets jobs in order of id. At most 'window' jobs, of at most JOB_WATCH_BYTES, are sent and not confirmed.
 * So a consumer that does not read uses at most that much memory.
 */

#define JOB_WATCH_MAX 64      /* the most consumers */
#define JOB_WATCH_WINDOW 1024 /* window in jobs, unless the consumer names another */
#define JOB_WATCH_WINDOW_MAX 65536
#define JOB_WATCH_BYTES (8u << 20) /* sent and not confirmed; a single job may have more */
#define JOB_WATCH_ANSWER_JOBS 256  /* the most jobs and bytes of one answer */
#define JOB_WATCH_ANSWER_BYTES (512u << 10)

struct job_watch;
struct watcher;

/* job_watch_create () returns NULL with errno ENOMEM. job_watch_destroy () does not notify the owners of the consumers:
 * call job_watch_each () before. NULL is allowed.
 */
struct job_watch *job_watch_create (void);
void job_watch_destroy (struct job_watch *w);

/* Add a consumer that has all jobs up to 'after', and confirms when it has 'window' jobs (0: JOB_WATCH_WINDOW) or
 * sooner. Returns NULL with errno set; job_watch_remove () removes the consumer:
 *   ENOSPC  there are JOB_WATCH_MAX consumers
 *   EINVAL  'window' is above JOB_WATCH_WINDOW_MAX
 *   ENOMEM  out of memory
 */
struct watcher *job_watch_add (struct job_watch *w, uint64_t after, uint32_t window, void *owner);
void job_watch_remove (struct job_watch *w, struct watcher *c);
void *watcher_owner (const struct watcher *c);

/* For tests. */
struct watcher_stats {
    uint64_t number; /* 1, 2, ... in this life */
    uint64_t after;  /* all jobs up to this were sent, or the consumer had them before */
    uint32_t window;
    uint32_t jobs; /* sent and not confirmed */
    size_t bytes;
};
struct watcher_stats watcher_stats (const struct watcher *c);
uint64_t watcher_number (const struct watcher *c);

/* Call 'f' for each consumer, in order of number. 'f' may remove the consumer that it is called for. */
typedef void (*job_watch_each_f) (void *arg, struct watcher *c);
void job_watch_each (struct job_watch *w, job_watch_each_f f, void *arg);

/* The consumer with that number, or NULL. */
struct watcher *job_watch_find (struct job_watch *w, uint64_t number);

/* The next consumer that can be sent jobs up to 'shown', and the read to do for it. Consumers take turns; a consumer is
 * not returned again until job_watch_sent (). Returns NULL if no consumer can be sent jobs.
 */
struct watcher *job_watch_next (struct job_watch *w, uint64_t shown, uint64_t *after, uint32_t *max_jobs,
                                size_t *max_bytes);

/* Report that 'jobs' (a reader at its start) were sent to the consumer. If there are none, the consumer has all jobs up
 * to 'upto'. Each job is counted, because a consumer may confirm up to any of them.
 */
void job_watch_sent (struct job_watch *w, struct watcher *c, uint64_t upto, const struct jobwire_reader *jobs);

/* The consumer has all jobs up to 'id'. Returns 0, or -1 with errno EINVAL if 'id' is above all jobs that it was sent,
 * and above the id up to which it has all jobs.
 */
int job_watch_confirm (struct job_watch *w, struct watcher *c, uint64_t id);

#endif /* INGEST_VISIBILITY_H */
