/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lessee.h - one broker's claim to its generator: what it holds, when it asks for more
 *
 * 'us' are CLOCK_BOOTTIME microseconds, 'ms' instance milliseconds (0 where the time is not known yet).
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
    struct range range[2]; /* in order, not touching: touching ones are made one */
    unsigned nranges;
    uint64_t top_ms;   /* end of all ranges ever taken */
    uint64_t until_us; /* nothing that is held is used from then on (LEASE_USE_MS ()) */
    uint64_t asked_us; /* when the newest want was first sent */
    uint64_t number;   /* of the newest want */
    bool asking;       /* it was sent and not answered */
    bool closed;       /* for good */
    uint64_t ask_us;   /* not before this is a want sent, or sent again */
    uint64_t backoff_us;
};

/* 'incarnation': the broker's random UUID (36 characters), never used by any broker before. */
void lessee_init (struct lessee *h, uint32_t generator, const char *incarnation, uint64_t lease_ms);

/* The range that contains 'now_ms', and may be used at 'now_us'.  Returns false where none does. */
bool lessee_range (const struct lessee *h, uint64_t now_us, uint64_t now_ms, struct range *range);

/* Whether there is, or will be, anything that it may use: else it makes no id before its next want is answered. */
bool lessee_in_use (const struct lessee *h, uint64_t now_us);

/* End of all that is held; 0: nothing. */
uint64_t lessee_end (const struct lessee *h);

/* When the next want (or its repetition) should be sent; UINT64_MAX: never. */
uint64_t lessee_due (const struct lessee *h, uint64_t now_us, uint64_t now_ms);

/* Whether it would do to send a want now, along with others: soon due, and none is under way. */
bool lessee_may_join (const struct lessee *h, uint64_t now_us, uint64_t now_ms);

/* Make the want that is due: a new one, or the one that was not answered again. */
void lessee_ask (struct lessee *h, uint64_t now_us, uint64_t now_ms, struct lease_want *want);

/* The want was answered.  Returns whether the range was taken: only the answer to the newest want is.  What was held
 * for too long before is gone, whatever the answer: a new lease does not bring it back.
 */
bool lessee_take (struct lessee *h, uint64_t now_us, uint64_t now_ms, const struct lease_grant *grant);

/* The want got nothing, or was lost on the way: ask again after a pause. / The parent is back: ask at once. */
void lessee_missed (struct lessee *h, uint64_t now_us, uint64_t now_ms);
void lessee_hurry (struct lessee *h, uint64_t now_us);

/* CLOCK_BOOTTIME missed 'us' microseconds: all that was taken, and all that was asked for, is that much older. */
void lessee_lost_time (struct lessee *h, uint64_t us);

/* Close for good.  'end_ms' is the first timestamp that was not and, the generator being closed already, will not
 * be used.  Returns whether there is something to give back, and what.
 */
bool lessee_close (struct lessee *h, uint64_t end_ms, struct lease_back *back);

#endif /* FLUID_LESSEE_H */
