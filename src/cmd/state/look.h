/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* look.h - a state folder as it lies there: nothing is locked, changed, or played back */
#ifndef CMD_LOOK_H
#define CMD_LOOK_H

#include <jansson.h>
#include <sqlite3.h>

#include "cmd/base/cmd.h"
#include "libstate/statefile.h"

#define LOOK_WHY_SIZE 192

struct look {
    const char *dir;
    bool json;
    struct statefile state;
    bool has_fluid;                             /* the dates below are known */
    int64_t epoch_ms, horizon_ms, watermark_ms; /* Unix milliseconds */
    bool in_use;                                /* by a broker, which knows them */
    char why[LOOK_WHY_SIZE];                    /* they are not, as a clause; "": there are none yet */
};

/* Read the file 'instance' of 'dir', and what the store of the horizon tells; ends the program where there is no
 * instance.  Waits where the store is in use, for a second at most, so that one that is being closed is read.
 */
void look_at (const struct cmd *cmd, struct look *l);

/* The second half alone: 'dir' is all that must be there. */
void look_at_horizon (struct look *l);

/* Open a store to read it: NULL where it cannot be.  What is asked of it waits as above.  sqlite3_close (). */
sqlite3 *look_open (const char *dir, const char *name);

/* Why SQLite could not read a store, by its result 'rc', as a clause in 'why'. */
void look_why (const char *dir, const char *name, int rc, char why[LOOK_WHY_SIZE]);

/* All of it as one object: a new reference. */
json_t *look_json_new (const struct look *l);

#endif /* CMD_LOOK_H */
