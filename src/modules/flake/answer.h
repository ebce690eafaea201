/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* answer.h - what generate answers: {"ids":["...","..."]}
 *
 * Written by hand, for there may be many ids, and no text needs escaping.  Ids are added as they are made.
 */
#ifndef FLAKE_ANSWER_H
#define FLAKE_ANSWER_H

#include <stdbool.h>
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

/* A parent's answer, and a place in it. */
struct answer_ids {
    const char *text; /* borrowed */
    uint32_t count;   /* ids */
    const char *at;   /* the first quote of ... */
    uint32_t next;    /* ... this one */
};

/* Whether 'text' is an answer of 'count' ids; 'ids' is then at its begin. */
bool answer_read (struct answer_ids *ids, const char *text, uint32_t count);

/* An answer of 'n' of them, from 'first' on, which is not before the end of what was taken so far; to be freed.  NULL:
 * no memory.
 */
char *answer_take (struct answer_ids *ids, uint32_t first, uint32_t n);

#endif /* FLAKE_ANSWER_H */
