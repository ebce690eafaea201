/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ranges.h - sets of numbers as text: "3", "0-7", "[0-7,9]" (Flux RFC 22) */
#ifndef LIBUTIL_RANGES_H
#define LIBUTIL_RANGES_H

#include <stddef.h>
#include <stdint.h>

/* Whether 'text' contains 'n': 1 or 0, or -1 with errno EINVAL if 'text' is not such a set. "" and "[]" are empty sets.
 */
int ranges_have (const char *text, uint32_t n);

/* Store the greatest number of the set in '*last'. Returns 1, 0 if the set is empty, or -1 with errno EINVAL as above.
 */
int ranges_last (const char *text, uint32_t *last);

/* Call 'each' for each range of 'text', in the order of the text. Returns 1, 0 if the set is empty, or -1 with errno
 * EINVAL if 'text' is not such a set; then 'each' was called for the ranges before the first wrong character.
 */
typedef void (*ranges_each_f) (uint64_t first, uint64_t last, void *arg);
int ranges_each (const char *text, ranges_each_f each, void *arg);

/* How many numbers below 'end' the text contains; a number that occurs in several ranges counts several times. 0 if
 * 'text' is not such a set.
 */
uint64_t ranges_count (const char *text, uint32_t end);

/* The text of 'count' numbers. The function sorts the array. A single range has no brackets; the empty set is "". The
 * caller frees the result. NULL with errno ENOMEM.
 */
char *ranges_format (uint32_t *numbers, size_t count);

#endif /* LIBUTIL_RANGES_H */
