/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* idtext.h - ids on the command line and on the terminal */
#ifndef CMD_IDTEXT_H
#define CMD_IDTEXT_H

#include <stdint.h>

#include <idtree/fluid.h>

#include "cmd/cmd.h"

/* The form named 's' (--to), or end the program with the names that there are. */
enum fluid_form idtext_form (const struct cmd *cmd, const char *s);

/* Warn that 's' of 'len' bytes is no id: 'errnum' as fluid_parse () set it.  'line' 0: not from a
 * file.
 */
void idtext_warn (const struct cmd *cmd, uint64_t line, const char *s, size_t len, int errnum);

/* 'id' in a form, in 'buf'.  Returns 'buf'. */
const char *idtext (fluid_t id, enum fluid_form form, char buf[FLUID_STRING_MAX]);

#endif /* CMD_IDTEXT_H */
