/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* watch.h - at rank 0: consumers, and what each may be sent yet
 *
 * A consumer gets jobs in order of id, as many as it has room for: at most 'window' jobs, and WATCH_BYTES, that it has not confirmed.  So one that
 * does not read costs no more than that.
 */
#ifndef INGEST_WATCH_H
#define INGEST_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* A consumer that has all up to 'after', and confirms at least each 'window' jobs (0: WATCH_WINDOW).  Returns NULL with errno ENOSPC
 * (WATCH_MAX), EINVAL (window), ENOMEM.  / It is gone.
 */
struct watcher *watch_add (struct watch *w, uint64_t after, uint32_t window, void *owner);
void watch_remove (struct watch *w, struct watcher *c);

/* All of them. */
struct watcher *watch_first (const struct watch *w);
struct watcher *watch_following (const struct watcher *c);
void *watcher_owner (const struct watcher *c);
uint64_t watcher_number (const struct watcher *c); /* 1, 2, ... in this life */

/* The consumer of that number; NULL: there is none. */
struct watcher *watch_find (struct watch *w, uint64_t number);

/* Who could be sent something, jobs up to 'shown' being there to be shown: what to read for it.  Taken in turns; a consumer
 * that is being read for is not returned again.  NULL: nobody.
 */
struct watcher *watch_next (struct watch *w, uint64_t shown, uint64_t *after, uint32_t *max_jobs, size_t *max_bytes);

/* What was read for it: 'n' jobs of 'bytes', the last of which is 'last', were sent; none: it has all up to 'upto'.  A read that failed: 'failed',
 * and it is tried again.
 */
void watch_sent (struct watch *w, struct watcher *c, uint64_t upto, uint64_t last, uint32_t n, size_t bytes);
void watch_failed (struct watch *w, struct watcher *c);

/* It has all jobs up to 'id'.  Returns 0, or -1 with errno EINVAL: it was sent none as high as that. */
int watch_confirm (struct watch *w, struct watcher *c, uint64_t id);

#endif /* INGEST_WATCH_H */
