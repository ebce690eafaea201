/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lender.h - what a rank has lent of what it holds
 *
 * The same for owners and for borrowers.  A lender is told what its rank holds ('whole', an area) whenever that
 * matters; it keeps what it lent of it, whatever is held later.  The rules have their names from doc/model/README.md.
 *
 * What lender_free () returned is out of date after lender_answer (), lender_forget () and where 'whole' is another.
 *
 * 'us' are CLOCK_BOOTTIME microseconds, 'ms' instance milliseconds.  CLOCK_BOOTTIME may have gone too far without
 * anybody knowing yet: that a loan is over is believed when two looks have shown it (lender_look ()), between which
 * lender_jumped () may be told.
 */
#ifndef FLUID_LENDER_H
#define FLUID_LENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modules/fluid/lease/area.h"

#define LENDER_MAX 128 /* loans that are kept: where there are as many nothing more is lent */

struct loan_out {
    uint32_t rank;
    char borrower[IDT_MSG_UUID_LEN + 1];
    uint64_t number;   /* of the borrower's newest want that was heard */
    uint64_t answered; /* of the newest that this answered */
    bool former;       /* the borrower has another one since */
    uint32_t generator;
    uint64_t granules;
    struct range range;
    uint64_t use_ms;    /* as answered */
    uint64_t until_us;  /* it is in use until then, unless it is heard that it is not */
    uint64_t lapsed_us; /* when a look found that over; 0: none did.  The next look may believe it */
    uint64_t low_ms;    /* no id is made of it below that any more */
};

struct lender {
    uint64_t term_ms;  /* a loan ends so long from now at most */
    uint64_t floor_ms; /* nothing below is made or lent any more, and loans that ended before may be forgotten */
    struct loan_out *loan;
    size_t count;
};

/* What the rank holds, and may lend of, now. */
struct lender_stock {
    const struct area *whole; /* NULL: nothing, for its time does not contain now */
    uint64_t from_ms; /* above all that it made: nothing below is lent, nor below a position (lender_forget ()) */
    uint32_t keep;    /* sequence numbers for each millisecond that it does not lend */
};

void lender_init (struct lender *l, uint64_t term_ms);
void lender_fini (struct lender *l);

/* Its table, as 'size' bytes for lender_restore () in the same process.  That takes them into a new lender; false: no
 * memory, or not that.
 */
const void *lender_table (const struct lender *l, size_t *size);
bool lender_restore (struct lender *l, uint64_t floor_ms, const void *table, size_t size);

/* The granules of 'whole' that were not lent at 'ms', and in '*until_ms' up to which millisecond that goes for (above
 * 'ms').
 */
uint64_t lender_free (const struct lender *l, const struct area *whole, uint64_t ms, uint64_t *until_ms);

/* The first granule above all that is lent at 'ms' or later, of any generator. */
uint32_t lender_top (const struct lender *l, uint64_t ms);

/* Hear a want, and answer it with what may be lent: a retry with the same, a want of a lower number with nothing.
 * Returns whether '*share' has an answer; what it says was set aside then.  false: nothing is wanted, is left, or is
 * remembered for want of memory.  It has been heard all the same.
 */
bool lender_answer (struct lender *l, uint64_t now_us, uint64_t now_ms, const struct lender_stock *stock,
                    const struct share_want *want, struct share *share);

/* How many sequence numbers who wants that was lent last; 0: none. */
uint32_t lender_lent (const struct lender *l, const struct share_want *want);

/* What time it is, now and then: what is over is believed to be the next time. */
void lender_look (struct lender *l, uint64_t now_us);

/* The rank makes nothing below 'floor_ms' any more, as it tells by its position, or will, and lends nothing there:
 * forget what ended before and is not in use.  It looks, too.
 */
void lender_forget (struct lender *l, uint64_t now_us, uint64_t floor_ms);

/* End of all loans, those that were forgotten, too.  Nothing below it may be given back to whom the rank has it from.
 */
uint64_t lender_end (const struct lender *l);

/* The lowest position of what is in use; UINT64_MAX: nothing is.  / For how long any of it may be in use yet. */
uint64_t lender_low_ms (const struct lender *l, uint64_t now_us);
uint64_t lender_left_ms (const struct lender *l, uint64_t now_us);

/* A borrower, and those it lent to, make nothing below 'low_ms' any more, whoever lent it.  Positions never go back. */
void lender_position (struct lender *l, uint32_t rank, const char *incarnation, uint64_t low_ms);

/* CLOCK_BOOTTIME went 'us' microseconds too far: what was lent is in use for that much longer. */
void lender_jumped (struct lender *l, uint64_t us);

/* How many borrowers have something now, or from soon on, and how many sequence numbers. */
size_t lender_count (const struct lender *l, uint64_t now_ms, uint32_t *per_ms);

/* The ranks that have something now, or from soon on, each once, LENDER_MAX at most.  Returns how many. */
size_t lender_ranks (const struct lender *l, uint64_t now_ms, uint32_t *ranks);

#endif /* FLUID_LENDER_H */
