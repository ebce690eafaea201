/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* look.h - read a state folder without changing it: no store stays locked, no journal is replayed, no file is left */
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
    bool in_use;                                /* the dates are missing because a broker uses the store */
    char why[LOOK_WHY_SIZE]; /* why the dates are missing, as a clause; "": no horizon was stored yet */
};

/* Read the dates in the store of the horizon of 'dir'.  If the store is in use, this waits up to a second, because a
 * broker may be closing the store.
 */
void look_at_horizon (struct look *l);

#endif /* CMD_LOOK_H */
