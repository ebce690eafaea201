/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* grants.h - what a granter has granted: to whom, until when
 *
 * There are three kinds of such tables. Rank 0's authority grants whole generators, up to the stored horizon. Each rank
 * grants parts of the box that it holds to its children. And each owner rank grants time to modules of its broker, for
 * ids of another kind; that table is like one of a single generator. The caller passes in the box that the granter
 * holds at the moment ('whole'). The table keeps what was granted of it, even if the granter later holds another box.
 *
 * The result of grants_free () is valid until grants_answer () or grants_forget () is called, or 'whole' is another
 * box.
 *
 * CLOCK_BOOTTIME may have jumped ahead, which is not known immediately. So the use of a grant counts as over only when
 * two readings of the time have shown that (grants_look ()). grants_jumped () may be called between these readings.
 */
#ifndef FLUID_GRANTS_H
#define FLUID_GRANTS_H

#include "modules/fluid/lease/box.h"

#define GRANTS_MAX 256 /* entries of a table of parts; when it is full, no further box is granted */
#define GRANTS_EACH 8  /* boxes of one holder */

struct granted {
    uint32_t rank;
    char incarnation[IDT_MSG_UUID_LEN + 1]; /* of the holder */
    uint64_t number;                        /* of the holder's newest request that has arrived */
    uint64_t answered;                      /* of the newest request that this entry answered */
    uint32_t wanted;                        /* the size in the newest request */
    bool returned;                          /* the holder returned the end of this box, so it is not extended */
    struct box box;                         /* an empty range: nothing could be granted, or all was returned */
    uint64_t use_ms;                        /* the time of use in the answer */
    uint64_t until_us;                      /* in use until then, unless the holder's position is past its end before */
    uint64_t lapsed_us; /* first reading that found the use over; 0: none. It is over if a later reading agrees */
    uint64_t low_ms;    /* the holder makes no further id of this box below this time */
    uint64_t over_us;   /* since then the holder keeps more than its share; 0: it does not */
};

struct grants {
    uint64_t term_ms;    /* a box ends at most this long from now */
    uint64_t floor_ms;   /* nothing is granted below; entries that ended below may be forgotten */
    uint32_t generators; /* whole generators 0 ... generators - 1 are granted, and each has an entry; 0: parts are */
    struct granted *entry;
    size_t count;
};

/* What the granter holds now, and may grant parts of. */
struct grants_stock {
    const struct box *whole; /* NULL: it holds no box that contains now */
    uint64_t until_us;       /* it may use the box until then */
    uint64_t from_ms;        /* above all ids that it made: nothing below it is granted */
    uint32_t keep;           /* sequence numbers of each millisecond that are not granted to parts */
};

/* Initialize a table of parts, or of 'generators' whole generators (not 0). Returns 0, or -1 with errno ENOMEM. */
int grants_init (struct grants *g, uint64_t term_ms, uint32_t generators);
void grants_fini (struct grants *g);

/* grants_table () returns the entries as 'size' bytes for grants_restore () in the same process. It loads these bytes
 * into a new table. It returns false if memory is short or the size is invalid.
 */
const void *grants_table (const struct grants *g, size_t *size);
bool grants_restore (struct grants *g, uint64_t floor_ms, const void *table, size_t size);

/* --- what is free -------------------------------------------------------------------------------------- */

/* The granules of 'whole' that are not granted at 'ms'. '*until_ms' is the millisecond (above 'ms') up to which the
 * result is valid.
 */
uint64_t grants_free (const struct grants *g, const struct box *whole, uint64_t ms, uint64_t *until_ms);

/* grants_granules () is all granules that are granted at 'ms' or later, of any generator. grants_top () is the first
 * granule above them.
 */
uint64_t grants_granules (const struct grants *g, uint64_t ms);
uint32_t grants_top (const struct grants *g, uint64_t ms);

/* --- requests ------------------------------------------------------------------------------------------ */

/* Process a request, and answer it if something can be granted. Returns the number of boxes in 'grant', which are then
 * in the table. A retry gets the same answer. Returns 0 if a request with a higher number came before, and does
 * nothing. Returns 0, too, if nothing is wanted, nothing is left, or memory is short; then the promise in the request
 * counts all the same.
 *
 * A want for a part extends the boxes that the holder has. If it has less than grants_share () says, it gets a further
 * box, as far as something is free.
 */
size_t grants_answer (struct grants *g, uint64_t now_us, uint64_t now_ms, const struct grants_stock *stock,
                      const struct want *want, struct grant grant[GRANTS_EACH]);

/* The size that a requester of a part should have, of what the granter does not keep. If there is not enough for all
 * that is wanted, no holder should have more than a common limit; the lowest ranks may have one granule more.
 */
uint32_t grants_share (const struct grants *g, uint64_t now_us, const struct grants_stock *stock,
                       const struct want *want);

/* The sum of what the holders of parts want. */
uint32_t grants_wanted (const struct grants *g, uint64_t now_us);

/* Grant the time from 'end_ms' on again, because the holder of 'generator' used nothing there. */
void grants_reopen (struct grants *g, uint32_t generator, uint64_t end_ms);

/* --- time ---------------------------------------------------------------------------------------------- */

/* Grant nothing below 'floor_ms' from now on. */
void grants_raise (struct grants *g, uint64_t floor_ms);

/* Take note of the time; call it regularly. A use whose end has passed counts as over at the next call. */
void grants_look (struct grants *g, uint64_t now_us);

/* Raise the floor, and forget parts that ended below it and are not in use. 'floor_ms' is the position that the rank
 * reports: it makes and grants nothing below it any longer. Includes grants_look ().
 */
void grants_forget (struct grants *g, uint64_t now_us, uint64_t floor_ms);

/* Report that CLOCK_BOOTTIME went 'us' microseconds too far. Boxes are in use for that much longer. */
void grants_jumped (struct grants *g, uint64_t us);

/* Report that a holder, and those to whom it granted parts, make nothing below 'low_ms' any longer, in boxes of any
 * granter. Positions never decrease.
 */
void grants_position (struct grants *g, uint32_t rank, const char *incarnation, uint64_t low_ms);

/* The end of all boxes that were granted, including forgotten ones. The granter must not return anything below it. */
uint64_t grants_end (const struct grants *g);

/* grants_low_ms () is the lowest position of boxes in use; UINT64_MAX: none is in use. grants_left_ms () is for how
 * long any of them may still be in use.
 */
uint64_t grants_low_ms (const struct grants *g, uint64_t now_us);
uint64_t grants_left_ms (const struct grants *g, uint64_t now_us);

/* --- status -------------------------------------------------------------------------------------------- */

/* The number of holders of boxes whose time is not over, and how many sequence numbers these boxes have. */
size_t grants_count (const struct grants *g, uint64_t now_ms, uint32_t *per_ms);

/* The ranks that hold a box whose time is not over, each once, at most GRANTS_MAX. Returns their number. */
size_t grants_ranks (const struct grants *g, uint64_t now_ms, uint32_t *ranks);

#endif /* FLUID_GRANTS_H */
