/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pace.h - at rank 0: when the watermark is asked for next, when work that failed is tried again, and when the disk is
 * said not to answer
 *
 * A time is set when it is wanted first and stays until it has come or is no longer wanted.  Submissions and reads call
 * pace_want () many times between; if they moved the time, a busy rank 0 would never reach it.
 */
#ifndef INGEST_PACE_H
#define INGEST_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum pace_task { PACE_ASK, PACE_AGAIN, PACE_SLOW, PACE_TASKS };

struct pace {
    uint64_t due_ms[PACE_TASKS]; /* 0: not wanted */
};

/* The task is wanted in 'after_ms', or no longer. */
void pace_want (struct pace *p, enum pace_task task, bool wanted, uint64_t now_ms, uint64_t after_ms);

/* Whether the task's time has come; then it is no longer wanted. */
bool pace_take (struct pace *p, enum pace_task task, uint64_t now_ms);

/* The next time of any; UINT64_MAX: nothing is wanted. */
uint64_t pace_due (const struct pace *p);

#endif /* INGEST_PACE_H */
