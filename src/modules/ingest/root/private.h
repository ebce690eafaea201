/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - what the files of rank 0 share
 *
 *   root.c   from work to work of the store: a batch is judged and stored, what was asked for is read
 *   tell.c   consumers, and who asks what is there
 */
#ifndef INGEST_ROOT_PRIVATE_H
#define INGEST_ROOT_PRIVATE_H

#include "libmodule/quota.h"
#include "libutil/queue/fifo.h"
#include "libutil/queue/turns.h"
#include "modules/ingest/root/line.h"
#include "modules/ingest/root/pace.h"
#include "modules/ingest/root/store.h"
#include "modules/ingest/root/watch.h"
#include "modules/ingest/service.h"

#define ROOT_READS 16      /* of one work of the store */
#define ROOT_MAX_ASKS 1024 /* acknowledgements that wait */

struct root_batch {
    uint32_t tag;
    const void *data;
    size_t size;
};

struct ask;

/* For whom a read is: one of them, or nobody any more. */
struct root_want {
    struct ask *ask;
    struct watcher *watcher;
};

struct root {
    struct service *service;
    struct store *store; /* NULL: it cannot be used, as 'why' says */
    idt_watcher_t *store_watcher;
    idt_watcher_t *timer;
    struct pace pace; /* when that goes off: for the life or the watermark, for what failed */
    struct store_counts counts;
    int64_t opened_s;   /* what time it is for acknowledgements, */
    uint64_t opened_ms; /* and when it was so: service_now_ms () */
    struct line line;
    uint64_t ids_ms, told_ms; /* the time of ids, and when it was told; 0: it was not */
    uint64_t life;            /* a FLUID of our own; 0: not known yet, and nothing is judged */

    struct root_batch batch[RELAY_ROOT_UNDER_WAY];
    unsigned nbatches;
    bool storing; /* the first of them is under way */
    struct job *jobs;
    struct verdict *verdicts;
    size_t room; /* of both */

    struct store_group group;
    struct store_read reads[ROOT_READS];
    struct root_want wants[ROOT_READS];
    size_t nreads;
    bool busy;
    bool stopping;

    uint64_t ack;       /* up to which jobs are to be acknowledged; 0: none */
    struct fifo acks;   /* who wants that */
    struct fifo acking; /* ... whose is under way */
    struct turns *asks; /* struct ask: who wants something read, by turns over users */
    struct quota reads_quota;
    struct watch *watch;
    uint32_t nconsumers;
    bool asking; /* for the life, or the watermark */
    bool told;   /* that there is no life yet */

    bool failing; /* the last commit did, as 'why' says */
    bool unsure;  /* ... and what was in it may be found by a life to come */
    bool resting; /* what is to be cleared away waits, for the disk may be why it failed */
    idt_error_t why;
    bool slow; /* the disk has not answered for 'slow_ms', as 'slow_why' says */
    uint64_t slow_ms;
    idt_error_t slow_why;
    uint64_t groups, failed, stored, same, late, forgotten, refused;
    uint64_t begun_us;            /* CLOCK_MONOTONIC when the store was given something to do */
    struct metrics_times commits; /* how long groups with jobs took that were stored */
};

/* Give the store something to do, if there is something, and it has nothing. */
void root_turn (struct root *root);

/* Why jobs are not stored now; NULL: they are. */
const char *root_trouble (const struct root *root);

/* Look at the watermark, if somebody waits for it. */
void root_look (struct root *root);

/* --- tell.c ------------------------------------------------------------------------------------------------- */

/* Make reads for those who wait; returns how many. */
size_t tell_collect (struct root *root, struct store_read *reads, size_t max);

/* Read 'i' has ended. */
void tell_read (struct root *root, size_t i);

/* An acknowledgement was stored (errnum 0), or not. */
void tell_acked (struct root *root, int errnum, const char *text);

/* Whether the watermark is wanted: consumers have not been shown all that is stored. */
bool tell_wants_line (const struct root *root);

/* Answer all who wait, and end: EHOSTUNREACH. */
void tell_stop (struct root *root);

#endif /* INGEST_ROOT_PRIVATE_H */
