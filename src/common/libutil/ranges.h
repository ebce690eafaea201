/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ranges.h - sets of numbers as text: "3", "0-7", "[0-7,9]" (Flux RFC 22) */
#ifndef LIBUTIL_RANGES_H
#define LIBUTIL_RANGES_H

#include <stddef.h>
#include <stdint.h>

/* Whether a text names a number: 1 or 0; -1 with errno EINVAL where it is no such text.  An empty one, or "[]", names
 * none.
 */
int ranges_have (const char *text, uint32_t n);

/* The greatest of them, in '*last': 1, or 0 where there is none; -1 with errno EINVAL as above. */
int ranges_last (const char *text, uint32_t *last);

/* Call 'each' for each range of a text, in its order.  Returns 1, or 0 where there is none; -1 with errno EINVAL where
 * it is no such text: then it was called for what comes before the fault.
 */
typedef void (*ranges_each_f) (uint64_t first, uint64_t last, void *arg);
int ranges_each (const char *text, ranges_each_f each, void *arg);

/* How many numbers it names that are below 'end', each as often as it does; 0 where it is no such text. */
uint64_t ranges_count (const char *text, uint32_t end);

/* The text of 'count' numbers, which are sorted for that; one range is written without brackets, none as "".  The
 * caller frees it.  NULL with errno ENOMEM.
 */
char *ranges_format (uint32_t *numbers, size_t count);

#endif /* LIBUTIL_RANGES_H */
