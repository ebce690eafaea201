/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* watermark.h - the time below which no id will be made any longer in the whole instance
 *
 * A holder is an incarnation of a broker that was granted boxes of a generator. The position of a holder is a time
 * below which the holder makes no further id. Positions never decrease. Positions travel up the tree in reports. A
 * report contains the lowest position of a set of holders. The set is described by its size and the sum of its members'
 * hashes, so all reports have the same length. Two sets count as equal if both numbers agree.
 *
 * The root knows all holders. If the reports are of exactly all holders, their lowest position is the watermark. A
 * silent holder delays the watermark until the holder can no longer use its boxes. That is a lease and a quarter
 * after the last grant (LEASE_USE_MS ()). If a holder never reported, the watermark still rises to the begin of that
 * holder's boxes. So a broker that crashes again and again does not stop the watermark, because each of its lives was
 * granted boxes above all earlier ones.
 *
 * 'us' are CLOCK_BOOTTIME microseconds, 'ms' instance milliseconds.
 */
#ifndef FLUID_WATERMARK_H
#define FLUID_WATERMARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modules/fluid/lease/box.h"

/* --- sets of holders and what they report ------------------------------------------------------ */

struct holders {
    uint32_t count;
    uint64_t sum;
};

void holders_add (struct holders *set, uint32_t generator, const char *incarnation);

/* No holder in 'holders' makes an id below 'low_ms' any longer (UINT64_MAX if the set is empty). No id is made in any
 * part that 'from' holds below 'part_low_ms' (0: not stated).
 */
struct report {
    uint32_t rank;                   /* of the broker that reports for itself and its subtree */
    char from[IDT_MSG_UUID_LEN + 1]; /* its incarnation */
    struct holders holders;
    uint64_t low_ms;
    uint64_t part_low_ms;
};

/* --- reports of a broker's children ------------------------------------------------------------- */

#define REPORTS_MAX 65536 /* children that are remembered */

/* All fields except 'keep_us' are zero at the beginning. */
struct reports {
    uint64_t keep_us; /* a child that is silent for this long is left out, because its subtree may report elsewhere */
    struct report_entry *entry; /* in order of 'rank' and 'from'; for free () */
    size_t count, size;
};

/* Replace the last report of that rank and incarnation. Returns 0, or -1 with errno ENOMEM or ENOBUFS. */
int reports_take (struct reports *r, uint64_t now_us, const struct report *report);

/* Join all reports to '*all'. */
void reports_join (struct reports *r, uint64_t now_us, struct report *all);

/* --- the root ----------------------------------------------------------------------------------- */

/* What the root stores on its disk. */
struct lease_record {
    uint64_t horizon_ms;   /* all ids were made below this time; a root that starts grants nothing below it */
    uint64_t watermark_ms; /* no id below this time will be made */
    uint64_t settle_ms;    /* for this long after a root starts, boxes of earlier roots may be in use */
    uint64_t ahead_ms;     /* the clock debt if the next root begins at this horizon (clock.h) */
    uint64_t peak_ms;      /* the highest horizon that was ever stored; 0: horizon_ms */
};

struct watermark;

/* 'stored' is the record of the previous root. Free the result with free (). Returns NULL with errno ENOMEM. */
struct watermark *watermark_create (uint32_t ngenerators, uint64_t lease_ms, const struct lease_record *stored,
                                    uint64_t now_ms);

/* watermark_given () reports that a box was granted. watermark_back () reports that an incarnation will never use its
 * generator again. The watermark no longer waits for that incarnation, but it waits for those to whom the
 * incarnation granted parts.
 */
void watermark_given (struct watermark *w, uint64_t now_ms, const struct grant *grant);
void watermark_back (struct watermark *w, uint64_t now_ms, const struct want *back);

/* Report that the root's clock stepped forward by 'us', a time that did not pass. Holders may use their boxes for as
 * long as without the step.
 */
void watermark_stepped (struct watermark *w, uint64_t us);

/* Raise the watermark as far as all reports allow, and return it. It never decreases, and is never above 'horizon_ms',
 * the durable horizon. No box that is granted afterwards may begin below it (grants_raise ()).
 */
uint64_t watermark_raise (struct watermark *w, uint64_t now_ms, uint64_t horizon_ms, const struct report *all);

/* Whether a granted box may still be in use. */
bool watermark_any_holder (const struct watermark *w, uint64_t now_ms);

/* Set 'watermark_ms' and 'settle_ms' of the record for the next root. 'grants_ms' is for how long this root may still
 * grant boxes after the next one has started.
 */
void watermark_record (const struct watermark *w, uint64_t now_ms, uint64_t grants_ms, struct lease_record *record);

#endif /* FLUID_WATERMARK_H */
