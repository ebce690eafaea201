/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lessee.h - one broker's lease of its generator: what it holds, and when it requests more
 *
 * 'us' are CLOCK_BOOTTIME microseconds, 'ms' instance milliseconds (0 while the time is not known).
 */
#ifndef FLUID_LESSEE_H
#define FLUID_LESSEE_H

#include <stdbool.h>
#include <stdint.h>

#include "modules/fluid/lease/lease.h"

struct lessee {
    uint32_t generator;
    char incarnation[IDT_MSG_UUID_LEN + 1];
    uint64_t lease_ms;
    struct range range[2]; /* in order of time; adjacent ranges are joined */
    unsigned nranges;
    uint64_t top_ms;   /* end of all ranges ever accepted */
    uint64_t until_us; /* nothing is used from then on (LEASE_USE_MS ()) */
    uint64_t asked_us; /* when the newest request was first sent */
    uint64_t number;   /* of the newest request */
    bool asking;       /* the newest request was sent and not answered */
    bool closed;       /* for good */
    uint64_t ask_us;   /* do not send or repeat a request before this time */
    uint64_t backoff_us;
};

/* 'incarnation': the broker's random UUID (36 characters), never used by any broker before. */
void lessee_init (struct lessee *h, uint32_t generator, const char *incarnation, uint64_t lease_ms);

/* Find the range that contains 'now_ms' and may be used at 'now_us'. Returns false if there is no such range. */
bool lessee_range (const struct lessee *h, uint64_t now_us, uint64_t now_ms, struct range *range);

/* Whether the rank holds a range that it may use now or later. If not, it makes no id before its next request is
 * answered.
 */
bool lessee_in_use (const struct lessee *h, uint64_t now_us);

/* End of all ranges that are held; 0: no range is held. */
uint64_t lessee_end (const struct lessee *h);

/* When the next request (or its repetition) should be sent; UINT64_MAX: never. */
uint64_t lessee_due (const struct lessee *h, uint64_t now_us, uint64_t now_ms);

/* Whether a request may be sent now together with others: it is due soon, and no request is under way. */
bool lessee_may_join (const struct lessee *h, uint64_t now_us, uint64_t now_ms);

/* Make the request that is due. It is a new one, or repeats the one that has no answer. */
void lessee_ask (struct lessee *h, uint64_t now_us, uint64_t now_ms, struct lease_want *want);

/* Process the answer to a request. Returns whether the range was accepted. Only the answer to the newest request is
 * accepted. Any answer drops ranges that were held for too long, so that a new lease does not revive them.
 */
bool lessee_take (struct lessee *h, uint64_t now_us, uint64_t now_ms, const struct lease_grant *grant);

/* lessee_missed (): the request got nothing, or was lost, and is sent again after a pause. lessee_hurry (): the parent
 * is connected again, and is asked immediately.
 */
void lessee_missed (struct lessee *h, uint64_t now_us, uint64_t now_ms);
void lessee_hurry (struct lessee *h, uint64_t now_us);

/* Report that CLOCK_BOOTTIME missed 'us' microseconds, so ranges and requests are that much older. */
void lessee_lost_time (struct lessee *h, uint64_t us);

/* Close for good. 'end_ms' is the first timestamp of which no id was made. The caller must have closed the generator.
 * Returns whether '*back' contains a range to return.
 */
bool lessee_close (struct lessee *h, uint64_t end_ms, struct lease_back *back);

#endif /* FLUID_LESSEE_H */
