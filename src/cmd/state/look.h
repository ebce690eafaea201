/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* look.h - read a state folder without changing it: it locks, replays and leaves nothing */
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
    bool has_fluid;                             /* the dates below are valid */
    int64_t epoch_ms, horizon_ms, watermark_ms; /* Unix milliseconds */
    bool in_use;                                /* a broker that knows the dates uses the store */
    char why[LOOK_WHY_SIZE];                    /* why the dates are missing, as a clause; "": none stored yet */
};

/* Read the file 'instance' of 'dir', and the dates in the store of the horizon.  Ends the program if there is no
 * instance.  If the store is in use it waits up to a second, for a broker that is closing it.
 */
void look_at (const struct cmd *cmd, struct look *l);

/* The two halves of look_at ().  The second one needs only 'dir'. */
void look_at_instance (const struct cmd *cmd, struct look *l);
void look_at_horizon (struct look *l);

/* A store open for reading. */
struct look_store {
    sqlite3 *db; /* NULL: it cannot be opened */
    char log[PATH_MAX], index[PATH_MAX];
    bool had_log, had_index; /* SQLite makes the missing ones of these files when it reads */
};

/* Open a store for reading.  Queries wait as above. */
void look_open (struct look_store *s, const char *dir, const char *name);

/* Close it.  All statements must be finalized before. */
void look_close (struct look_store *s);

/* Write why SQLite could not read a store, by its result 'rc', as a clause into 'why'. */
void look_why (const char *dir, const char *name, int rc, char why[LOOK_WHY_SIZE]);

/* All fields as one object: a new reference. */
json_t *look_json_new (const struct look *l);

#endif /* CMD_LOOK_H */
