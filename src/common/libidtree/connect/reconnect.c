/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reconnect.c - which broker is tried when, after a connection is lost */
#include "config.h"

#include <errno.h>

#include "libidtree/connect/reconnect.h"

void reconnect_init (struct reconnect *r, size_t count, uint32_t seed)
{
    *r = (struct reconnect){ .count = count, .dice = seed };
}

/* A number from 0.5 to 1, by a linear congruential generator: clients need different numbers, not unpredictable ones.
 */
static double chance (struct reconnect *r)
{
    r->dice = r->dice * UINT32_C (1664525) + UINT32_C (1013904223);
    return 0.5 + r->dice * (0.5 / UINT32_MAX);
}

/* Begin a new round, after a pause that is longer than the one before. */
static void pause_until (struct reconnect *r, double now_ms)
{
    double twice_ms = 2 * r->pause_ms;

    r->pause_ms = twice_ms < RECONNECT_PAUSE_MIN_MS   ? RECONNECT_PAUSE_MIN_MS
                  : twice_ms > RECONNECT_PAUSE_MAX_MS ? RECONNECT_PAUSE_MAX_MS
                                                      : twice_ms;
    r->at_ms = now_ms + r->pause_ms * chance (r);
}

void reconnect_begin (struct reconnect *r, double now_ms)
{
    r->next = r->refused = 0;
    r->begun_ms = r->at_ms = now_ms;
    if (now_ms - r->up_ms >= RECONNECT_PAUSE_MAX_MS)
        r->pause_ms = 0;
    else if (r->up_ms > 0)
        pause_until (r, now_ms);
}

double reconnect_at (const struct reconnect *r)
{
    return r->at_ms;
}

double reconnect_end (const struct reconnect *r, double now_ms)
{
    double last_ms = r->begun_ms + RECONNECT_PATIENCE_MS;

    return now_ms + RECONNECT_TRY_MS < last_ms ? now_ms + RECONNECT_TRY_MS : last_ms;
}

double reconnect_share (double left_ms, size_t behind)
{
    double share_ms = left_ms / (double)(behind + 1);

    return behind == 0 || share_ms < RECONNECT_TRY_MS ? share_ms : RECONNECT_TRY_MS;
}

static bool stays_so (int errnum)
{
    return errnum == ESTALE || errnum == EPERM || errnum == EACCES;
}

bool reconnect_failed (struct reconnect *r, double now_ms, int errnum)
{
    r->refused += stays_so (errnum);
    r->next++;
    if (now_ms - r->begun_ms >= RECONNECT_PATIENCE_MS)
        return false;
    if (r->next < r->count)
        return true;
    if (r->refused == r->count)
        return false;
    r->next = r->refused = 0;
    pause_until (r, now_ms);
    return r->at_ms - r->begun_ms < RECONNECT_PATIENCE_MS;
}

void reconnect_succeeded (struct reconnect *r, double now_ms)
{
    r->up_ms = now_ms;
}
