/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* convert.h - a stream of ids, one a line, to another form
 *
 * Each line that is an id gives one line out, in order.  A line that is none gives no line out,
 * and is told by its number; the lines after it are converted all the same.
 */
#ifndef CMD_CONVERT_H
#define CMD_CONVERT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <idtree/fluid.h>

#define CONVERT_LINE_MAX 1024 /* bytes; a longer line is no id */

/* 'line' counts from 1; 'errnum' is EINVAL (no id) or ERANGE (does not fit in 64 bits); 's' of
 * 'len' bytes is what the line holds, cut at CONVERT_LINE_MAX.
 */
typedef void (*convert_bad_f) (void *arg, uint64_t line, const char *s, size_t len, int errnum);

struct convert {
    enum fluid_form form;
    FILE *out;
    convert_bad_f bad;
    void *arg;
    uint64_t line; /* lines that ended so far */
    size_t len;    /* of the line that has not ended yet; above the limit: the rest is lost */
    char buf[CONVERT_LINE_MAX + 1];
};

void convert_init (struct convert *c, enum fluid_form form, FILE *out, convert_bad_f bad,
                   void *arg);

/* Take one line without its newline: 's' of 'len' bytes, with a NUL behind. */
void convert_line (struct convert *c, const char *s, size_t len);

/* Take 'size' bytes, which are overwritten. */
void convert_add (struct convert *c, char *data, size_t size);

/* The end: a last line need not have a newline. */
void convert_end (struct convert *c);

#endif /* CMD_CONVERT_H */
