/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fluid_options.h - the fluid.* attributes of a broker, and what rank 0 makes of epoch and wall clock
 *
 *   fluid.max-generators   ranks below own a generator, 1 ... 16384         16368 (the last 16 are kept free)
 *   fluid.lanes            generators of each rank: rank, rank + size, ..., all below max-generators    1
 *   fluid.lease            length of a lease, 100ms ... 1h                  60s
 *   fluid.max-backlog      generation that a request may wait for           2s
 *   fluid.max-waiting      requests of clients that wait at most            8192
 *   fluid.forward-timeout  a request that nobody can serve fails after      5s
 *   fluid.share            ranks without a generator borrow of their parent: auto (who needs it), 16, 32 ... 512 (all
 *   of
 *                          them, so many sequence numbers), or off          off
 *   fluid.share-keep       sequence numbers of 1024 that are not lent       512
 *   fluid.spill-backlog    an owner with more to make than in that time passes requests of children on; 0: none    0
 *   fluid.attach           who may have the page by which processes make ids themselves (page.h): owner; all who may
 *                          connect to the broker; or off                    owner
 *   fluid.epoch            date that the time of ids counts from            when the instance is first started
 *   fluid.recover-horizon  a date, or an id, above all that was made: a damaged or lost file in statedir is
 *                          replaced by one with that horizon                none
 *   fluid.max-jump         rank 0 refuses to start with a wall clock that is further ahead of all that
 *                          was made, or before the epoch; 0: takes any      400d
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
    const char *recover;  /* borrowed; NULL: not given */
    uint64_t max_jump_ms; /* 0: none is too far */
    const char *statedir; /* borrowed; rank 0 alone */
};

/* Read the attributes of the handle's broker.  Returns 0, or -1 with errno EINVAL and a sentence in 'errp'. */
int fluid_options_read (idt_t *h, struct fluid_options *o, idt_error_t *errp);

/* The epoch to run with, at rank 0: that of 'content', or for a new instance the one that was asked for, or now.
 * Returns 0 with '*epoch_ms' set, or -1 with errno EINVAL and a sentence in 'errp' where the epoch asked for is
 * another one, or the wall clock cannot be right.
 */
int fluid_options_epoch (const struct fluid_options *o, const struct horizon_store_content *content, int64_t wall_ms,
                         int64_t *epoch_ms, idt_error_t *errp);

/* The record to start with, at rank 0: that of 'content', or above what fluid.recover-horizon says.  Returns 0 with
 * '*record' set, or -1 with errno EINVAL and a sentence in 'errp'.
 */
int fluid_options_record (const struct fluid_options *o, const struct horizon_store_content *content, int64_t wall_ms,
                          int64_t epoch_ms, struct lease_record *record, idt_error_t *errp);

#endif /* FLUID_FLUID_OPTIONS_H */
