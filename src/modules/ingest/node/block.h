/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* block.h - ids that are there to be given to jobs, none older than BLOCK_MAX_AGE_MS
 *
 * Ids are asked for in blocks whose size follows what was used lately, so that a job that comes in finds one.  They
 * are given in the order of the blocks, which is that of ids; the rest of a block that is too old is thrown away.
 */
#ifndef INGEST_BLOCK_H
#define INGEST_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCK_MAX_AGE_MS 50 /* from when it was asked for */
#define BLOCK_MIN_IDS 16    /* asked for at a time */
#define BLOCK_MAX_IDS 4096
#define BLOCK_PAUSE_MS 50 /* from a request that failed to the next */

struct block_run {
    uint64_t first;
    uint32_t count;
};

struct block {
    struct block_part {
        struct block_run run;
        uint64_t asked_ms; /* when it was asked for */
    } * part;
    size_t nparts, room, at; /* 'at': the part in use */
    uint64_t left;           /* ids that are there */
    bool asking;
    uint64_t asking_ms;  /* the last request */
    uint64_t pause_ms;   /* none before this; 0: as needed */
    uint32_t used, size; /* since the last was asked for; how many to ask for */
    uint64_t top;        /* the newest id that was there */
};

void block_init (struct block *b);
void block_fini (struct block *b);

/* How many ids to ask for now, 'wanted' jobs being without: 0 where enough are there, a request is under way, or one
 * failed just now.  Who gets a number asks, and says how it ended.
 */
uint32_t block_ask (struct block *b, uint64_t now_ms, uint32_t wanted);

/* When to call that again, after a request that failed; UINT64_MAX: when there is something new. */
uint64_t block_due (const struct block *b);

/* The answer: runs in increasing order, above all before.  Returns 0, or -1 with errno EPROTO or ENOMEM, and none is
 * taken: it failed.  / There was none.
 */
int block_filled (struct block *b, const struct block_run *runs, size_t n);
void block_failed (struct block *b);

/* Take the next id; 0: none is there that is young enough. */
uint64_t block_take (struct block *b, uint64_t now_ms);

/* All ids that are there are too low: throw them away. */
void block_drop (struct block *b);

#endif /* INGEST_BLOCK_H */
