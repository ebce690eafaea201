/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lease_relay.h - lease requests of a broker's children: combined on their way up, split on their way down
 *
 * However many are urgent at once, as when an instance starts, a combined request goes at most once in
 * lease_relay_pace_us (): so a broker hears one message of each child in that time.
 *
 * Each request that is added is answered once: with its share of an answer, or with none (its senders ask
 * again).  Nothing here decides about leases: a relay may lose or repeat what it likes.
 *
 * 'us' are CLOCK_BOOTTIME microseconds.
 */
#ifndef FLUID_LEASE_RELAY_H
#define FLUID_LEASE_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "modules/fluid/lease/lease.h"

#define LEASE_RELAY_MAX_WANTS 32768 /* that wait here at most, over all requests; more are answered at once with none */

/* One share of an answer, for the request 'cookie' that came at 'received_us'; it is 'now_us' now.  'grant' is
 * borrowed.
 */
typedef void (*lease_relay_reply_f) (void *arg, uint64_t now_us, void *cookie, uint64_t received_us,
                                     const struct lease_grant *grant, size_t ngrant);

struct lease_relay {
    uint64_t lease_ms;
    lease_relay_reply_f reply;
    void *arg;

    TAILQ_HEAD (relay_items, lease_relay_item)
    items;                            /* requests, in order of arrival: those sent on, then those that wait */
    struct lease_relay_item *waiting; /* the first one that waits; NULL: none */
    size_t nwaiting;                  /* wants of those that wait */
    size_t nwants;                    /* of all */
    uint64_t due_us;                  /* when lease_relay_flush () should be called; UINT64_MAX: nothing waits */
    uint64_t open_us;                 /* nothing is sent before */
    uint32_t last_tag;

    struct lease_back *back; /* that wait */
    size_t nback;
    bool odd_epoch; /* some child named an epoch */
    int64_t epoch_ms;

    struct lease_request out; /* the last combined request: its arrays are ours */
};

void lease_relay_init (struct lease_relay *r, uint64_t lease_ms, lease_relay_reply_f reply, void *arg);
void lease_relay_fini (struct lease_relay *r); /* requests that wait are not answered: lease_relay_drop_old () first */

/* The least time between two combined requests. */
uint64_t lease_relay_pace_us (const struct lease_relay *r);

/* Take a child's request.  It waits up to a twelfth of a lease for others; only for the pace if 'now_ms' (instance
 * time, 0: unknown) is within a third of a lease of the end of what one of its senders holds.  Returns 0, or -1 with
 * errno ENOMEM or ENOBUFS: then it was not taken and is not answered here.
 */
int lease_relay_add (struct lease_relay *r, uint64_t now_us, uint64_t now_ms, void *cookie,
                     const struct lease_request *req);

/* Take what is to be given back with the next request.  Returns 0, or -1 with errno ENOMEM. */
int lease_relay_add_back (struct lease_relay *r, const struct lease_back *back, size_t nback);

/* Combine all that waits, and 'own' (may be NULL), to one request in '*req', borrowed until the next call.  Its
 * answer is told under the number returned (never 0).  Returns 0 where there is nothing to send, or no memory.
 */
uint32_t lease_relay_flush (struct lease_relay *r, uint64_t now_us, const struct lease_want *own,
                            struct lease_request *req);

/* The combined request 'tag' was answered (unknown tags are ignored) or lost (ngrant 0): answer its parts. */
void lease_relay_answered (struct lease_relay *r, uint64_t now_us, uint32_t tag, const struct lease_grant *grant,
                           size_t ngrant);

/* Answer with none all requests that came before 'before_us', sent on or not. */
void lease_relay_drop_old (struct lease_relay *r, uint64_t now_us, uint64_t before_us);

/* CLOCK_BOOTTIME jumped 'us' ahead, and is 'now_us': requests that wait came that much later than it says, or a child
 * would be told that its request waited here when it was on its way.
 */
void lease_relay_jumped (struct lease_relay *r, uint64_t now_us, uint64_t us);

uint64_t lease_relay_oldest (const struct lease_relay *r); /* when the oldest request came; UINT64_MAX: none */

#endif /* FLUID_LEASE_RELAY_H */
