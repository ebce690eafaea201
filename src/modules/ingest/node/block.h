/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* block.h - ids that are there to be given to jobs, none older than BLOCK_MAX_AGE_MS
 *
 * Ids are asked for in blocks whose size follows what was used lately, so that a job that comes in finds one.  They are given in
 * the order of the blocks, which is that of ids; the rest of a block that is too old is thrown away.
 */
#ifndef INGEST_BLOCK_H
#define INGEST_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCK_MAX_AGE_MS 250 /* from when it was asked for */
#define BLOCK_MAX_IDS 4096   /* asked for at a time */

struct block_run {
    uint64_t first;
    uint32_t count;
};

struct block {
    struct block_run *run;
    size_t nruns, at;
    uint64_t asked_ms; /* when what is there was asked for */
    bool asking;
    uint64_t asking_ms;
    uint32_t used, size; /* since the last was asked for; how many to ask for */
    uint64_t top;        /* the newest id that was there */
};

void block_init (struct block *b);
void block_fini (struct block *b);

/* How many ids to ask for now, 'wanted' jobs being without: 0 where enough are there or a request is under way.  Who gets a number asks, and
 * says how it ended.
 */
uint32_t block_ask (struct block *b, uint64_t now_ms, uint32_t wanted);

/* The answer: runs in increasing order, above all before (else -1 with errno EPROTO, and none is taken).  / There was none. */
int block_filled (struct block *b, const struct block_run *runs, size_t n);
void block_failed (struct block *b);

/* Take the next id; 0: none is there that is young enough. */
uint64_t block_take (struct block *b, uint64_t now_ms);

/* All ids that are there are too low: throw them away. */
void block_drop (struct block *b);

#endif /* INGEST_BLOCK_H */
