/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* series.c - makes the ids of one rank
 *
 * Only whole steps of time are used. So ranges of time that do not overlap never give equal ids, even if a step is
 * divided between them (doc/design/flake.md, rule 2).
 */
#include <errno.h>

#include "libutil/errprintf.h"
#include "modules/flake/series.h"

#define SECOND_US INT64_C (1000000)
#define UNIT_US (SNO_UNIT_NS / 1000)

static int reserve_sno (struct sno_gen *sno, int64_t lo_us, int64_t hi_us, int64_t unix_us, uint8_t meta, uint32_t want,
                        struct flake_run *run, int64_t *wait_us)
{
    uint64_t lo, hi;
    int64_t wait_ns = 0;

    /* The first unit that begins in the range, and the first that does not end in it. */
    if (sno_unit_at ((lo_us + UNIT_US - 1) * 1000, &lo) < 0 || sno_unit_at (hi_us * 1000, &hi) < 0)
        return -1;
    if (lo >= hi)
        return errset (ERANGE);
    sno_gen_set_range (sno, lo, hi);
    int n = sno_gen_reserve (sno, meta, unix_us * 1000, want, &run->first.sno, &wait_ns);
    if (n < 0 && errno == EAGAIN)
        *wait_us = (wait_ns + 999) / 1000;
    /* ESTALE: a unit that the clock has left. It stays left, because the clock never goes back. */
    if (n < 0 && errno == ESTALE)
        return errset (EAGAIN);
    return n;
}

/* The step that contains a time: [*from_us, *to_us). */
static void step_at (int64_t us, int64_t *from_us, int64_t *to_us)
{
    int64_t second = us / SECOND_US * SECOND_US, c = us - second;

    *from_us = second + c / UID_STEP_US * UID_STEP_US;
    *to_us = *from_us + UID_STEP_US;
    if (*to_us > second + SECOND_US) /* the last step of a second is shorter */
        *to_us = second + SECOND_US;
}

static int reserve_uid (struct uid_gen *uid, int64_t lo_us, int64_t hi_us, int64_t unix_us, uint32_t want,
                        struct flake_run *run, int64_t *wait_us)
{
    int64_t from_us, to_us;

    step_at (unix_us, &from_us, &to_us);
    *wait_us = to_us - unix_us;
    if (from_us < lo_us || to_us > hi_us)
        return errset (ERANGE);
    return uid_gen_reserve (uid, UID_GLOBAL, unix_us, want, &run->first.uid, wait_us);
}

int series_reserve (const struct series *s, int64_t lo_us, int64_t hi_us, int64_t unix_us, uint8_t meta, uint32_t want,
                    struct flake_run *run, int64_t *wait_us)
{
    int n;

    if (s->sno) {
        *wait_us = UNIT_US - unix_us % UNIT_US;
        n = reserve_sno (s->sno, lo_us, hi_us, unix_us, meta, want, run, wait_us);
    }
    else
        n = reserve_uid (s->uid, lo_us, hi_us, unix_us, want, run, wait_us);
    if (n > 0)
        run->n = n;
    return n;
}
