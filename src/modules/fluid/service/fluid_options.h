/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fluid_options.h - the fluid.* attributes of a broker, and the epoch and record that rank 0 starts with
 *
 *   fluid.max-generators   ranks below this number own a generator, 1 ... 16384    16368 (the last 16 are kept free)
 *   fluid.lanes            generators of each rank: rank, rank + size, ..., all below max-generators    1
 *   fluid.lease            length of a lease, 100ms ... 1h                  60s
 *   fluid.max-backlog      a client is refused if its ids would take longer than this to make    2s
 *   fluid.max-waiting      how many requests of clients may wait            8192
 *   fluid.forward-timeout  a request that no rank can serve fails after this time  5s; with root.store 15s
 *   fluid.share            ranks without a generator hold a part of their parent's: auto (by need); 16, 32 ... 1008
 *                          (always, at least so many sequence numbers); or off       auto
 *   fluid.share-keep       sequence numbers of 1024 that an owner rank keeps at least     128
 *   fluid.attach           users who may get the page by which processes make ids (page.h): owner; all (who
 *                          may connect to the broker); or off               owner
 *   fluid.epoch            date that the time of ids counts from            the first start of the instance
 *   fluid.recover-horizon  a date, or an id, above all ids that were made: a damaged or lost file in statedir is
 *                          replaced by one with that horizon                none
 *   fluid.max-jump         rank 0 refuses to start if the wall clock is before the epoch, or more than this ahead of
 *                          all ids that were made; 0: rank 0 accepts any clock    400d
 */
#ifndef FLUID_FLUID_OPTIONS_H
#define FLUID_FLUID_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/handle.h>

#include "modules/fluid/node/node.h"
#include "modules/fluid/service/horizon_store.h"

struct fluid_options {
    struct node_config node;
    bool has_epoch;
    int64_t epoch_ms;
    const char *recover;       /* borrowed; NULL: not given */
    uint64_t max_jump_ms;      /* 0: no limit */
    struct module_place place; /* rank 0 only */
};

/* Read the attributes of the handle's broker. Returns 0, or -1 with errno set (EINVAL: an invalid value) and a sentence
 * in 'errp'.
 */
int fluid_options_read (idt_t *h, struct fluid_options *o, idt_error_t *errp);

/* The wall clock with which rank 0 starts. 'own_us' is that of its host. A rank 0 that takes over, and whose host's
 * clock is ahead, must not carry the whole instance ahead. So it starts with the clock of the place if that is behind
 * its own.
 */
int64_t fluid_options_wall_us (const struct horizon_store_content *content, int64_t own_us);

/* Determine the epoch at rank 0. It is the epoch of 'content'. For a new instance it is fluid.epoch or, if that is not
 * set, now. Returns 0 with '*epoch_ms' set, or -1 with errno set and a sentence in 'errp':
 *   EINVAL  fluid.epoch differs from the stored epoch, or the wall clock is before the epoch of a new instance
 *   ERANGE  the wall clock is before the stored epoch, and the place has no clock; or the wall clock is further ahead
 *           of the stored horizon than fluid.max-jump
 */
int fluid_options_epoch (const struct fluid_options *o, const struct horizon_store_content *content, int64_t wall_ms,
                         int64_t *epoch_ms, idt_error_t *errp);

/* Determine the record with which rank 0 starts. It is the record of 'content', with a horizon of at least
 * fluid.recover-horizon. Returns 0 with '*record' set, or -1 with errno EINVAL and a sentence in 'errp'.
 */
int fluid_options_record (const struct fluid_options *o, const struct horizon_store_content *content, int64_t wall_ms,
                          int64_t epoch_ms, struct lease_record *record, idt_error_t *errp);

#endif /* FLUID_FLUID_OPTIONS_H */
