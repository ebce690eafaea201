/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lines.h - convert many ids to and from text, one id a line
 *
 * Both functions are inlined into their caller together with the function that converts one id, which gets 'how'.
 */
#ifndef UTIL_LINES_H
#define UTIL_LINES_H

#include <string.h>

#include "libutil/errprintf.h"

#define LINES_INLINE static inline __attribute__ ((always_inline))

/* Write an id with a NUL to 'buf'. Returns the length, or -1 with errno set: ENOSPC if 'size' is too small. */
typedef int (*lines_format_f) (const void *id, const void *how, char *buf, size_t size);

/* Read an id from 'len' characters. Returns 0, or -1 with errno set and the offset of the wrong character in '*errpos'.
 */
typedef int (*lines_parse_f) (const char *text, size_t len, const void *how, void *id, size_t *errpos);

/* Like fluid_format_lines (), for ids of 'id_size' bytes. */
LINES_INLINE int lines_format (const void *ids, size_t id_size, size_t *count, lines_format_f format, const void *how,
                               char *buf, size_t size, size_t *len)
{
    size_t at = 0, i = 0;
    int rc = 0;

    for (; i < *count; i++) {
        int n = format ((const char *)ids + i * id_size, how, buf + at, size - at);
        if (n >= 0 && (size_t)n + 1 >= size - at)
            n = errset (ENOSPC);
        if ((rc = n < 0 ? -1 : 0) < 0)
            break;
        at += n;
        buf[at++] = '\n';
    }
    if (size > 0)
        buf[at] = '\0';
    *count = i;
    *len = at;
    return rc;
}

/* Like fluid_parse_lines (). 'usual' is the length of most lines, or 0 if the lengths vary. */
LINES_INLINE int lines_parse (const char *text, size_t len, size_t usual, void *ids, size_t id_size, size_t *count,
                              lines_parse_f parse, const void *how, size_t *pos)
{
    size_t at = 0, i = 0, bad = 0;
    int rc = 0;

    for (; at < len; i++) {
        const char *line = text + at;
        char *id = (char *)ids + i * id_size;
        if (i == *count) {
            rc = errset (ENOSPC);
            break;
        }
        if (usual > 0 && len - at > usual && line[usual] == '\n' && parse (line, usual, how, id, &bad) == 0) {
            at += usual + 1;
            continue;
        }
        const char *end = memchr (line, '\n', len - at);
        size_t n = end ? (size_t)(end - line) : len - at;
        if ((rc = parse (line, n, how, id, &bad)) < 0) {
            at += bad;
            break;
        }
        at += n + (end != NULL);
    }
    *count = i;
    if (pos)
        *pos = at;
    return rc;
}

#endif /* UTIL_LINES_H */
