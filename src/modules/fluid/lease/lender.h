/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lender.h - the subleases that a rank has granted
 *
 * Owner ranks and borrowers use it alike. The caller passes in the area that the rank holds at the moment ('whole').
 * The lender keeps what was granted of that area, even if the rank later holds another area. doc/model/README.md
 * explains the names of rules.
 *
 * The result of lender_free () is valid until lender_answer () or lender_forget () is called, or 'whole' is another
 * area.
 *
 * 'us' are CLOCK_BOOTTIME microseconds, 'ms' instance milliseconds. CLOCK_BOOTTIME may have jumped ahead, which is not
 * known immediately. So a sublease counts as over only when two readings of the time have shown that (lender_look ()).
 * lender_jumped () may be called between these readings.
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
    uint64_t number;   /* of the borrower's newest request that has arrived */
    uint64_t answered; /* of the newest request that this entry answered */
    bool former;       /* the borrower has a newer sublease */
    uint32_t generator;
    uint64_t granules;
    struct range range;
    uint64_t use_ms;    /* the time of use in the answer */
    uint64_t until_us;  /* in use until then, unless the borrower reports an earlier end */
    uint64_t lapsed_us; /* first reading that found the sublease over; 0: none. The next reading may count it as over */
    uint64_t low_ms;    /* the borrower makes no further id of this sublease below this time */
};

struct lender {
    uint64_t term_ms;  /* a sublease ends at most this long from now */
    uint64_t floor_ms; /* nothing below this time is made or granted; subleases that ended below it may be forgotten */
    struct loan_out *loan;
    size_t count;
};

/* The area that the rank holds now, and may grant parts of. */
struct lender_stock {
    const struct area *whole; /* NULL: the rank holds no area that contains now */
    uint64_t from_ms;         /* above all ids that the rank made: nothing below it is granted */
    uint32_t keep;            /* sequence numbers for each millisecond that are not granted */
};

void lender_init (struct lender *l, uint64_t term_ms);
void lender_fini (struct lender *l);

/* lender_table () returns the table as 'size' bytes for lender_restore () in the same process. lender_restore () loads
 * these bytes into a new lender. It returns false if memory is short or the size is invalid.
 */
const void *lender_table (const struct lender *l, size_t *size);
bool lender_restore (struct lender *l, uint64_t floor_ms, const void *table, size_t size);

/* Return the granules of 'whole' that are not subleased at 'ms'. '*until_ms' is the millisecond (above 'ms') up to
 * which the result is valid.
 */
uint64_t lender_free (const struct lender *l, const struct area *whole, uint64_t ms, uint64_t *until_ms);

/* The first granule above all that is subleased at 'ms' or later, of any generator. */
uint32_t lender_top (const struct lender *l, uint64_t ms);

/* Process a request, and answer it if something can be granted. Returns true if '*share' contains the answer; that
 * sublease is then in the table. A retry gets the same answer. A request with a lower number than an earlier one gets
 * no answer. Returns false, too, if nothing is requested, nothing is left, or memory is short. The promise in such a
 * request counts all the same.
 */
bool lender_answer (struct lender *l, uint64_t now_us, uint64_t now_ms, const struct lender_stock *stock,
                    const struct share_want *want, struct share *share);

/* The size of the last sublease of this requester; 0: it has none. */
uint32_t lender_lent (const struct lender *l, const struct share_want *want);

/* Take note of the time; call it regularly. A sublease whose end has passed counts as over at the next call. */
void lender_look (struct lender *l, uint64_t now_us);

/* Forget subleases that ended below 'floor_ms' and are not in use. 'floor_ms' is the position that the rank reports:
 * the rank makes and grants nothing below it any longer. Includes lender_look ().
 */
void lender_forget (struct lender *l, uint64_t now_us, uint64_t floor_ms);

/* The end of all subleases, including forgotten ones. The rank must not return anything below that end. */
uint64_t lender_end (const struct lender *l);

/* lender_low_ms () is the lowest position of subleases in use; UINT64_MAX: no sublease is in use. lender_left_ms () is
 * for how long any sublease may still be in use.
 */
uint64_t lender_low_ms (const struct lender *l, uint64_t now_us);
uint64_t lender_left_ms (const struct lender *l, uint64_t now_us);

/* Report that a borrower and its own borrowers make nothing below 'low_ms' any longer, in subleases of any lender.
 * Positions never decrease.
 */
void lender_position (struct lender *l, uint32_t rank, const char *incarnation, uint64_t low_ms);

/* Report that CLOCK_BOOTTIME went 'us' microseconds too far, so subleases are in use for that much longer. */
void lender_jumped (struct lender *l, uint64_t us);

/* The number of borrowers whose sublease is not over, and how many sequence numbers they have. */
size_t lender_count (const struct lender *l, uint64_t now_ms, uint32_t *per_ms);

/* The ranks whose sublease is not over, each once, at most LENDER_MAX. Returns their number. */
size_t lender_ranks (const struct lender *l, uint64_t now_ms, uint32_t *ranks);

#endif /* FLUID_LENDER_H */
