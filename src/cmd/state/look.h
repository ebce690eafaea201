/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* look.h - a state folder as it lies there: nothing is locked, changed, played back, or left behind */
#ifndef CMD_LOOK_H
#define CMD_LOOK_H

#include <limits.h>
#include <stdbool.h>

#include <jansson.h>
#include <sqlite3.h>

#include "cmd/base/cmd.h"
#include "libstate/statefile.h"

#define LOOK_WHY_SIZE 192

struct look {
    const char *dir;
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

/* Its first half alone, and its second, for which 'dir' is all that must be there. */
void look_at_instance (const struct cmd *cmd, struct look *l);
void look_at_horizon (struct look *l);

/* A store that is being read. */
struct look_store {
    sqlite3 *db; /* NULL: it cannot be opened */
    char log[PATH_MAX], index[PATH_MAX];
    bool had_log, had_index; /* SQLite makes what is missing of these as soon as it reads */
};

/* Open a store to read it.  What is asked of it waits as above. */
void look_open (struct look_store *s, const char *dir, const char *name);

/* All that was asked of it must be finalized. */
void look_close (struct look_store *s);

/* Why SQLite could not read a store, by its result 'rc', as a clause in 'why'. */
void look_why (const char *dir, const char *name, int rc, char why[LOOK_WHY_SIZE]);

/* All of it as one object: a new reference. */
json_t *look_json_new (const struct look *l);

#endif /* CMD_LOOK_H */
