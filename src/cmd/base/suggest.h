/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* suggest.h - guess the intended word for a mistyped one */
#ifndef CMD_SUGGEST_H
#define CMD_SUGGEST_H

#include <stddef.h>

#define SUGGEST_WORD_MAX 64 /* longer words get no suggestion */

/* The number of edits that turn 'a' into 'b'.  An edit inserts, removes or replaces a letter, or swaps it with the next
 * one.
 */
unsigned suggest_distance (const char *a, const char *b);

/* Return the one of 'n' words that is nearest to 'word'; the first one if several are.  Returns NULL if too many
 * letters differ in all of them: more than a third of the letters, plus one for a word of more than three letters.
 */
const char *suggest (const char *word, const char *const *words, size_t n);

/* Return the one of 'n' words that means the same as 'word', such as remove for unload; NULL: no word does. */
const char *suggest_synonym (const char *word, const char *const *words, size_t n);

#endif /* CMD_SUGGEST_H */
