/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* suggest.h - guess the intended word for a mistyped one */
#ifndef CMD_SUGGEST_H
#define CMD_SUGGEST_H

#include <stddef.h>

#define SUGGEST_WORD_MAX 64 /* longer words get no suggestion */

/* The number of letters to insert, remove, replace or swap with the next to turn 'a' into 'b'. */
unsigned suggest_distance (const char *a, const char *b);

/* Return the one of 'n' words that is nearest to 'word', or the first of several.  NULL: too many letters differ in all
 * of them (the limit is a third of the letters, and one more for words of over three).
 */
const char *suggest (const char *word, const char *const *words, size_t n);

/* Return the one of 'n' words that is a synonym of 'word', as remove is of unload; NULL: not found. */
const char *suggest_synonym (const char *word, const char *const *words, size_t n);

#endif /* CMD_SUGGEST_H */
