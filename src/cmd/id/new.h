/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* new.h - the options of idtree id new, and the ids that it makes itself */
#ifndef CMD_ID_NEW_H
#define CMD_ID_NEW_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/base/cmd.h"
#include "cmd/id/scheme.h"

#define NEW_FORMS_MAX 8

struct new_options {
    struct cmd *cmd;
    const struct scheme *scheme;
    uint64_t count; /* 0: not given */
    bool follow;
    uint32_t rank; /* IDT_NODEID_ANY: not given */
    bool local;
    bool generator;
    bool trace;
    const char *spans; /* NULL: not given */
    const char *form_name[NEW_FORMS_MAX];
    int form[NEW_FORMS_MAX]; /* numbers of the scheme's forms */
    int nforms;
    /* NULL: not given */
    const char *meta;
    const char *partition;
    const char *node;
    const char *fingerprint;
    const char *drift;
    const char *kind;
};

/* Makes ids of flax, sno or uid in this process: unique within a generator.  It makes no ids in the time step in which
 * it began, so that successive programs do not make the same ids unless the clock is set back.
 */
struct new_maker;

/* Ends the program if an option is invalid, or the clock's date is outside of the scheme's range. */
struct new_maker *new_maker_create (const struct new_options *o);
void new_maker_destroy (struct new_maker *m); /* NULL is fine */

/* Make an id.  Waits for the next time step if the current one is used up. */
void new_make (struct new_maker *m, const struct new_options *o, struct ident *id);

#endif /* CMD_ID_NEW_H */
