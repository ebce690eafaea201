/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lessee.h - one broker's claim to its generator: what it holds, when it asks for more
 *
 * 'us' are CLOCK_BOOTTIME microseconds, 'ms' instance milliseconds (0 where the time is not known yet).
 */
#ifndef FLUID_HOLDER_H
#define FLUID_HOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "modules/fluid/lease/lease.h"

struct range {
    uint64_t lo_ms; /* lo_ms <= t < hi_ms */
    uint64_t hi_ms;
};

struct holder {
    uint32_t generator;
    char incarnation[IDT_MSG_UUID_LEN + 1];
    uint64_t lease_ms;
    struct range range[2]; /* in order, not touching: touching ones are made one */
    unsigned nranges;
    uint64_t top_ms;      /* end of all ranges ever taken */
    uint64_t until_us;    /* nothing that is held is used from then on (LEASE_USE_MS ()) */
    uint64_t asked_us;    /* when the newest want was first sent */
    uint64_t number;      /* of the newest want */
    bool asking;          /* it was sent and not answered */
    bool closed;          /* for good */
    uint64_t ask_us;      /* not before this is a want sent, or sent again */
    uint64_t backoff_us;
};

/* 'incarnation': the broker's random UUID (36 characters), never used by any broker before. */
void holder_init (struct holder *h, uint32_t generator, const char *incarnation, uint64_t lease_ms);

/* The range that contains 'now_ms', and may be used at 'now_us'.  Returns false where none does. */
bool holder_range (const struct holder *h, uint64_t now_us, uint64_t now_ms, struct range *range);

/* Whether there is, or will be, anything that it may use: else it makes no id before its next want is answered. */
bool holder_in_use (const struct holder *h, uint64_t now_us);

/* End of all that is held; 0: nothing. */
uint64_t holder_end (const struct holder *h);

/* When the next want (or its repetition) should be sent; UINT64_MAX: never. */
uint64_t holder_due (const struct holder *h, uint64_t now_us, uint64_t now_ms);

/* Whether it would do to send a want now, along with others: soon due, and none is under way. */
bool holder_may_join (const struct holder *h, uint64_t now_us, uint64_t now_ms);

/* Make the want that is due: a new one, or the one that was not answered again. */
void holder_ask (struct holder *h, uint64_t now_us, uint64_t now_ms, struct lease_want *want);

/* The want was answered.  Returns whether the range was taken: only the answer to the newest want is. */
bool holder_take (struct holder *h, uint64_t now_us, uint64_t now_ms, const struct lease_grant *grant);

/* The want got nothing, or was lost on the way: ask again after a pause. / The parent is back: ask at once. */
void holder_missed (struct holder *h, uint64_t now_us);
void holder_hurry (struct holder *h, uint64_t now_us);

/* CLOCK_BOOTTIME missed 'us' microseconds: all that was taken, and all that was asked for, is that much older. */
void holder_lost_time (struct holder *h, uint64_t us);

/* Close for good.  'end_ms' is the first timestamp that was not and, the generator being closed already, will not
 * be used.  Returns whether there is something to give back, and what.
 */
bool holder_close (struct holder *h, uint64_t end_ms, struct lease_back *back);

#endif /* FLUID_HOLDER_H */
