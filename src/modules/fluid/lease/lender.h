/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lender.h - the subleases that a rank has granted
 *
 * Owner ranks and borrowers use it alike. The caller passes in what the rank holds at the moment ('whole', an area);
 * the lender keeps what was granted of it, also if the rank later holds something else. doc/model/README.md explains
 * the names of rules.
 *
 * The result of lender_free () is out of date after lender_answer () and lender_forget (), and if 'whole' is another
 * area.
 *
 * 'us' are CLOCK_BOOTTIME microseconds, 'ms' instance milliseconds. CLOCK_BOOTTIME may have jumped ahead, which is not
 * known immediately. So a sublease counts as over only when two readings of the time have shown that (lender_look ());
 * lender_jumped () may be called between them.
 */
#ifndef FLUID_LENDER_H
#define FLUID_LENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modules/fluid/lease/lease.h"

#define LENDER_MAX 128 /* entries of the table; when it is full, nothing is granted */

struct loan_out {
    uint32_t rank;
    char borrower[IDT_MSG_UUID_LEN + 1];
    uint64_t number;   /* of the borrower's newest request that arrived */
    uint64_t answered; /* of the newest request that this entry answered */
    bool former;       /* the borrower has a newer sublease */
    uint32_t generator;
    uint64_t granules;
    struct range range;
    uint64_t use_ms;    /* as in the answer */
    uint64_t until_us;  /* in use until then, unless the borrower reports an earlier end */
    uint64_t lapsed_us; /* first reading that found it over; 0: none. The next reading may count it as over */
    uint64_t low_ms;    /* the borrower makes no further id of it below that */
};

struct lender {
    uint64_t term_ms;  /* a sublease ends at most so long from now */
    uint64_t floor_ms; /* nothing below it is made or granted; subleases that ended below may be forgotten */
    struct loan_out *loan;
    size_t count;
};

/* The area that the rank holds now, and may grant parts of. */
struct lender_stock {
    const struct area *whole; /* NULL: nothing, because its range does not contain now */
    uint64_t from_ms;         /* above all ids that the rank made: nothing below it is granted */
    uint32_t keep;            /* sequence numbers for each millisecond that are not granted */
};

void lender_init (struct lender *l, uint64_t term_ms);
void lender_fini (struct lender *l);

/* Return the table as 'size' bytes for lender_restore () in the same process. / Load it into a new lender; returns
 * false if memory is short or the size is invalid.
 */
const void *lender_table (const struct lender *l, size_t *size);
bool lender_restore (struct lender *l, uint64_t floor_ms, const void *table, size_t size);

/* Return the granules of 'whole' that are not subleased at 'ms'. '*until_ms' is the millisecond (above 'ms') up to
 * which the result is valid.
 */
uint64_t lender_free (const struct lender *l, const struct area *whole, uint64_t ms, uint64_t *until_ms);

/* The first granule above all that is subleased at 'ms' or later, of any generator. */
uint32_t lender_top (const struct lender *l, uint64_t ms);

/* Process a request, and answer it if something can be granted. A retry gets the same answer, a request with a lower
 * number nothing. Returns whether '*share' contains an answer; then that sublease is in the table. Returns false if
 * nothing is requested, nothing is left, or memory is short; the promise in the request counts all the same.
 */
bool lender_answer (struct lender *l, uint64_t now_us, uint64_t now_ms, const struct lender_stock *stock,
                    const struct share_want *want, struct share *share);

/* The size of the last sublease of this requester; 0: it has none. */
uint32_t lender_lent (const struct lender *l, const struct share_want *want);

/* Take note of the time, regularly. A sublease whose end has passed counts as over at the next call. */
void lender_look (struct lender *l, uint64_t now_us);

/* The rank makes and grants nothing below 'floor_ms' any longer, as its position reports. Forget subleases that ended
 * below it and are not in use. Includes lender_look ().
 */
void lender_forget (struct lender *l, uint64_t now_us, uint64_t floor_ms);

/* The end of all subleases, including forgotten ones. The rank must not return anything below it. */
uint64_t lender_end (const struct lender *l);

/* The lowest position of subleases in use; UINT64_MAX: no sublease is in use. / For how long any of them may still be
 * in use.
 */
uint64_t lender_low_ms (const struct lender *l, uint64_t now_us);
uint64_t lender_left_ms (const struct lender *l, uint64_t now_us);

/* A borrower and its own borrowers make nothing below 'low_ms' any longer, in subleases of any lender. Positions never
 * decrease.
 */
void lender_position (struct lender *l, uint32_t rank, const char *incarnation, uint64_t low_ms);

/* CLOCK_BOOTTIME went 'us' microseconds too far: subleases are in use for that much longer. */
void lender_jumped (struct lender *l, uint64_t us);

/* The number of borrowers whose sublease is not over, and how many sequence numbers they have. */
size_t lender_count (const struct lender *l, uint64_t now_ms, uint32_t *per_ms);

/* The ranks whose sublease is not over, each once, at most LENDER_MAX. Returns how many. */
size_t lender_ranks (const struct lender *l, uint64_t now_ms, uint32_t *ranks);

#endif /* FLUID_LENDER_H */
