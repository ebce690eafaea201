/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* look.h - a state folder as it lies there: nothing is locked, changed, or played back */
#ifndef CMD_LOOK_H
#define CMD_LOOK_H

#include <jansson.h>
#include <sqlite3.h>

#include "cmd/base/cmd.h"
#include "libstate/statefile.h"

struct look {
    const char *dir;
    bool json;
    struct statefile state;
    bool has_fluid;                             /* the rest can be told */
    int64_t epoch_ms, horizon_ms, watermark_ms; /* Unix milliseconds */
};

/* Read the file 'instance' of 'dir', and what fluid.sqlite tells; ends the program where there is none. */
void look_at (const struct cmd *cmd, struct look *l);

/* Open a store to read it: NULL where it cannot be.  sqlite3_close (). */
sqlite3 *look_open (const char *dir, const char *name);

/* All of it as one object: a new reference. */
json_t *look_json_new (const struct look *l);

#endif /* CMD_LOOK_H */
