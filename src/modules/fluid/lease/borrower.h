/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* borrower.h - what one rank has borrowed: what it holds, when it asks for more, how it gives back
 *
 * A want tells an end, and is a promise: nothing that is held is used from there on (doc/design/shares.md).  So
 * renewal, another size and return are one message, and a rank that asks for another size goes on with the old one for
 * BORROWER_SWITCH_MS, by when the answer should have come.
 *
 * 'us' are CLOCK_BOOTTIME microseconds, 'ms' instance milliseconds.  The rules have their names from
 * doc/model/README.md.
 */
#ifndef FLUID_BORROWER_H
#define FLUID_BORROWER_H

#include <stdbool.h>
#include <stdint.h>

#include "modules/fluid/lease/area.h"

#define BORROWER_SWITCH_MS \
    50 /* what is held is used for so long, or an eighth of a term, after another size was asked for */

struct borrower {
    char incarnation[IDT_MSG_UUID_LEN + 1];
    uint64_t term_ms;
    struct area area[2]; /* what was taken last is the last */
    unsigned nareas;
    struct share_want want; /* the newest; number 0: none yet */
    bool asking;            /* it was sent and not answered */
    bool moved;             /* there is another parent since the last answer */
    bool refused;           /* the parent lends to nobody */
    uint64_t asked_us;      /* when the newest want was first sent */
    uint64_t ask_us;        /* not before this is a want sent, or sent again */
    uint64_t backoff_us;
};

/* 'incarnation': as lessee_init ().  'term_ms': how long loans last. */
void borrower_init (struct borrower *b, const char *incarnation, uint64_t term_ms);

/* The area that contains 'now_ms', and may be used at 'now_us': the newest.  Returns false where there is none. */
bool borrower_area (const struct borrower *b, uint64_t now_us, uint64_t now_ms, struct area *area);

/* End of all that is held; 0: nothing. */
uint64_t borrower_end (const struct borrower *b);

/* When the next want for 'size' should be sent, or sent again (0: when borrower_close () should be called); UINT64_MAX:
 * never.
 */
uint64_t borrower_due (const struct borrower *b, uint64_t now_us, uint64_t now_ms, uint32_t size);

/* Make the want for 'size' (not 0) that is due: a new one, or the one that was not answered again.  'low_ms': nothing
 * that was made, or lent on, is at or above that.  What is held ends where '*want' says, from now on.
 */
void borrower_ask (struct borrower *b, uint64_t now_us, uint64_t now_ms, uint32_t size, uint64_t low_ms,
                   struct share_want *want);

/* Give all back: what is held ends at 'low_ms', and is not used.  Those it was lent to may make ids below for 'left_ms'
 * yet.  No answer is taken until there is a new want.  Returns whether the want need be sent: once will do.
 */
bool borrower_close (struct borrower *b, uint64_t low_ms, uint64_t left_ms, struct share_want *want);

/* The want was answered.  Returns whether the share was taken: only the answer to the newest want is, once. */
bool borrower_take (struct borrower *b, uint64_t now_us, uint64_t now_ms, const struct share *share);

/* The want got nothing: it is sent again as if it had been lost, but not before 'retry_ms'. / This parent lends
 * nothing. / There is another one: ask it at once.
 */
void borrower_missed (struct borrower *b, uint64_t now_us, uint64_t retry_ms);
void borrower_refused (struct borrower *b);
void borrower_moved (struct borrower *b, uint64_t now_us);

/* CLOCK_BOOTTIME missed 'us' microseconds: all that was taken, and all that was asked for, is that much older. */
void borrower_lost_time (struct borrower *b, uint64_t us);

#endif /* FLUID_BORROWER_H */
