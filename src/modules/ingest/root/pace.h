/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pace.h - at rank 0: when to request the watermark next, when to retry failed work, and when to report that the disk
 * does not answer
 *
 * The time of a task is set when the task is first wanted. It does not move until it is reached, or until the task is
 * no longer wanted. Submissions and reads call pace_want () often; if these calls moved the time, a busy rank 0 would
 * never reach it.
 */
#ifndef INGEST_PACE_H
#define INGEST_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum pace_task { PACE_ASK, PACE_AGAIN, PACE_SLOW, PACE_TASKS };

struct pace {
    uint64_t due_ms[PACE_TASKS]; /* 0: not wanted */
};

/* Want the task 'after_ms' from now, unless it is wanted already; or, if 'wanted' is false, cancel it. */
void pace_want (struct pace *p, enum pace_task task, bool wanted, uint64_t now_ms, uint64_t after_ms);

/* Whether the task's time is reached. If so, the task is no longer wanted. */
bool pace_take (struct pace *p, enum pace_task task, uint64_t now_ms);

/* The earliest time of any task; UINT64_MAX: no task is wanted. */
uint64_t pace_due (const struct pace *p);

#endif /* INGEST_PACE_H */
