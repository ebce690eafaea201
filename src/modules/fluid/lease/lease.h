/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lease.h - the root's table of leases: disjoint ranges of time for each generator
 *
 * A lease is a range [lo, hi) of instance milliseconds in which only one incarnation of a broker may make ids with a
 * generator. All times are instance milliseconds. The rules are explained in doc/design/fluid.md, "Leases: no id
 * twice"; doc/model/README.md lists all names such as START_AT_LAST_END.
 */
#ifndef FLUID_LEASE_H
#define FLUID_LEASE_H

#include <idtree/fluid.h>
#include <idtree/msg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How long a range may be used after the range was first requested, measured with the requester's CLOCK_BOOTTIME. The
 * watermark relies on this limit (watermark.h). A range ends a lease after it was granted, so a quarter of a lease
 * remains for clocks that are behind, and for answers that are late.
 */
#define LEASE_USE_MS(lease_ms) ((lease_ms) + (lease_ms) / 4)

/* A time that another host measures as 'ms' takes at most this long by a clock here, because clocks differ in speed by
 * far less than 2 %.
 */
#define LEASE_AT_MOST_MS(ms) ((ms) + (ms) / 50 + 1)

struct range {
    uint64_t lo_ms; /* lo_ms <= t < hi_ms */
    uint64_t hi_ms;
};

/* --- messages between brokers about leases (fluid.lease) ----------------------------------------- */

/* A request for a lease of 'generator' by the broker whose random UUID is 'incarnation'. The broker already holds the
 * generator until 'have_hi_ms' (0: it holds nothing). 'number' grows with each new request of an incarnation.
 */
struct lease_want {
    uint32_t generator;
    char incarnation[IDT_MSG_UUID_LEN + 1];
    uint64_t number;
    uint64_t have_hi_ms;
    uint32_t size; /* number of ranks as the requester knows it, if it has lanes (lanes.h); 0: no lanes */
};

/* A return: the incarnation will never use its generator again, and made no id at 'end_ms' or later. Its borrowers
 * (lender.h) may make ids below 'end_ms' for 'left_ms' more.
 */
struct lease_back {
    uint32_t generator;
    char incarnation[IDT_MSG_UUID_LEN + 1];
    uint64_t end_ms;
    uint64_t left_ms;
};

/* The answer to a request: [lo_ms, hi_ms). */
struct lease_grant {
    uint32_t generator;
    char incarnation[IDT_MSG_UUID_LEN + 1];
    uint64_t number;
    uint64_t lo_ms;
    uint64_t hi_ms;
};

/* Arrays are borrowed by all functions that take these structs. Epochs are Unix milliseconds. */
struct lease_request {
    const struct lease_want *want;
    size_t nwant;
    const struct lease_back *back;
    size_t nback;
    bool has_epoch;
    int64_t epoch_ms;
};

/* Free the arrays of a request that owns them. */
void lease_request_fini (struct lease_request *req);

struct lease_answer {
    const struct lease_grant *grant; /* requests that got nothing have no entry */
    size_t ngrant;
    bool has_epoch;
    int64_t epoch_ms;
    uint64_t lease_ms; /* the root's fluid.lease, valid for all ranks; 0: not known */
    bool has_time;     /* the answer has the broker's time at the request and at the answer, and the error bound */
    uint64_t received_us;
    uint64_t sent_us;
    uint64_t bound_us;
};

/* --- what the root stores on its disk ------------------------------------------------------------- */

struct lease_record {
    uint64_t horizon_ms;   /* all ids were made below this time; a root that starts grants nothing below it */
    uint64_t watermark_ms; /* no id below this time will be made (watermark.h) */
    uint64_t settle_ms;    /* for this long after a root starts, ranges of earlier roots may be in use */
    uint64_t ahead_ms;     /* the clock debt if the next root begins at this horizon (clock.h) */
};

/* --- the table --------------------------------------------------------------------------------- */

/* The last range granted of one generator, and its holder. */
struct lease_holding {
    char incarnation[IDT_MSG_UUID_LEN + 1]; /* empty: there is no holder, or it returned the range */
    char gone[IDT_MSG_UUID_LEN + 1];        /* the last holder that returned a range; empty: none returned so far */
    uint64_t number;
    uint64_t from_ms; /* begin of the ranges granted in a row to this incarnation, without gap */
    uint64_t lo_ms;
    uint64_t hi_ms; /* end of the last range; 0: nothing was granted since the table was created */
};

struct lease_table {
    uint32_t ngenerators;
    uint64_t lease_ms;
    uint64_t reach_ms;  /* how far ahead of now the horizon is stored: two leases, unless the owner sets it */
    uint64_t base_ms;   /* grants begin at this time or later: first the horizon at the start, then the watermark */
    uint64_t stored_ms; /* the durable horizon */
    bool storing;
    bool fenced_by_foreign; /* grant nothing: a broker holds a lease that was granted from another statedir */
    bool closed;
    struct lease_holding holding[];
};

/* Create a table of generators 0 ... ngenerators - 1; free it with free (). 'horizon_ms' is the durable horizon: no
 * range that was ever granted ends later. Returns NULL with errno ENOMEM.
 */
struct lease_table *lease_table_create (uint32_t ngenerators, uint64_t lease_ms, uint64_t horizon_ms);

/* Returns true, with the horizon in '*horizon_ms', if a higher horizon must be stored. Then it does not return true
 * again until lease_stored () or lease_store_failed () is called. Call it before each grant, and regularly.
 */
bool lease_must_store (struct lease_table *t, uint64_t now_ms, uint64_t *horizon_ms);

/* The time from which lease_must_store () will return true. UINT64_MAX means either not before the store under way has
 * ended, or never, because the end of time is stored or the table is closed.
 */
uint64_t lease_next_store (const struct lease_table *t);

/* The table as bytes for lease_load () in the same process; lease_save_size () is their number. */
size_t lease_save_size (const struct lease_table *t);
void lease_save (const struct lease_table *t, void *data);

/* Load saved bytes into a new table for as many generators. Returns 0, or -1 if the bytes cannot be such a table. */
int lease_load (struct lease_table *t, const void *data, size_t size);

/* Grant the time from 'end_ms' on again, because no rank has used or will use the generator at 'end_ms' or later. This
 * is for the root's own generator, after a reload on the same broker.
 */
void lease_reopen (struct lease_table *t, uint32_t generator, uint64_t end_ms);

/* lease_stored (): 'horizon_ms' is durable now. lease_store_failed (): it could not be stored, and will be stored
 * later.
 */
void lease_stored (struct lease_table *t, uint64_t horizon_ms);
void lease_store_failed (struct lease_table *t);

/* Answer a request at 'now_ms'. Returns true with the range in '*grant'. Returns false if nothing is granted, because
 * the horizon is too low, the generator is already granted for a lease from now, the number is old, the incarnation has
 * returned its ranges, the generator does not exist, or the table is closed or fenced.
 */
bool lease_grant (struct lease_table *t, uint64_t now_ms, const struct lease_want *want, struct lease_grant *grant);

/* Take back the rest of the ranges that an incarnation was granted in a row, which it holds as one. The incarnation is
 * then closed for good: its earlier requests that arrive later get nothing. Returns whether the return was accepted.
 */
bool lease_give_back (struct lease_table *t, const struct lease_back *back);

/* Grant nothing below 'floor_ms' from now on, because it was published that no id will be made there. */
void lease_raise (struct lease_table *t, uint64_t floor_ms);

/* Grant nothing from now on, and return the horizon for a clean stop: no id at or above it was or will be made. All
 * reachable lessees must have closed before.
 */
uint64_t lease_close (struct lease_table *t);

/* --- a set of ids that one rank alone may make: of one generator, some sequence numbers, in a range of time --- */

/* An owner's area is its lease, with all sequence numbers; a borrower's is its sublease (doc/design/shares.md).
 * Sequence numbers are grouped into granules of 16: bit k of a set of granules stands for 16 k ... 16 k + 15
 * (fluid_gen_reserve_in ()).
 */

#define AREA_MIN_SIZE FLUID_GRANULE /* least size of a sublease in sequence numbers; each size is a power of two */
#define AREA_MAX_SIZE (FLUID_PER_MS / 2)

struct area {
    uint32_t generator;
    uint64_t granules;
    struct range range;
    uint64_t until_us; /* the holder uses the area until then, by its CLOCK_BOOTTIME */
};

/* --- messages between brokers about subleases (fluid.share) -------------------------------------- */

/* A request for a sublease. The broker 'incarnation' of 'rank' requests 'size' sequence numbers of each millisecond
 * from 'end_ms' on. With size 0 it requests none, and it and its own borrowers may make ids below 'end_ms' for
 * 'left_ms' more.
 *
 * The request is also a promise about all subleases that the broker got for requests with lower numbers, from any
 * lender. The broker has used nothing of these subleases from 'end_ms' on, and never will. It will accept no answer to
 * those requests.
 */
struct share_want {
    uint32_t rank;
    char incarnation[IDT_MSG_UUID_LEN + 1];
    uint64_t number; /* grows with each new request of an incarnation */
    uint32_t size;   /* a power of two, AREA_MIN_SIZE ... AREA_MAX_SIZE, or 0 */
    uint64_t end_ms;
    uint64_t left_ms;
};

/* The answer to a request. It contains all time that was granted with these granules, for this request or for earlier
 * ones, and that was not returned.
 */
struct share {
    char incarnation[IDT_MSG_UUID_LEN + 1];
    uint64_t number;
    uint32_t generator;
    uint64_t granules; /* one run, aligned to its length */
    struct range range;
    uint64_t use_ms; /* how long after the request was first sent it may be used */
};

/* The granules of 'size' sequence numbers from 'first' on; 0: this cannot be a sublease. */
uint64_t area_granules (uint32_t first, uint32_t size);

/* The inverse: returns the size and sets '*first'. Returns 0 if the granules cannot be a sublease. */
uint32_t area_run (uint64_t granules, uint32_t *first);

#endif
