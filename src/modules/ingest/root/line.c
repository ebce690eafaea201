/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* line.c - the line only rises: by the watermark, by what was refused */
#include <assert.h>

#include "libutil/minmax.h"
#include "modules/ingest/root/line.h"

/* What former lives left is durable, and nothing that they had under way can come in at or below 'first' any more. */
void line_init (struct line *l, uint64_t first)
{
    *l = (struct line){ .at = first, .group = first, .shown = first };
}

static void rise (struct line *l, uint64_t id)
{
    l->at = max_u64 (l->at, id);
    if (!l->under_way)
        l->shown = l->at;
}

void line_watermark (struct line *l, uint64_t id)
{
    l->watermark = max_u64 (l->watermark, id);
    if (l->watermark > 0)
        rise (l, l->watermark - 1);
}

uint64_t line_begin (struct line *l)
{
    assert (!l->under_way);
    l->under_way = true;
    l->group = l->at;
    return l->group;
}

/* What the group stored above its own line is durable now, and no other will be judged by a lower line than this. */
void line_end (struct line *l, uint64_t refused)
{
    assert (l->under_way);
    l->under_way = false;
    rise (l, refused);
}

uint64_t line_shown (const struct line *l)
{
    return l->shown;
}
