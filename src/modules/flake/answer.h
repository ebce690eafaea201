/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* answer.h - what generate answers: {"ids":["...","..."]}
 *
 * Written by hand, for there may be many ids, and no text needs escaping.  Ids are added as they are made.
 */
#ifndef FLAKE_ANSWER_H
#define FLAKE_ANSWER_H

#include <stddef.h>
#include <stdint.h>

#include <idtree/flax.h>

#include "modules/flake/series.h"

struct answer {
    char *text; /* NULL: nothing yet */
    char *end;
};

/* Begin (anew) an answer of 'count' ids.  Returns 0, or -1 with errno ENOMEM. */
int answer_begin (struct answer *a, size_t count);

void answer_add_snos (struct answer *a, const struct flake_run *run);
void answer_add_uids (struct answer *a, const struct flake_run *run, int drift);

/* Make 'n' flaxes of a time (in Unix milliseconds).  Returns 0, or -1 with errno as flax_gen_reserve (). */
int answer_add_flaxes (struct answer *a, struct flax_gen *gen, int64_t unix_ms, uint32_t n);

/* The whole text, once all ids are there; the answer's. */
const char *answer_end (struct answer *a);
void answer_clear (struct answer *a);

#endif /* FLAKE_ANSWER_H */
