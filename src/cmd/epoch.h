/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* epoch.h - from when the timestamps of ids count */
#ifndef CMD_EPOCH_H
#define CMD_EPOCH_H

#include <stdint.h>

#include "cmd/cmd.h"

struct epoch {
    int64_t ms;    /* since 1970; -1: unknown */
    char why[320]; /* why it is unknown */
};

/* The epoch that '--epoch' gave ('s'), else the one of the instance, where one is reachable.
 * Ends the program where 's' is no date.
 */
void epoch_get (const struct cmd *cmd, const char *s, struct epoch *epoch);

#endif /* CMD_EPOCH_H */
