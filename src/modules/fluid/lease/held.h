/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* held.h - what one rank holds: when it asks for more, and what it returns
 *
 * A rank that owns a generator holds all sequence numbers of it (a whole); rank 0 grants these. Any other rank may hold
 * a part of its parent's box. Both are requested in the same way; only the pauses differ.
 */
#ifndef FLUID_HELD_H
#define FLUID_HELD_H

#include "modules/fluid/lease/box.h"

#define HELD_MAX 8 /* boxes of a rank; an owner rank has at most two */

/* How long a rank still uses granules after it sent the request that returns them; at most an eighth of a term. The
 * answer should arrive within that time.
 */
#define HELD_SWITCH_MS 50

struct held {
    bool whole;
    uint64_t term_ms; /* how long boxes last */
    struct lease lease[HELD_MAX];
    unsigned count;
    struct want want;    /* the newest request; number 0: none yet */
    bool asking;         /* 'want' was sent and not answered */
    bool closed;         /* for good */
    bool moved;          /* the parent has changed since the last answer */
    uint32_t size;       /* of all boxes in the last answer together */
    uint32_t share;      /* the size that this rank should have now, by the last answer; 0: not known */
    bool refused;        /* the parent grants no parts */
    bool no_room;        /* a box in the last answer could not be held */
    uint64_t counted_us; /* until then the granter waits for the positions of this rank */
    uint64_t asked_us;   /* when the newest request was first sent */
    uint64_t again_us;   /* when a part is renewed */
    uint64_t ask_us;     /* do not send or repeat a request before this time */
    uint64_t backoff_us;
};

/* 'incarnation' is the broker's random UUID (36 characters), never used by any broker before. */
void held_init (struct held *h, uint32_t rank, const char *incarnation, bool whole, uint64_t term_ms);

/* Find what may be used at 'now_ms' and 'now_us': the boxes that contain it, joined. The result is valid until its end.
 * Returns false if there is none.
 */
bool held_find (const struct held *h, uint64_t now_us, uint64_t now_ms, struct lease *lease);

/* Whether the granter of a whole waits for positions of this rank. If not, the rank holds nothing that it may use now
 * or later.
 */
bool held_is_counted (const struct held *h, uint64_t now_us);

/* The end of all that is held; 0: nothing is held. */
uint64_t held_end (const struct held *h);

/* When the next request for 'size' should be sent or repeated. If 'size' is 0: when held_return () should be called.
 * UINT64_MAX: never.
 */
uint64_t held_due (const struct held *h, uint64_t now_us, uint64_t now_ms, uint32_t size);

/* Whether a request for a whole may be sent now together with others: it is due soon, and none is under way. */
bool held_may_join (const struct held *h, uint64_t now_us, uint64_t now_ms);

/* Make the request for 'size' (not 0) that is due. It is a new one, or repeats the one that has no answer. From now on
 * all that is held ends where '*want' says. For a part the caller made no id at or above 'low_ms', and granted nothing
 * there except granules in 'kept'. For a whole both are 0. If 'kept' is not 0, all other granules are returned; the
 * rank uses them for HELD_SWITCH_MS more.
 */
void held_ask (struct held *h, uint64_t now_us, uint64_t now_ms, uint32_t size, uint64_t low_ms, uint64_t kept,
               struct want *want);

/* Nothing is granted to a holder of HELD_MAX boxes but longer ones. If this one wants 'size' and should have more than
 * it has, returns what to keep so that its smallest box is returned, and a larger one can be granted. It is none of
 * which some is 'granted' on. Returns 0 if there is nothing to return.
 */
uint64_t held_make_room (const struct held *h, uint64_t now_ms, uint32_t size, uint64_t granted);

/* All granules that are held. */
uint64_t held_granules (const struct held *h);

/* Return everything: all that is held ends at 'low_ms', and this rank does not use it any longer. Those to whom the
 * rank granted parts may use what is below 'low_ms' for 'left_ms' more. No answer is accepted until the next request.
 * Returns whether the message must be sent; sending it once is enough.
 */
bool held_return (struct held *h, uint64_t low_ms, uint64_t left_ms, struct want *want);

/* Hold nothing, and ask for nothing, from now on. */
void held_close (struct held *h);

/* Process the answer to a request: 'n' boxes (1 or more), of which only those for this incarnation count. 'share' and
 * 'retry_ms' are as in struct lease_answer. Returns whether a box was accepted. Only the answer to the newest request
 * is accepted, and only once.
 */
bool held_take (struct held *h, uint64_t now_us, uint64_t now_ms, const struct grant *grant, size_t n, uint32_t share,
                uint64_t retry_ms);

/* held_missed (): nothing was granted, or the request was lost. It is repeated after 'retry_ms'; 0: after a pause.
 * held_refused (): this parent grants no parts. held_moved (): a parent is connected, and may be another one. It
 * is asked for a part immediately. held_hurry (): more may be granted now.
 */
void held_missed (struct held *h, uint64_t now_us, uint64_t now_ms, uint64_t retry_ms);
void held_refused (struct held *h);
void held_moved (struct held *h, uint64_t now_us);
void held_hurry (struct held *h, uint64_t now_us);

/* Report that CLOCK_BOOTTIME missed 'us' microseconds, so boxes and requests are that much older. */
void held_lost_time (struct held *h, uint64_t us);

#endif /* FLUID_HELD_H */
