/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* new.h - what is asked of idtree id new, and the ids that it makes by itself */
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

/* Makes ids of flax, sno or uid in this process: unique within a generator.  It makes none in the step of time in which
 * it began, so that programs that run one after the other do not meet either, as long as the clock is not set back.
 */
struct new_maker;

/* Ends the program where an option is nonsense, or the clock's date is none of the scheme's. */
struct new_maker *new_maker_create (const struct new_options *o);
void new_maker_destroy (struct new_maker *m); /* NULL is fine */

/* Make one.  Waits for the next step of time where one is used up. */
void new_make (struct new_maker *m, const struct new_options *o, struct ident *id);

#endif /* CMD_ID_NEW_H */
