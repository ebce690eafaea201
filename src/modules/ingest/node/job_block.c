/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_block.c - a queue of runs of ids; ids are taken from the oldest run
 *
 * The next block is requested when at least half of a block was used and at most half of a block is left. If that
 * request follows the previous one within JOB_BLOCK_SOON_MS, the size of a block is doubled; otherwise the size is
 * halved for each JOB_BLOCK_SLOW_MS between the two requests.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/ingest/node/job_block.h"

#define JOB_BLOCK_SOON_MS 25
#define JOB_BLOCK_SLOW_MS 100

void job_block_init (struct job_block *b)
{
    *b = (struct job_block){ .size = JOB_BLOCK_MIN_IDS };
}

void job_block_fini (struct job_block *b)
{
    int saved = errno;

    free (b->part);
    job_block_init (b);
    errno = saved;
}

void job_block_drop (struct job_block *b)
{
    b->nparts = b->at = 0;
    b->left = 0;
}

/* Drop parts that are too old; parts are in order of age. */
static void drop_old (struct job_block *b, uint64_t now_ms)
{
    while (b->at < b->nparts && now_ms > b->part[b->at].asked_ms + JOB_BLOCK_MAX_AGE_MS)
        b->left -= b->part[b->at++].run.count;
    if (b->at == b->nparts)
        job_block_drop (b);
}

static void set_size (struct job_block *b, uint64_t since_ms)
{
    if (since_ms < JOB_BLOCK_SOON_MS)
        b->size *= 2;
    else
        b->size >>= min_u64 (since_ms / JOB_BLOCK_SLOW_MS, 12);
    b->size = (uint32_t)max_u64 (JOB_BLOCK_MIN_IDS, min_u64 (b->size, JOB_BLOCK_MAX_IDS));
}

uint32_t job_block_ask (struct job_block *b, uint64_t now_ms, uint32_t wanted)
{
    if (b->asking || now_ms < b->pause_ms)
        return 0;
    b->pause_ms = 0;
    drop_old (b, now_ms);
    bool soon = b->used >= b->size / 2 && b->left <= b->size / 2;
    if (wanted <= b->left && !soon)
        return 0;
    set_size (b, now_ms - b->asking_ms);
    b->asking = true;
    b->asking_ms = now_ms;
    b->used = 0;
    return (uint32_t)min_u64 (max_u64 (b->size, wanted), JOB_BLOCK_MAX_IDS);
}

uint64_t job_block_due (const struct job_block *b)
{
    return b->pause_ms > 0 ? b->pause_ms : UINT64_MAX;
}

static int make_room (struct job_block *b, size_t n)
{
    if (b->nparts > b->at)
        memmove (b->part, b->part + b->at, (b->nparts - b->at) * sizeof (b->part[0]));
    b->nparts -= b->at;
    b->at = 0;
    size_t room = b->nparts + n;
    if (room <= b->room)
        return 0;
    struct job_block_part *part = realloc (b->part, 2 * room * sizeof (part[0]));
    if (!part)
        return errset (ENOMEM);
    b->part = part;
    b->room = 2 * room;
    return 0;
}

/* The newest id of 'runs'. Returns 0 if the runs do not increase, are not above 'top', are empty or overflow. */
static uint64_t top_of (uint64_t top, const struct job_block_run *runs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (runs[i].first <= top || runs[i].count == 0 || runs[i].first > UINT64_MAX - runs[i].count)
            return 0;
        top = runs[i].first + runs[i].count - 1;
    }
    return top;
}

int job_block_filled (struct job_block *b, const struct job_block_run *runs, size_t n)
{
    uint64_t top = top_of (b->top, runs, n);

    job_block_failed (b); /* unless the checks below succeed */
    if (n == 0 || top == 0)
        return errset (EPROTO);
    if (make_room (b, n) < 0)
        return -1;
    b->pause_ms = 0;
    b->top = top;
    for (size_t i = 0; i < n; i++) {
        b->part[b->nparts++] = (struct job_block_part){ .run = runs[i], .asked_ms = b->asking_ms };
        b->left += runs[i].count;
    }
    return 0;
}

void job_block_failed (struct job_block *b)
{
    b->asking = false;
    b->pause_ms = b->asking_ms + JOB_BLOCK_PAUSE_MS;
}

uint64_t job_block_take (struct job_block *b, uint64_t now_ms)
{
    drop_old (b, now_ms);
    if (b->at == b->nparts)
        return 0;
    struct job_block_run *run = &b->part[b->at].run;
    uint64_t id = run->first++;
    if (--run->count == 0)
        b->at++;
    b->left--;
    b->used++;
    return id;
}
