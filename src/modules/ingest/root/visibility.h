/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* visibility.h - at rank 0: which jobs consumers may see, and which jobs each consumer is sent next
 *
 * All jobs up to a certain id are visible. The line is another id: a job at or below the line that is not stored will
 * never be stored (doc/design/ingest.md, "Verdicts"). Groups are stored one at a time. A group is judged by the line as
 * it was when the group began, so the visible id follows the line only when the group has ended.
 */
#ifndef INGEST_VISIBILITY_H
#define INGEST_VISIBILITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modules/ingest/job/wire.h"

struct visibility {
    uint64_t at;        /* the line */
    uint64_t settle_ms; /* the least distance of the line behind the time of ids, */
    uint64_t slack_ms;  /* and the distance now, which is larger after late jobs */
    uint64_t late_ms;   /* when a job was late last, or 'slack_ms' was halved last */
    uint64_t shown; /* jobs up to this id are visible: no other job at or below it will ever be stored; only rises */
    bool under_way;
};

/* Let the line start at 'first'. All jobs that were visible in earlier lives must be at or below 'first'. Later the
 * line follows the watermark, and the time of ids at a distance of at least 'settle_ms'.
 */
void visibility_init (struct visibility *l, uint64_t first, uint64_t settle_ms);

/* Report that the time of ids is 'now_ms'. */
void visibility_time (struct visibility *l, uint64_t now_ms);

/* Report a late job, whose id is at or below the line. From then on the line stays at least twice as far behind the
 * time of ids as this id is, so that the next ids of a slow rank, or of a rank whose clock is behind, are above the
 * line. If the id is more than a minute old, the distance does not change. When no job was late for some time, the
 * distance shrinks again.
 */
void visibility_late (struct visibility *l, uint64_t id, uint64_t now_ms);

/* Report the watermark: a FLUID below which no id will be made any longer. A watermark that is lower than an earlier
 * one is ignored.
 */
void visibility_watermark (struct visibility *l, uint64_t id);

/* visibility_begin () begins a group, and returns the line by which it is judged. No other group may be under way.
 * visibility_end () ends the group. 'refused' is the highest id of the group that must never be stored, because its job
 * was refused, or had the key of an earlier job; 0: none. The verdicts of the group may be sent only after
 * visibility_end ().
 */
uint64_t visibility_begin (struct visibility *l);
void visibility_end (struct visibility *l, uint64_t refused);

/* --- when to request the watermark next, to retry failed work, to report that the disk does not answer -----------
 *
 * The time of a task is set when the task is first wanted. The time does not move until it is reached, or until the
 * task is no longer wanted. Submissions and reads call pace_want () often; if these calls moved the time, a busy rank 0
 * would never reach it.
 */

enum pace_task { PACE_ASK, PACE_AGAIN, PACE_SLOW, PACE_TASKS };

struct pace {
    uint64_t due_ms[PACE_TASKS]; /* 0: not wanted */
};

/* If 'wanted' is true, schedule the task 'after_ms' from now, unless it is scheduled already. If 'wanted' is false,
 * cancel the task.
 */
void pace_want (struct pace *p, enum pace_task task, bool wanted, uint64_t now_ms, uint64_t after_ms);

/* Whether the time of the task is reached. If so, the task is no longer wanted. */
bool pace_take (struct pace *p, enum pace_task task, uint64_t now_ms);

/* The earliest time of any task; UINT64_MAX: no task is wanted. */
uint64_t pace_due (const struct pace *p);

/* --- consumers, and what each may be sent now --------------------------------------------------------------------
 *
 * A consumer gets jobs in order of id. At most 'window' jobs, of at most JOB_WATCH_BYTES, are sent and not confirmed.
 * So for a consumer that does not read, rank 0 holds at most that much memory.
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

/* Add a consumer that has all jobs up to 'after'. At most 'window' jobs (0: JOB_WATCH_WINDOW) are sent to the consumer
 * until it confirms some. watcher_owner () returns 'owner'. job_watch_remove () removes and frees the consumer.
 * job_watch_add () returns NULL with errno set:
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
    uint64_t after;  /* all jobs up to this id were sent, or the consumer had them before */
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

/* Let the next read be made for the consumer even if no job is visible that it was not sent. */
void job_watch_ask (struct watcher *c);

/* The next consumer that can be sent jobs up to 'shown', and the read to do for it. Consumers take turns. A consumer is
 * not returned again until job_watch_sent () is called for it. Returns NULL if no consumer can be sent jobs.
 */
struct watcher *job_watch_next (struct job_watch *w, uint64_t shown, uint64_t *after, uint32_t *max_jobs,
                                size_t *max_bytes);

/* Report that 'jobs' (a reader at its start) were sent to the consumer. If there are no jobs, the consumer has all jobs
 * up to 'upto'. Each job is counted, because a consumer may confirm all jobs up to any of them.
 */
void job_watch_sent (struct job_watch *w, struct watcher *c, uint64_t upto, const struct jobwire_reader *jobs);

/* Report that the consumer has confirmed all jobs up to 'id'. Returns 0, or -1 with errno EINVAL if the consumer was
 * not sent all jobs up to 'id' and did not have them before.
 */
int job_watch_confirm (struct job_watch *w, struct watcher *c, uint64_t id);

#endif /* INGEST_VISIBILITY_H */
