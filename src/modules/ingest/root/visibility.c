/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* visibility.c - the line only rises: with the watermark, with the time of ids, and over refused jobs */
#include <assert.h>

#include <idtree/fluid.h>

#include "libutil/minmax.h"
#include "modules/ingest/root/visibility.h"

#define CALM_MS 10000      /* without a late job, until the line follows more closely */
#define SLACK_MAX_MS 60000 /* jobs that are later than this do not hold back the line; the watermark waits for them */

void visibility_init (struct visibility *l, uint64_t first, uint64_t settle_ms)
{
    *l = (struct visibility){ .at = first, .shown = first, .settle_ms = settle_ms, .slack_ms = settle_ms };
}

static void rise (struct visibility *l, uint64_t id)
{
    l->at = max_u64 (l->at, id);
    if (!l->under_way)
        l->shown = l->at;
}

void visibility_watermark (struct visibility *l, uint64_t id)
{
    if (id > 0)
        rise (l, id - 1);
}

static uint64_t first_of (uint64_t ms)
{
    return min_u64 (ms, FLUID_TIMESTAMP_MAX) << 24;
}

void visibility_time (struct visibility *l, uint64_t now_ms)
{
    if (l->slack_ms > l->settle_ms && now_ms > l->late_ms + CALM_MS) {
        l->slack_ms = max_u64 (l->slack_ms / 2, l->settle_ms);
        l->late_ms = now_ms;
    }
    if (now_ms > l->slack_ms)
        rise (l, first_of (now_ms - l->slack_ms) - 1);
}

void visibility_late (struct visibility *l, uint64_t id, uint64_t now_ms)
{
    uint64_t made_ms = id >> 24, age_ms = now_ms > made_ms ? now_ms - made_ms : 0;

    l->late_ms = now_ms;
    if (age_ms <= SLACK_MAX_MS)
        l->slack_ms = max_u64 (l->slack_ms, 2 * age_ms);
}

uint64_t visibility_begin (struct visibility *l)
{
    assert (!l->under_way);
    l->under_way = true;
    return l->at;
}

/* The jobs that the group stored above its own line are durable now, and later groups are judged by this line or a
 * higher one. So jobs up to the line may become visible.
 */
void visibility_end (struct visibility *l, uint64_t refused)
{
    assert (l->under_way);
    l->under_way = false;
    rise (l, refused);
}

uint64_t visibility_shown (const struct visibility *l)
{
    return l->shown;
}
