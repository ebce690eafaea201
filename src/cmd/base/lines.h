/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lines.h - a stream cut into lines
 *
 * Lines are handed out one by one, in order, as they come: a stream of any length needs the memory of one line.
 */
#ifndef CMD_LINES_H
#define CMD_LINES_H

#include <stddef.h>
#include <stdint.h>

#define LINES_MAX 1024 /* bytes; a longer line is handed out cut, with the length LINES_MAX + 1 */

/* 'line' counts from 1.  's' is a line without its newline, and a NUL behind its 'len' bytes (it may
 * hold more of them); borrowed.
 */
typedef void (*lines_f) (void *arg, uint64_t line, const char *s, size_t len);

/* Begins with all zero but the first two. */
struct lines {
    lines_f take;
    void *arg;
    uint64_t line; /* lines that ended so far */
    size_t len;    /* of the line that has not ended yet; above the limit: the rest is lost */
    char buf[LINES_MAX + 1];
};

/* Take 'size' bytes, which are overwritten. */
void lines_add (struct lines *l, char *data, size_t size);

/* The end: a last line need not have a newline. */
void lines_end (struct lines *l);

/* Take all that can be read from 'fd', and the end.  Returns 0, or -1 with errno set. */
int lines_read (struct lines *l, int fd);

#endif /* CMD_LINES_H */
