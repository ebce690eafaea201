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
    uint64_t count;
    uint32_t rank; /* IDT_NODEID_ANY: not given */
    bool local;
    bool json;
    bool generator;
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

/* Make the ids of flax, sno or uid that are asked for in this process, and hand them out: unique within a generator.
 * It makes none in the step of time in which it began, so that programs that run one after the other do not meet
 * either, as long as the clock is not set back.  Waits for the next step of time where one is used up.  Ends the
 * program where an option is nonsense, or the clock's date is none of the scheme's.
 */
void new_local (const struct new_options *o, void (*take) (const struct new_options *o, const struct ident *id));

#endif /* CMD_ID_NEW_H */
