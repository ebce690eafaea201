/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* borrower.h - the subleases that one rank holds: when it requests more, and how it returns them
 *
 * Each request contains an end, and is a promise that the rank uses nothing that it holds from that end on
 * (doc/design/shares.md). So renewal, change of size and return are one kind of message. A rank that requests another
 * size uses the old sublease for BORROWER_SWITCH_MS more. The answer should arrive within that time.
 *
 * 'us' are CLOCK_BOOTTIME microseconds, 'ms' instance milliseconds. doc/model/README.md explains the names of rules.
 */
#ifndef FLUID_BORROWER_H
#define FLUID_BORROWER_H

#include <stdbool.h>
#include <stdint.h>

#include "modules/fluid/lease/lease.h"

#define BORROWER_SWITCH_MS \
    50 /* how long the old sublease is used after another size was requested; at most an eighth of a term */

struct borrower {
    char incarnation[IDT_MSG_UUID_LEN + 1];
    uint64_t term_ms;
    struct area area[2]; /* the newest is the last */
    unsigned nareas;
    struct share_want want; /* the newest request; number 0: none yet */
    bool asking;            /* it was sent and not answered */
    bool moved;             /* the parent has changed since the last answer */
    bool refused;           /* the parent grants no subleases */
    uint64_t asked_us;      /* when the newest request was first sent */
    uint64_t ask_us;        /* do not send or repeat a request before this time */
    uint64_t backoff_us;
};

/* 'incarnation' is as in lessee_init (). 'term_ms' is how long subleases last. */
void borrower_init (struct borrower *b, const char *incarnation, uint64_t term_ms);

/* Find the newest area that contains 'now_ms' and may be used at 'now_us'. Returns false if there is no such area. */
bool borrower_area (const struct borrower *b, uint64_t now_us, uint64_t now_ms, struct area *area);

/* End of all subleases that are held; 0: no sublease is held. */
uint64_t borrower_end (const struct borrower *b);

/* When the next request for 'size' should be sent or repeated. If 'size' is 0: when borrower_close () should be called.
 * UINT64_MAX: never.
 */
uint64_t borrower_due (const struct borrower *b, uint64_t now_us, uint64_t now_ms, uint32_t size);

/* Make the request for 'size' (not 0) that is due. It is a new one, or repeats the one that has no answer. The caller
 * made no id at or above 'low_ms', and granted nothing to children there. From now on all subleases that are held end
 * where '*want' says.
 */
void borrower_ask (struct borrower *b, uint64_t now_us, uint64_t now_ms, uint32_t size, uint64_t low_ms,
                   struct share_want *want);

/* Return everything: all subleases end at 'low_ms', and are not used any longer. The rank's own borrowers may make ids
 * below 'low_ms' for 'left_ms' more. No answer is accepted until the next request. Returns whether the message must be
 * sent; sending it once is enough.
 */
bool borrower_close (struct borrower *b, uint64_t low_ms, uint64_t left_ms, struct share_want *want);

/* Process the answer to a request. Returns whether the grant was accepted. Only the answer to the newest request is
 * accepted, and only once.
 */
bool borrower_take (struct borrower *b, uint64_t now_us, uint64_t now_ms, const struct share *share);

/* borrower_missed (): nothing was granted. The request is repeated as if it had been lost, but not before 'retry_ms'.
 * borrower_refused (): this parent grants no subleases. borrower_moved (): the parent has changed, and is asked
 * immediately.
 */
void borrower_missed (struct borrower *b, uint64_t now_us, uint64_t retry_ms);
void borrower_refused (struct borrower *b);
void borrower_moved (struct borrower *b, uint64_t now_us);

/* Report that CLOCK_BOOTTIME missed 'us' microseconds, so subleases and requests are that much older. */
void borrower_lost_time (struct borrower *b, uint64_t us);

/* --- how many ids a rank needs, and the size of the sublease that it should request for that ----- */

/* Requests are counted in windows of a second. This is policy, and has no influence on uniqueness. The thresholds to
 * grow and to shrink differ by a factor of four, and after a change the size stays for DEMAND_TERM_US. So a varying
 * need does not change the size all the time.
 */

#define DEMAND_WINDOW_US 1000000
#define DEMAND_BURST_US 4000 /* ids that are requested within this time are one burst */
#define DEMAND_BEGIN 20 /* so many forwarded requests make a window busy; after two busy windows the rank borrows */
#define DEMAND_BEGIN_WINDOWS 2
#define DEMAND_IDLE 2 /* a window with fewer requests counts as idle */
#define DEMAND_IDLE_WINDOWS 4
#define DEMAND_CALM_WINDOWS 30  /* after so many windows without a burst that fills an eighth, the size is halved */
#define DEMAND_TERM_US 15000000 /* least time between changes of size, except to 0 and from 0 */

struct demand_window {
    uint64_t ids;
    uint64_t requests;
    uint64_t went_up; /* requests that were not served here */
    uint64_t burst;   /* the most ids in DEMAND_BURST_US */
};

struct demand {
    uint64_t window_us;          /* begin of the current window */
    struct demand_window window; /* the current one */
    struct demand_window last;   /* the one before */
    uint64_t burst_us;           /* begin of the current burst */
    uint64_t burst_ids;          /* ids of the current burst */
    uint32_t size;               /* size to request now; 0: no sublease */
    bool too_much;               /* the need did not fit into a sublease */
    uint64_t changed_us;         /* last change of the size */
    uint32_t busy, idle, calm;   /* consecutive windows of that kind */
};

void demand_init (struct demand *d, uint64_t now_us);

/* Count a request for 'ids'. 'went_up' says that the request is not served here. Requests of children count, too. */
void demand_note (struct demand *d, uint64_t now_us, uint32_t ids, bool went_up);

/* How many sequence numbers of each millisecond to borrow: 0, or a power of two from AREA_MIN_SIZE to AREA_MAX_SIZE. */
uint32_t demand_size (struct demand *d, uint64_t now_us);

/* When demand_size () may change without further requests; UINT64_MAX: never. */
uint64_t demand_due (const struct demand *d);

/* The largest burst of this window or the last, in ids for each millisecond. It is a lender's own need. */
uint32_t demand_peak (const struct demand *d);

#endif
