/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* watch.h - at rank 0: consumers, and what each may be sent yet
 *
 * A consumer gets jobs in order of id, as many as it has room for: at most 'window' jobs, and WATCH_BYTES, that it
 * has not confirmed.  So one that does not read costs no more than that.
 */
#ifndef INGEST_WATCH_H
#define INGEST_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modules/ingest/job/wire.h"

#define WATCH_MAX 64      /* consumers */
#define WATCH_WINDOW 1024 /* jobs, unless the consumer says another number */
#define WATCH_WINDOW_MAX 65536
#define WATCH_BYTES (8u << 20) /* sent and not confirmed; one job may be more */
#define WATCH_ANSWER_JOBS 256  /* in one answer */
#define WATCH_ANSWER_BYTES (512u << 10)

struct watch;
struct watcher;

/* NULL with errno ENOMEM.  / Who watches is not told: watch_each () first.  NULL is fine. */
struct watch *watch_create (void);
void watch_destroy (struct watch *w);

/* A consumer that has all up to 'after', and confirms when it has 'window' jobs (0: WATCH_WINDOW) or sooner.  Returns
 * NULL with errno ENOSPC (WATCH_MAX), EINVAL (window), ENOMEM.  / It is gone.
 */
struct watcher *watch_add (struct watch *w, uint64_t after, uint32_t window, void *owner);
void watch_remove (struct watch *w, struct watcher *c);
void *watcher_owner (const struct watcher *c);

struct watcher_stats {
    uint64_t number; /* 1, 2, ... in this life */
    uint64_t after;  /* all up to this was sent, but what it had before */
    uint32_t window;
    uint32_t jobs; /* sent and not confirmed */
    size_t bytes;
};
struct watcher_stats watcher_stats (const struct watcher *c);
uint64_t watcher_number (const struct watcher *c);

/* Call 'f' for each, in order of their numbers; it may remove the one that it is called for. */
typedef void (*watch_each_f) (void *arg, struct watcher *c);
void watch_each (struct watch *w, watch_each_f f, void *arg);

/* The consumer of that number; NULL: there is none. */
struct watcher *watch_find (struct watch *w, uint64_t number);

/* Who could be sent something, jobs up to 'shown' being there to be shown: what to read for it.  Taken in turns; a
 * consumer that is being read for is not returned again.  NULL: nobody.
 */
struct watcher *watch_next (struct watch *w, uint64_t shown, uint64_t *after, uint32_t *max_jobs, size_t *max_bytes);

/* What was read for it, 'jobs' (not read on), was sent; where that is none, it has all up to 'upto'.  They are
 * counted one by one, for a consumer confirms where it likes.
 */
void watch_sent (struct watch *w, struct watcher *c, uint64_t upto, const struct jobwire_reader *jobs);

/* It has all jobs up to 'id'.  Returns 0, or -1 with errno EINVAL: that is above all that it was sent, and told that
 * there is none.
 */
int watch_confirm (struct watch *w, struct watcher *c, uint64_t id);

#endif /* INGEST_WATCH_H */
