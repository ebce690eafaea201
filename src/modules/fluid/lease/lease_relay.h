/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lease_relay.h - lease requests of a broker's children: combined on the way up, and answers split on the way down
 *
 * Urgent requests, of which there are many at the start of an instance, are combined, too: at most one message is sent
 * in lease_relay_pace_us (). So a broker receives at most one message of each child in that time.
 *
 * Each request that was added is answered once, with its part of an answer, or without a grant. After an answer without
 * a grant its senders ask again. A relay decides nothing about leases, and may lose or repeat requests without harm.
 *
 * 'us' are CLOCK_BOOTTIME microseconds.
 */
#ifndef FLUID_LEASE_RELAY_H
#define FLUID_LEASE_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "modules/fluid/lease/box.h"

#define LEASE_RELAY_LAST_TAG (UINT32_MAX - 1) /* tags are 1 ... this */
#define LEASE_RELAY_MAX_WANTS 32768           /* most waiting wants, over all requests; further requests are refused */

/* Called with a request's part of an answer. The request 'cookie' arrived at 'received_us'; it is 'now_us' now. 'grant'
 * is borrowed.
 */
typedef void (*lease_relay_reply_f) (void *arg, uint64_t now_us, void *cookie, uint64_t received_us,
                                     const struct grant *grant, size_t ngrant);

struct lease_relay {
    uint64_t lease_ms;
    lease_relay_reply_f reply;
    void *arg;

    TAILQ_HEAD (relay_items, lease_relay_item)
    items;                            /* requests in order of arrival: first sent ones, then waiting ones */
    struct lease_relay_item *waiting; /* the first request that waits; NULL: no request waits */
    size_t nwaiting;                  /* wants of waiting requests */
    size_t nwants;                    /* wants of all requests */
    uint64_t due_us;                  /* when to call lease_relay_flush (); UINT64_MAX: nothing waits */
    uint64_t open_us;                 /* send nothing before this time */
    uint32_t last_tag;                /* of the last combined request */

    struct want *back; /* waiting returns */
    size_t nback;
    bool odd_epoch; /* a child named an epoch */
    int64_t epoch_ms;

    struct lease_request out; /* the last combined request; owns its arrays */
};

void lease_relay_init (struct lease_relay *r, uint64_t lease_ms, lease_relay_reply_f reply, void *arg);
void lease_relay_fini (struct lease_relay *r); /* does not answer requests: call lease_relay_drop_old () first */

/* The least time between two combined requests. */
uint64_t lease_relay_pace_us (const struct lease_relay *r);

/* Accept a child's request. It waits up to a twelfth of a lease for other requests. If 'now_ms' (instance time, 0:
 * unknown) is within a third of a lease of the end of one sender's lease, the request waits only for the pace. Returns
 * 0. If the request is not accepted, the function returns -1 with errno ENOMEM or ENOBUFS, and the request is not
 * answered here.
 */
int lease_relay_add (struct lease_relay *r, uint64_t now_us, uint64_t now_ms, void *cookie,
                     const struct lease_request *req);

/* Accept a return (a want of size 0), to be sent before the next requests. It has no answer. Returns 0, or -1 with
 * errno ENOMEM.
 */
int lease_relay_add_return (struct lease_relay *r, const struct want *back);

/* Combine all waiting requests and returns, and 'own' (may be NULL), into one request in '*req', which is borrowed
 * until the next call. Returns its tag for lease_relay_answered (), or 0 if there is nothing to send or
 * memory is short.
 */
uint32_t lease_relay_flush (struct lease_relay *r, uint64_t now_us, const struct want *own, struct lease_request *req);

/* Report that the combined request 'tag' was answered, or was lost (ngrant 0), and answer its parts. An unknown tag is
 * ignored.
 */
void lease_relay_answered (struct lease_relay *r, uint64_t now_us, uint32_t tag, const struct grant *grant,
                           size_t ngrant);

/* Answer all requests that arrived before 'before_us' without a grant, whether they were sent or not. */
void lease_relay_drop_old (struct lease_relay *r, uint64_t now_us, uint64_t before_us);

/* Report that CLOCK_BOOTTIME jumped 'us' ahead, and is 'now_us' now. The arrival times of requests are moved by that
 * amount, because otherwise a child would take the jump for time that its request waited here.
 */
void lease_relay_jumped (struct lease_relay *r, uint64_t now_us, uint64_t us);

uint64_t lease_relay_oldest (const struct lease_relay *r); /* arrival of the oldest request; UINT64_MAX: no request */

#endif /* FLUID_LEASE_RELAY_H */
