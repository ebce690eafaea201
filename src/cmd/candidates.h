/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* candidates.h - what an argument may be, by its name in the usage line
 *
 * Usage lines call equal things by equal names: FORM, ATTRIBUTE, DOCUMENT.  What the instance knows is asked of it,
 * for a second at most; without one there is nothing to offer.
 */
#ifndef CMD_CANDIDATES_H
#define CMD_CANDIDATES_H

#include <stddef.h>

#include "cmd/base/cmd.h"

struct candidates {
    struct cmd *cmd;
    const char *typed;  /* the word so far */
    const char *before; /* 'before_len' bytes that stand before the candidate in the same word, as --format= */
    size_t before_len;
    const char *rank;   /* --rank; NULL: not given */
    const char *scheme; /* --scheme, the same */
};

/* Print 'word' if what was typed may become it. */
void candidates_offer (const struct candidates *c, const char *word);

/* Offer what 'name' stands for: alternatives, separated by |, of which those in lower case stand for themselves. */
void candidates_of (const struct candidates *c, const char *name);

#endif /* CMD_CANDIDATES_H */
