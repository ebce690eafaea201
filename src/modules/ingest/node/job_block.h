/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_block.h - prefetched ids for jobs, none older than JOB_BLOCK_MAX_AGE_MS
 *
 * Ids are requested in blocks. The size of a block follows recent use, so that ids are usually available when a job
 * arrives. Ids are taken in increasing order. The rest of a block that is too old is thrown away.
 */
#ifndef INGEST_JOB_BLOCK_H
#define INGEST_JOB_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_BLOCK_MAX_AGE_MS 50 /* age of an id, from the request for it */
#define JOB_BLOCK_MIN_IDS 16    /* the least and most ids of a request */
#define JOB_BLOCK_MAX_IDS 4096
#define JOB_BLOCK_PAUSE_MS 50 /* from a request that failed to the next request */

struct job_block_run {
    uint64_t first;
    uint32_t count;
};

struct job_block {
    struct job_block_part {
        struct job_block_run run;
        uint64_t asked_ms; /* when it was requested */
    } * part;
    size_t nparts, room, at; /* 'at': the part that ids are taken from */
    uint64_t left;           /* ids that are available */
    bool asking;
    uint64_t asking_ms;  /* when the last request was made */
    uint64_t pause_ms;   /* no request before this time; 0: no pause */
    uint32_t used, size; /* ids used since the last request; size of the next request */
    uint64_t top;        /* the newest id that was received */
};

void job_block_init (struct job_block *b);
void job_block_fini (struct job_block *b);

/* The number of ids to request now, for 'wanted' jobs that have no id. Returns 0 if enough ids are available, a request
 * is under way, or the last request failed and was made less than JOB_BLOCK_PAUSE_MS ago. If the result is not 0, the
 * caller must send a request for that many ids, and report its result with job_block_filled () or job_block_failed ().
 */
uint32_t job_block_ask (struct job_block *b, uint64_t now_ms, uint32_t wanted);

/* When to call job_block_ask () again after a request that failed. Returns UINT64_MAX if no request failed. */
uint64_t job_block_due (const struct job_block *b);

/* job_block_filled () adds the ids of a response: 'n' runs in increasing order, above all ids that were received
 * before. Returns 0, or -1 with errno EPROTO or ENOMEM; then no id is added, and the request counts as failed.
 * job_block_failed () reports that a request failed.
 */
int job_block_filled (struct job_block *b, const struct job_block_run *runs, size_t n);
void job_block_failed (struct job_block *b);

/* Take the next id. Returns 0 if no id that is young enough is available. */
uint64_t job_block_take (struct job_block *b, uint64_t now_ms);

/* Throw away all available ids, because they are too low. */
void job_block_drop (struct job_block *b);

#endif /* INGEST_JOB_BLOCK_H */
