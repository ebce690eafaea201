/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* input.h - what a command reads as a whole: a file that an operand names, or stdin */
#ifndef CMD_INPUT_H
#define CMD_INPUT_H

#include <stddef.h>

#include "cmd/base/cmd.h"

/* The operand that names a file; NULL: there is none, or it is "-", and stdin is read. */
const char *input_path (const struct cmd *cmd, int operand);

/* How to call it in a sentence. */
const char *input_name (const char *path);

/* All bytes of a file (NULL: stdin) with a NUL behind them, for free ().  Ends the program where it cannot be read, or
 * has more than 'max' bytes: "FILE: WHAT has at most MAX bytes".
 */
char *input_read (const struct cmd *cmd, const char *path, const char *what, size_t max, size_t *size);

#endif /* CMD_INPUT_H */
