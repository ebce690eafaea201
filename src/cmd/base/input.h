/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* input.h - what commands read: a whole file that an operand names, or stdin, whole or line by line */
#ifndef CMD_INPUT_H
#define CMD_INPUT_H

#include "cmd/base/cmd.h"

/* The operand that names a file.  NULL: read stdin, because the operand was not given or is "-". */
const char *input_path (const struct cmd *cmd, int operand);

/* The name of 'path' for messages; "stdin" if it is NULL. */
const char *input_name (const char *path);

/* Read all bytes of a file (NULL: stdin) and append a NUL.  The caller frees the result with free ().  Ends the program
 * if the file cannot be read, or with "FILE: WHAT has at most MAX bytes" if it is larger.
 */
char *input_read (const struct cmd *cmd, const char *path, const char *what, size_t max, size_t *size);

/* --- lines --------------------------------------------------------------------------------------
 *
 * Lines are passed on one by one, in order, as they arrive: a stream of any length needs the memory of one line.
 */

#define LINES_MAX 1024 /* bytes; a longer line is cut, and passed on with the length LINES_MAX + 1 */

/* Called for each line.  'line' counts from 1.  's' (borrowed) is the line without its newline; a NUL follows its 'len'
 * bytes.  The line itself may contain NULs, too.
 */
typedef void (*lines_f) (void *arg, uint64_t line, const char *s, size_t len);

/* Initialize 'take' and 'arg', and all other members with zero. */
struct lines {
    lines_f take;
    void *arg;
    uint64_t line; /* number of lines that have ended */
    size_t len;    /* bytes of the unfinished line; bytes above the limit are counted, but not kept */
    char buf[LINES_MAX + 1];
};

/* Add 'size' bytes of the stream.  'data' is overwritten. */
void lines_add (struct lines *l, char *data, size_t size);

/* Call this at the end of the stream.  The last line need not end with a newline. */
void lines_end (struct lines *l);

/* Read 'fd' to its end and pass on all lines.  Returns 0, or -1 with errno set. */
int lines_read (struct lines *l, int fd);

#endif /* CMD_INPUT_H */
