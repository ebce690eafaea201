/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* look.h - read a state folder without changing it: it locks, replays and leaves nothing */
#ifndef CMD_LOOK_H
#define CMD_LOOK_H

#include <stdbool.h>

#include "libstate/statefile.h"

#define LOOK_WHY_SIZE 192

struct look {
    const char *dir;
    struct statefile state;
    bool has_fluid;                             /* the dates below are valid */
    int64_t epoch_ms, horizon_ms, watermark_ms; /* Unix milliseconds */
    bool in_use;                                /* a broker that knows the dates uses the store */
    char why[LOOK_WHY_SIZE];                    /* why the dates are missing, as a clause; "": none stored yet */
};

/* Read the dates in the store of the horizon of 'dir'.  If the store is in use it waits up to a second, for a broker
 * that is closing it.
 */
void look_at_horizon (struct look *l);

#endif /* CMD_LOOK_H */
