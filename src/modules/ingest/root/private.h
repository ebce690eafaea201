/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - shared by the files of rank 0
 *
 *   job_root.c  gives the store one piece of work after another: a batch to store, acknowledgements, reads
 *   notify.c    requests of consumers and other clients, and the answers to them
 */
#ifndef INGEST_ROOT_PRIVATE_H
#define INGEST_ROOT_PRIVATE_H

#include "libmodule/quota.h"
#include "libutil/queue/fifo.h"
#include "libutil/queue/drr_queue.h"
#include "modules/ingest/root/visibility.h"
#include "modules/ingest/root/job_store.h"
#include "modules/ingest/ingest.h"

#define JOB_ROOT_READS 16      /* reads in one piece of work of the store */
#define JOB_ROOT_MAX_ASKS 1024 /* the most acknowledgements that wait */

struct job_root_batch {
    uint32_t tag;
    const void *data;
    size_t size;
};

struct notify_ask;

/* The requester of a read: 'ask' of a client, or 'watcher' of a consumer. Both are NULL if the consumer has
 * disconnected.
 */
struct job_root_want {
    struct notify_ask *ask;
    struct watcher *watcher;
};

struct job_root {
    struct ingest *service;
    struct job_store *store; /* NULL: the store cannot be used; 'why' has the reason */
    idt_watcher_t *store_watcher;
    idt_watcher_t *timer;
    struct pace pace; /* when the timer fires, and for which tasks */
    struct job_store_counts counts;
    int64_t opened_s;   /* seconds of acknowledgement time when the store was opened, */
    uint64_t opened_ms; /* and ingest_now_ms () at that moment */
    struct visibility line;
    uint64_t ids_ms, told_ms; /* the time of ids, and when it was received; told_ms 0: never */
    uint64_t life;            /* a FLUID that names this life; 0: there is none yet, and no job is judged */

    struct job_root_batch batch[JOB_RELAY_ROOT_UNDER_WAY];
    unsigned nbatches;
    bool storing; /* the first batch is in the store */
    struct job *jobs;
    struct verdict *verdicts;
    size_t room; /* of both arrays */

    struct job_store_group group;
    struct job_store_read reads[JOB_ROOT_READS];
    struct job_root_want wants[JOB_ROOT_READS];
    size_t nreads;
    bool busy;
    bool opening; /* the store is not connected yet: batches wait */
    bool stopping;

    uint64_t ack;           /* jobs up to this id are to be acknowledged; 0: none */
    struct fifo acks;       /* requests for these acknowledgements */
    struct fifo acking;     /* requests whose acknowledgement the store is writing */
    struct drr_queue *asks; /* struct notify_ask: waiting reads of clients, in turns over users */
    struct quota reads_quota;
    struct job_watch *watch;
    uint32_t nconsumers;
    bool asking; /* a request for the life or the watermark is under way */
    bool told;   /* it was logged that this life has no name yet */

    bool failing; /* the last commit failed; 'why' has the reason */
    bool unsure;  /* a later life may find the jobs of the failed commit in the file */
    bool resting; /* nothing is cleared away after a failure, because that may need disk space */
    idt_error_t why;
    bool slow; /* the disk has not answered for 'slow_ms'; 'slow_why' has the text */
    uint64_t slow_ms;
    idt_error_t slow_why;
    uint64_t groups, failed, stored, same, late, forgotten, refused;
    uint64_t begun_us;            /* CLOCK_MONOTONIC when the store got its work */
    struct metrics_times commits; /* durations of the stored groups that had jobs */
};

/* Give the store its next piece of work, if it has none and any is waiting. */
void job_root_turn (struct job_root *root);

/* Why jobs are not stored now; NULL: they are stored. */
const char *job_root_trouble (const struct job_root *root);

/* Schedule the next request for the life or the watermark, if it is needed, and the next retry. */
void job_root_look (struct job_root *root);

/* --- notify.c: requests and answers --------------------------------------------------------------------------- */

/* Fill 'reads' for waiting clients and consumers. Returns their number, at most 'max'. */
size_t notify_collect (struct job_root *root, struct job_store_read *reads, size_t max);

/* Answer the requester of read 'i', which has ended. */
void notify_read (struct job_root *root, size_t i);

/* Answer the requests whose acknowledgement was stored (errnum 0) or failed. */
void notify_acked (struct job_root *root, int errnum, const char *text);

/* Whether the watermark is needed, because there are consumers, and not all stored jobs are visible yet. */
bool notify_wants_line (const struct job_root *root);

/* Answer all waiting requests with EHOSTUNREACH, and free the queues. */
void notify_stop (struct job_root *root);

#endif /* INGEST_ROOT_PRIVATE_H */
