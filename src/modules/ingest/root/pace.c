/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pace.c - times that do not move until they are reached or cancelled */
#include "libutil/minmax.h"
#include "modules/ingest/root/pace.h"

void pace_want (struct pace *p, enum pace_task task, bool wanted, uint64_t now_ms, uint64_t after_ms)
{
    if (!wanted)
        p->due_ms[task] = 0;
    else if (p->due_ms[task] == 0)
        p->due_ms[task] = max_u64 (now_ms + after_ms, 1);
}

bool pace_take (struct pace *p, enum pace_task task, uint64_t now_ms)
{
    if (p->due_ms[task] == 0 || now_ms < p->due_ms[task])
        return false;
    p->due_ms[task] = 0;
    return true;
}

uint64_t pace_due (const struct pace *p)
{
    uint64_t due_ms = UINT64_MAX;

    for (int i = 0; i < PACE_TASKS; i++)
        if (p->due_ms[i] > 0)
            due_ms = min_u64 (due_ms, p->due_ms[i]);
    return due_ms;
}
