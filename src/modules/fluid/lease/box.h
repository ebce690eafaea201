/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* box.h - boxes of ids, and the messages between brokers about them (fluid.lease)
 *
 * A box is a range of time x a generator x some of its sequence numbers. A lease is a box that only one holder may use.
 * A holder may grant parts of its box to others; it makes no id of what it granted until that is returned or over
 * (grants.h). When rank 0 starts, it holds everything above the horizon that its disk has (authority.h).
 * doc/design/fluid.md explains the rules, and doc/model/README.md lists their names, such as GRANT_ONCE.
 *
 * 'ms' are instance milliseconds. 'us' are CLOCK_BOOTTIME microseconds.
 */
#ifndef FLUID_BOX_H
#define FLUID_BOX_H

#include <idtree/fluid.h>
#include <idtree/msg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
    uint64_t lo_ms; /* lo_ms <= t < hi_ms */
    uint64_t hi_ms;
};

/* Sequence numbers are grouped into granules of 16: bit k of a set of granules stands for 16 k ... 16 k + 15
 * (fluid_gen_reserve_in ()). A rank with lanes (lanes.h) owns several generators; its box names the first of them.
 */
struct box {
    uint32_t generator;
    uint64_t granules;
    struct range range;
};

/* The size of a box is how many sequence numbers of each millisecond it has: a multiple of 16. */
#define BOX_MIN_SIZE FLUID_GRANULE
#define BOX_MAX_PART (FLUID_PER_MS - FLUID_GRANULE) /* the largest part that a rank grants */
#define BOX_WHOLE FLUID_PER_MS                      /* all of a generator; only rank 0 grants that */

/* Whether a part can have this size. */
bool box_is_part_size (uint64_t size);

/* The size of a box with these granules. */
uint32_t box_size (uint64_t granules);

/* The size to request if 'n' sequence numbers are needed: the next power of two, from BOX_MIN_SIZE to BOX_MAX_PART. So
 * a need that varies a little does not change the size.
 */
uint32_t box_size_for (uint64_t n);

/* A box, and the time until which its holder may use it. */
struct lease {
    struct box box;
    uint64_t until_us;
};

/* The values of fluid.lease. Times that follow from it are twelfths, of 1 ms at least. */
#define LEASE_MIN_MS 12
#define LEASE_MAX_MS (FLUID_TIMESTAMP_MAX / 4)

/* The longest use of a box that ends 'term_ms' after it was granted. The use begins when the box is first requested,
 * and is measured with the requester's CLOCK_BOOTTIME. The quarter is for clocks that are behind, and for answers that
 * are late. The watermark relies on this limit (watermark.h).
 */
#define LEASE_USE_MS(term_ms) ((term_ms) + (term_ms) / 4)

/* The longest time that a clock here shows while a clock of another host shows 'ms'. The speeds of clocks differ by far
 * less than 2 %.
 */
#define LEASE_AT_MOST_MS(ms) ((ms) + (ms) / 50 + 1)

/* --- messages ---------------------------------------------------------------------------------------- */

/* A request: 'rank' wants a box of 'size'. 'incarnation' is a random UUID of one life of its fluid module.
 *
 * The request is also a promise about all boxes that the incarnation was granted for requests with lower numbers, by
 * any granter. From 'end_ms' on it used nothing of them except the granules in 'kept', and never will. It accepts no
 * answer to those requests. So a renewal, a change of size and a return are one kind of message. If 'size' is 0,
 * nothing is wanted, and those to whom the rank granted parts may use what is below 'end_ms' for 'left_ms' more.
 */
struct want {
    uint32_t rank;
    char incarnation[IDT_MSG_UUID_LEN + 1];
    uint64_t number; /* grows with each new request of an incarnation */
    uint32_t size;   /* BOX_WHOLE: the rank's own generator; BOX_MIN_SIZE ... BOX_MAX_PART: of any generator; or 0 */
    uint64_t end_ms; /* 0: no promise */
    uint64_t kept;   /* not 0 if the rank returns a part of what it holds; only if 'size' is that of a part */
    uint64_t left_ms;
    uint32_t ranks; /* the number of ranks as the requester knows it, if it has lanes; 0: it has none */
};

/* A part of the answer: a box that is granted to the incarnation. It contains all time that was granted in a row with
 * these granules, and was not returned. A want for a part may get several boxes, which are used together.
 */
struct grant {
    uint32_t rank;
    char incarnation[IDT_MSG_UUID_LEN + 1];
    uint64_t number; /* of the request */
    struct box box;
    uint64_t use_ms; /* how long after the request was first sent the box may be used */
};

/* Requests for whole generators are combined on their way up to rank 0. A request for a part is alone in its message,
 * and the parent answers it. Functions that take these structs do not keep or free the arrays. Epochs are Unix
 * milliseconds.
 */
struct lease_request {
    const struct want *want;
    size_t nwant;
    bool is_part;
    bool has_epoch;
    int64_t epoch_ms;
};

/* Free the array of a request that owns it. */
void lease_request_fini (struct lease_request *req);

struct lease_answer {
    const struct grant *grant; /* requests that got nothing have no entry */
    size_t ngrant;
    uint32_t share;    /* the size that the holder of a part should have now; if it has more, it returns the rest */
    uint64_t retry_ms; /* the parent may grant more of a part after that time; 0: not known */
    bool has_epoch;
    int64_t epoch_ms;
    uint64_t lease_ms; /* the root's fluid.lease, valid for all ranks; 0: not known */
    bool has_time;     /* the answer has the broker's time at the request and at the answer, and the error bound */
    uint64_t received_us;
    uint64_t sent_us;
    uint64_t bound_us;
};

#endif /* FLUID_BOX_H */
