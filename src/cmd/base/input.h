/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* input.h - read a whole file that an operand names, or stdin */
#ifndef CMD_INPUT_H
#define CMD_INPUT_H

#include <stddef.h>

#include "cmd/base/cmd.h"

/* The operand that names a file; NULL: not given, or "-", so read stdin. */
const char *input_path (const struct cmd *cmd, int operand);

/* The name of the input for messages. */
const char *input_name (const char *path);

/* Read all bytes of a file (NULL: stdin) and append a NUL.  The caller frees the result with free ().  Ends the program
 * if the file cannot be read, or with "FILE: WHAT has at most MAX bytes" if it is larger.
 */
char *input_read (const struct cmd *cmd, const char *path, const char *what, size_t max, size_t *size);

#endif /* CMD_INPUT_H */
