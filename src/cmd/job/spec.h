/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* spec.h - make the jobspec of a command */
#ifndef CMD_JOB_SPEC_H
#define CMD_JOB_SPEC_H

#include <stddef.h>

#include "cmd/base/cmd.h"

#define SPEC_MAX ((size_t)16 << 20) /* bytes */

/* Make a jobspec of version 1 (Flux RFC 14, 25) for 'argc' (> 0) words of a command: one slot of one core, in the
 * current directory, without a limit of time and without an environment.  Returns a text for free ().  Ends the program
 * if a word is not UTF-8.
 */
char *spec_of_command (const struct cmd *cmd, int argc, char **argv);

#endif /* CMD_JOB_SPEC_H */
