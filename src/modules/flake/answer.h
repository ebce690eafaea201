/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* answer.h - answers to generate: {"ids":["...","..."]}
 *
 * The text is written directly, because there may be many ids, and ids need no escaping. Ids are added as they are
 * made.
 */
#ifndef FLAKE_ANSWER_H
#define FLAKE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/flax.h>

#include "modules/flake/node.h"

struct answer {
    char *text; /* NULL: not begun */
    char *end;
};

/* Begin an answer of 'count' ids. If ids were added before, they are dropped. Returns 0, or -1 with errno ENOMEM. */
int answer_begin (struct answer *a, size_t count);

void answer_add_snos (struct answer *a, const struct flake_run *run);
void answer_add_uids (struct answer *a, const struct flake_run *run, int drift);

/* Make and add 'n' flaxes of a time in Unix milliseconds. Returns 0, or -1 with errno as by flax_gen_reserve (). */
int answer_add_flaxes (struct answer *a, struct flax_gen *gen, int64_t unix_ms, uint32_t n);

/* The whole text, after all ids were added. The text belongs to the answer. */
const char *answer_end (struct answer *a);
void answer_clear (struct answer *a);

/* A parent's answer, and a position in it. */
struct answer_ids {
    const char *text; /* borrowed */
    uint32_t count;   /* number of ids */
    const char *at;   /* the opening quote of the next id */
    uint32_t next;    /* the index of that id */
};

/* Check that 'text' is an answer of 'count' ids, and set 'ids' to the first id. */
bool answer_read (struct answer_ids *ids, const char *text, uint32_t count);

/* An answer with the 'n' ids from index 'first' on. 'first' must not be below the end of the ids that the previous call
 * returned. The caller frees the answer. Returns NULL if memory is short.
 */
char *answer_take (struct answer_ids *ids, uint32_t first, uint32_t n);

#endif /* FLAKE_ANSWER_H */
