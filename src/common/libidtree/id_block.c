/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* id_block.c - prefetched ids; they are from at most two responses, and ids of the older response come first */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "libidtree/id_block.h"

static uint32_t least (uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t left (const struct id_block *b)
{
    return b->end - b->next;
}

/* Some ids expired unused: the next request is for as many ids as were used. */
static void spoil (struct id_block *b)
{
    b->want = least (b->limit, b->used > ID_BLOCK_FIRST ? b->used : ID_BLOCK_FIRST);
    b->spoiled = true;
}

/* Drop ids that are too old. */
static void expire (struct id_block *b, uint64_t now_us)
{
    uint32_t from = now_us >= b->fresh_us ? b->end : now_us >= b->old_us ? b->fresh : b->next;

    if (b->next < from) {
        spoil (b);
        b->next = from;
    }
}

bool id_block_take (struct id_block *b, uint64_t now_us, uint32_t n, fluid_t *ids)
{
    b->alone = n > b->limit || now_us - b->called_us > b->max_age_us;
    b->called_us = now_us;
    expire (b, now_us);
    if (left (b) < n) {
        b->want = least (b->limit, 2 * n > b->want ? 2 * n : b->want);
        return false;
    }
    memcpy (ids, b->ids + b->next, n * sizeof (*ids));
    b->next += n;
    b->used += n;
    assert (b->next <= b->end);
    return true;
}

uint64_t id_block_until_us (const struct id_block *b)
{
    return b->asked_us + b->max_age_us;
}

bool id_block_will_do (const struct id_block *b, uint64_t now_us, uint32_t n)
{
    return b->asked > 0 && n <= left (b) + b->asked && now_us < id_block_until_us (b);
}

uint32_t id_block_wants (const struct id_block *b, uint64_t now_us)
{
    if (b->asked > 0 || (left (b) > b->low && now_us < b->fresh_us - b->max_age_us / 2))
        return 0;
    return b->alone || now_us < b->pause_us ? 0 : least (b->want, b->most - left (b));
}

void id_block_asked (struct id_block *b, uint64_t now_us, uint32_t n)
{
    assert (b->asked == 0 && n > 0 && left (b) + n <= b->most);
    b->asked = n;
    b->asked_us = now_us;
}

fluid_t *id_block_place (struct id_block *b)
{
    memmove (b->ids, b->ids + b->next, left (b) * sizeof (*b->ids));
    b->old_us = b->next < b->fresh ? b->old_us : b->fresh_us;
    b->fresh = b->end = left (b);
    b->next = 0;
    return b->ids + b->end;
}

void id_block_got (struct id_block *b)
{
    b->end += b->asked;
    assert (b->asked > 0 && b->end <= b->most);
    b->fresh_us = id_block_until_us (b);
    b->low = b->end / 2;
    b->asked = 0;
    if (!b->spoiled)
        b->want = least (b->limit, 2 * b->want);
    b->spoiled = false;
    b->used = 0;
}

void id_block_cancel (struct id_block *b)
{
    b->asked = 0;
}

void id_block_failed (struct id_block *b, uint64_t now_us, bool too_many)
{
    uint32_t half = b->asked > 1 ? b->asked / 2 : 1;

    b->limit = too_many ? half : b->limit;
    b->want = half;
    b->pause_us = now_us + b->max_age_us;
    b->asked = 0;
}

void id_block_skip (struct id_block *b)
{
    b->next = b->end;
}

int id_block_init (struct id_block *b, uint32_t most, uint64_t max_age_us, uint64_t now_us)
{
    *b = (struct id_block){ .most = most, .limit = most, .max_age_us = max_age_us, .called_us = now_us };
    b->want = least (most, ID_BLOCK_FIRST);
    b->ids = malloc (most * sizeof (*b->ids));
    return b->ids ? 0 : -1;
}

void id_block_fini (struct id_block *b)
{
    free (b->ids);
}
