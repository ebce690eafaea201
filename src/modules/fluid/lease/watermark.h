/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* watermark.h - below what time no id will be made any more, in the whole instance
 *
 * A lessee is an incarnation of a broker that was given ranges of a generator.  Its position is a time below which it
 * makes no id any more; it never goes back.  Positions travel up the tree as reports: the lowest position of a set
 * of lessees.  A set is told by its size and the sum of its members' hashes, so that a report has one size however
 * many it speaks for; two sets are taken for the same where both agree.
 *
 * The root knows whom it gave ranges.  Where the reports speak for exactly those, their lowest position is the
 * watermark.  A lessee that is silent holds it back until it can use its ranges no more: a lease and a quarter after
 * the last one was given (LEASE_USE_MS ()).  One that never reported holds it back no further than where its ranges
 * begin: lives of a broker that crashes again and again were each given what lies above all before.
 *
 * 'us' are CLOCK_BOOTTIME microseconds, 'ms' instance milliseconds.
 */
#ifndef FLUID_WATERMARK_H
#define FLUID_WATERMARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modules/fluid/lease/lease.h"

/* --- sets of lessees and what they report ------------------------------------------------------ */

struct lessees {
    uint32_t count;
    uint64_t sum;
};

void lessees_add (struct lessees *set, uint32_t generator, const char *incarnation);

/* None of 'lessees' makes an id below 'low_ms' any more (UINT64_MAX where there are none).  Nor does anybody, of what
 * 'from' was lent, below 'borrowed_low_ms' (0: it does not say).
 */
struct report {
    uint32_t rank;                   /* of the broker that says so, for itself and those below it */
    char from[IDT_MSG_UUID_LEN + 1]; /* its incarnation */
    struct lessees lessees;
    uint64_t low_ms;
    uint64_t borrowed_low_ms;
};

/* --- what a broker's children reported --------------------------------------------------------- */

#define REPORTS_MAX 65536 /* children that are remembered */

/* Zeroed but for 'keep_us' at the beginning. */
struct reports {
    uint64_t keep_us; /* a child that says nothing for so long is left out: those below it may report elsewhere */
    struct report_entry *entry; /* in order of 'rank' and 'from'; for free () */
    size_t count, size;
};

/* Take a report in place of the last one of that rank and incarnation.  Returns 0, or -1 with errno ENOMEM or ENOBUFS.
 */
int reports_take (struct reports *r, uint64_t now_us, const struct report *report);

/* Join all of them to '*all'. */
void reports_join (struct reports *r, uint64_t now_us, struct report *all);

/* --- the root ----------------------------------------------------------------------------------- */

struct watermark;

/* 'stored': what the root that ran before left.  For free (), or NULL with errno ENOMEM. */
struct watermark *watermark_create (uint32_t ngenerators, uint64_t lease_ms, const struct lease_record *stored,
                                    uint64_t now_ms);

/* A range was given. / The incarnation will never use its generator again: it is not waited for, but for those that it
 * lent to.
 */
void watermark_given (struct watermark *w, uint64_t now_ms, const struct lease_grant *grant);
void watermark_back (struct watermark *w, uint64_t now_ms, const struct lease_back *back);

/* The root's clock was set forward by 'us', which did not pass: whoever was given a range may use it as long as before.
 */
void watermark_stepped (struct watermark *w, uint64_t us);

/* The watermark, from all that was reported.  It never goes back, and is never above 'horizon_ms', what is
 * durable.  No range that is given afterwards may begin below it (lease_raise ()).
 */
uint64_t watermark_raise (struct watermark *w, uint64_t now_ms, uint64_t horizon_ms, const struct report *all);

/* Whether a range that was given may be in use yet. */
bool watermark_any_lessee (const struct watermark *w, uint64_t now_ms);

/* Fill in what the next root must know beside the horizon in '*record'. */
void watermark_record (const struct watermark *w, uint64_t now_ms, struct lease_record *record);

#endif /* FLUID_WATERMARK_H */
