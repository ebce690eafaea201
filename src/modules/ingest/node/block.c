/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* block.c - a queue of runs of ids; ids are taken from the oldest run
 *
 * The next block is requested when at least half of a block was used and at most half of a block is left. If that
 * request follows the previous one within BLOCK_SOON_MS, the size of a block is doubled; otherwise the size is halved
 * for each BLOCK_SLOW_MS between the two requests.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/ingest/node/block.h"

#define BLOCK_SOON_MS 25
#define BLOCK_SLOW_MS 100

void block_init (struct block *b)
{
    *b = (struct block){ .size = BLOCK_MIN_IDS };
}

void block_fini (struct block *b)
{
    int saved = errno;

    free (b->part);
    block_init (b);
    errno = saved;
}

void block_drop (struct block *b)
{
    b->nparts = b->at = 0;
    b->left = 0;
}

/* Drop parts that are too old; parts are in order of age. */
static void drop_old (struct block *b, uint64_t now_ms)
{
    while (b->at < b->nparts && now_ms > b->part[b->at].asked_ms + BLOCK_MAX_AGE_MS)
        b->left -= b->part[b->at++].run.count;
    if (b->at == b->nparts)
        block_drop (b);
}

static void set_size (struct block *b, uint64_t since_ms)
{
    if (since_ms < BLOCK_SOON_MS)
        b->size *= 2;
    else
        b->size >>= min_u64 (since_ms / BLOCK_SLOW_MS, 12);
    b->size = (uint32_t)max_u64 (BLOCK_MIN_IDS, min_u64 (b->size, BLOCK_MAX_IDS));
}

uint32_t block_ask (struct block *b, uint64_t now_ms, uint32_t wanted)
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
    return (uint32_t)min_u64 (max_u64 (b->size, wanted), BLOCK_MAX_IDS);
}

uint64_t block_due (const struct block *b)
{
    return b->pause_ms > 0 ? b->pause_ms : UINT64_MAX;
}

static int make_room (struct block *b, size_t n)
{
    if (b->nparts > b->at)
        memmove (b->part, b->part + b->at, (b->nparts - b->at) * sizeof (b->part[0]));
    b->nparts -= b->at;
    b->at = 0;
    size_t room = b->nparts + n;
    if (room <= b->room)
        return 0;
    struct block_part *part = realloc (b->part, 2 * room * sizeof (part[0]));
    if (!part)
        return errset (ENOMEM);
    b->part = part;
    b->room = 2 * room;
    return 0;
}

/* The newest id of 'runs'. Returns 0 if the runs do not increase, are not above 'top', are empty or overflow. */
static uint64_t top_of (uint64_t top, const struct block_run *runs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (runs[i].first <= top || runs[i].count == 0 || runs[i].first > UINT64_MAX - runs[i].count)
            return 0;
        top = runs[i].first + runs[i].count - 1;
    }
    return top;
}

int block_filled (struct block *b, const struct block_run *runs, size_t n)
{
    uint64_t top = top_of (b->top, runs, n);

    block_failed (b); /* unless the checks below succeed */
    if (n == 0 || top == 0)
        return errset (EPROTO);
    if (make_room (b, n) < 0)
        return -1;
    b->pause_ms = 0;
    b->top = top;
    for (size_t i = 0; i < n; i++) {
        b->part[b->nparts++] = (struct block_part){ .run = runs[i], .asked_ms = b->asking_ms };
        b->left += runs[i].count;
    }
    return 0;
}

void block_failed (struct block *b)
{
    b->asking = false;
    b->pause_ms = b->asking_ms + BLOCK_PAUSE_MS;
}

uint64_t block_take (struct block *b, uint64_t now_ms)
{
    drop_old (b, now_ms);
    if (b->at == b->nparts)
        return 0;
    struct block_run *run = &b->part[b->at].run;
    uint64_t id = run->first++;
    if (--run->count == 0)
        b->at++;
    b->left--;
    b->used++;
    return id;
}
