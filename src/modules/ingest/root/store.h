/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* store.h - the jobs of an instance, at rank 0: ingest.sqlite in the state directory
 *
 * One piece of work at a time is done by a thread of the store's own: a commit of a group of jobs, with acknowledgement
 * and forgetting in the same transaction, and reads for consumers behind it.  The reactor is told its end through a
 * descriptor.
 */
#ifndef INGEST_STORE_H
#define INGEST_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>

#include "modules/ingest/job/wire.h"

/* SQLite and JSON have integers of 63 bits.  Ids reach the 64th bit 2^39 ms after the epoch. */
#define STORE_TOO_LATE                                                                                                 \
    "a job's id has 63 bits, and those of this instance have 64: its epoch is more than 17.4 years ago: jobs need an " \
    "instance with a later epoch (idtree init --epoch)"

struct store;

/* What is stored now, as far as the last work that has ended. */
struct store_counts {
    uint64_t jobs, bytes; /* not acknowledged; bytes of jobspecs and keys */
    uint64_t remembered;  /* acknowledged: id and key alone */
    uint64_t acked;       /* the newest id that was acknowledged; 0: none */
    uint64_t newest;      /* the newest id that is or was stored; 0: none */
    uint64_t floor;       /* below this nothing is known any more; 0: all is */
    int64_t acked_s;      /* the newest time of an acknowledgement that is remembered (store_group.now_s); 0: none is */
    bool untidy;          /* groups to come have more to clear away, or to forget */
};

/* Open the file in folder 'dir' or make it.  Blocks.  Returns NULL with errno set and 'errp' filled, as
 * database_open ().
 */
struct store *store_open (const char *dir, const char *holder, struct store_counts *counts, idt_error_t *errp);

/* A group: 'job' and 'verdict' have 'n' members.  What is acknowledged makes room first.  Then verdicts are found by
 * these rules, in this order, for one job after the other:
 *   id is 0                             VERDICT_REFUSED, EINVAL
 *   id is above INT64_MAX               VERDICT_REFUSED, EOVERFLOW, STORE_TOO_LATE
 *   id is stored, or remembered         VERDICT_STORED
 *   id < floor                          VERDICT_FORGOTTEN
 *   id <= line, acknowledged, or another life  VERDICT_LATE
 *   (userid, key) is, under another id  VERDICT_SAME with that id
 *   more would be stored than max_jobs or max_bytes  VERDICT_REFUSED, ENOSPC, naming the limit
 *   else                                it is stored: VERDICT_STORED
 * Then what was acknowledged before is cleared away and forgotten, oldest first: a slice at each group, so that none
 * takes long.  The rest is for groups to come (store_counts.untidy), which may be empty but for 'now_s' and 'forget_s'.
 */
struct store_group {
    const struct job *job;
    struct verdict *verdict; /* texts of refusals lie in the store, until the next work begins */
    size_t n;
    uint64_t line;
    uint64_t life; /* of rank 0's module */
    uint64_t max_jobs, max_bytes;
    bool owner_first; /* the second half of these is for jobs of 'owner' alone */
    uint32_t owner;
    uint64_t ack;     /* jobs up to this id are acknowledged: their jobspecs go, id and key stay; 0: none */
    int64_t now_s;    /* seconds, from wherever, as the caller counts them; only 'ack' and 'forget_s' need it */
    int64_t forget_s; /* what was acknowledged before this is forgotten, and the floor raised above it; 0: nothing is */
    /* told of one that failed: */
    /* Its end may be in the log all the same, and be found by the next life; or what is there cannot be read.  That
     * some of
     * its jobs are not there may be told when another group was durable since, and had their verdicts.
     */
    bool unsure;
};

/* Jobs for a consumer, in order of id: after < id <= upto, at most 'max_jobs' and, but for the first, 'max_bytes'. */
struct store_read {
    uint64_t after, upto;
    uint32_t max_jobs;
    size_t max_bytes;
    bool specs;  /* whether jobspecs are wanted */
    bool one;    /* ingest.get: the job 'upto' alone, acknowledged or not */
    void *owner; /* the caller's */
    /* found: */
    /* Jobs as in a batch; without jobspecs, spec_size is 0.  The caller's to jobwire_buf_fini () */
    struct jobwire_buf found;
    bool more;  /* there are others up to 'upto' */
    bool acked; /* one: it is remembered only, without jobspec */
    int errnum; /* 0, or it could not be read, as 'error' says; then nothing is found */
    idt_error_t error;
};

/* Have the thread do all of 'group' (NULL: none) or nothing of it, then 'reads'.  All is borrowed until the end is
 * taken.  At most one may be under way.  Never blocks on the disk.
 */
void store_begin (struct store *st, struct store_group *group, struct store_read *reads, size_t nreads);

/* Readable (level-triggered) when work has ended. */
int store_fd (const struct store *st);

/* Take the end of the work.  Returns 1: the group is durable, and reads are done; 0: none has ended; -1 with errno set
 * and 'errp' filled: nothing of the group is there that was not before (reads are done all the same).  Unless it is
 * unsure its verdicts are of what was there: STORED, SAME, FORGOTTEN, or REFUSED without errnum and text, which the
 * caller has in 'errp'. 'counts' (may be NULL) gets what is stored.
 */
int store_result (struct store *st, struct store_counts *counts, idt_error_t *errp);

/* Wait for the thread, and close.  Blocks.  NULL is fine; keeps errno. */
void store_close (struct store *st);

#endif /* INGEST_STORE_H */
