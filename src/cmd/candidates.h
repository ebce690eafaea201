/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* candidates.h - the possible values of an argument, by its name in the usage line
 *
 * Usage lines have one name for each kind of value: FORM, ATTRIBUTE, DOCUMENT.  Values that the instance knows are
 * requested from it, for at most a second; without a broker such arguments have no candidates.
 */
#ifndef CMD_CANDIDATES_H
#define CMD_CANDIDATES_H

#include <stddef.h>

#include "cmd/base/cmd.h"

struct candidates {
    struct cmd *cmd;
    const char *typed;  /* the word so far */
    const char *before; /* 'before_len' bytes that precede the candidate in the same word, as --format= */
    size_t before_len;
    const char *rank;   /* --rank; NULL: not given */
    const char *scheme; /* --scheme, the same */
};

/* Print 'word' if it begins with the typed text. */
void candidates_offer (const struct candidates *c, const char *word);

/* Offer all values for 'name': alternatives separated by |.  An alternative in lower case stands for itself. */
void candidates_of (const struct candidates *c, const char *name);

#endif /* CMD_CANDIDATES_H */
