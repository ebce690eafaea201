/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* suggest.h - what a mistyped word was meant to be */
#ifndef CMD_SUGGEST_H
#define CMD_SUGGEST_H

#include <stddef.h>

#define SUGGEST_WORD_MAX 64 /* longer words have no suggestion */

/* Letters to insert, remove, replace or swap with the next to make 'b' of 'a'. */
unsigned suggest_distance (const char *a, const char *b);

/* The one of 'n' words that is nearest to 'word', the first of several; NULL: none is near enough
 * (more than a third of the letters differ, and one more of words with over three).
 */
const char *suggest (const char *word, const char *const *words, size_t n);

/* The one of 'n' words that is another word for 'word', as remove is for unload; NULL: none is. */
const char *suggest_synonym (const char *word, const char *const *words, size_t n);

#endif /* CMD_SUGGEST_H */
