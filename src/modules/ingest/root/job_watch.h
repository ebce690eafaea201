/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_watch.h - at rank 0: consumers, and what each may be sent now
 *
 * A consumer gets jobs in order of id. At most 'window' jobs, of at most JOB_WATCH_BYTES, are sent and not confirmed.
 * So a consumer that does not read uses at most that much memory.
 */
#ifndef INGEST_JOB_WATCH_H
#define INGEST_JOB_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modules/ingest/job/wire.h"

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

#endif /* INGEST_JOB_WATCH_H */
