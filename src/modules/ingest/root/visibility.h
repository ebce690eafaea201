/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* visibility.h - at rank 0: the line, and the id up to which jobs are visible
 *
 * A job at or below the line that is not stored will never be stored (doc/design/ingest.md, "Verdicts"). Groups are
 * stored one at a time. A group is judged by the line as it was when the group began, so the visible id follows the
 * line only when the group has ended.
 */
#ifndef INGEST_VISIBILITY_H
#define INGEST_VISIBILITY_H

#include <stdbool.h>
#include <stdint.h>

struct visibility {
    uint64_t at;        /* the line */
    uint64_t settle_ms; /* the least distance of the line from the time of ids, */
    uint64_t slack_ms;  /* and its distance now */
    uint64_t late_ms;   /* when a job was late last */
    uint64_t shown;
    bool under_way;
};

/* Start at 'first': all jobs that were visible in earlier lives are at or below it. The line follows the watermark, and
 * the time of ids at a distance of at least 'settle_ms'.
 */
void visibility_init (struct visibility *l, uint64_t first, uint64_t settle_ms);

/* Report the time of ids: 'now_ms'. */
void visibility_time (struct visibility *l, uint64_t now_ms);

/* Report a job with an id at or below the line. The line then stays at least twice as far behind the time as this id
 * is, so that the next id of a rank that is slow, or whose clock is behind, is above the line. If the id is more than a
 * minute old, the distance does not change. Without late jobs the distance shrinks again.
 */
void visibility_late (struct visibility *l, uint64_t id, uint64_t now_ms);

/* Report the watermark: a FLUID below which no id will be made any longer. A watermark below an earlier one is ignored.
 */
void visibility_watermark (struct visibility *l, uint64_t id);

/* visibility_begin () begins a group and returns its line; no other group may be under way. visibility_end () ends the
 * group: 'refused' is the highest id in it that was refused, and 0 if no job was. After visibility_end () the refusals
 * may be sent.
 */
uint64_t visibility_begin (struct visibility *l);
void visibility_end (struct visibility *l, uint64_t refused);

/* Stored jobs with this id and below may be shown to consumers: jobs with other ids at or below it will never be
 * stored. The value only rises.
 */
uint64_t visibility_shown (const struct visibility *l);

#endif /* INGEST_VISIBILITY_H */
