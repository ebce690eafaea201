/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* text.h - ids on the command line and on the terminal */
#ifndef CMD_IDTEXT_H
#define CMD_IDTEXT_H

#include <stdint.h>

#include <idtree/fluid.h>

#include "cmd/base/cmd.h"
#include "cmd/base/lines.h"
#include "cmd/id/scheme.h"

/* The form named 's' (--to), or end the program with the names that there are. */
enum fluid_form idtext_form (const struct cmd *cmd, const char *s);

/* 'id' in a form, in 'buf'.  Returns 'buf'. */
const char *idtext (fluid_t id, enum fluid_form form, char buf[FLUID_TEXT_MAX]);

/* The scheme named 's' (--scheme), or end the program with the names that there are. */
const struct scheme *idtext_scheme (const struct cmd *cmd, const char *s);

/* The number of the form named 's' of a scheme, or end the program with the names that there are. */
int idtext_form_of (const struct cmd *cmd, const struct scheme *scheme, const char *s);

/* Options that several commands have: --drift, --kind. */
int idtext_drift (const struct cmd *cmd, const char *s);
enum uid_kind idtext_kind (const struct cmd *cmd, const char *s);

/* How texts are read: as ids of one scheme, or of any (NULL), by scheme_guess (). */
struct idtext_reader {
    const struct scheme *scheme;
    int64_t now_ms; /* since 1970 */
};
void idtext_reader_init (struct idtext_reader *r, const struct scheme *scheme);

/* What 's' of 'len' bytes (with a NUL behind) may be.  Returns the number of candidates; 0: it is no id, with errno as
 * scheme_guess ().
 */
int idtext_read (const struct idtext_reader *r, const char *s, size_t len, struct candidate candidate[SCHEME_COUNT]);

/* Hand out the operands of 'cmd', with 0 for a line; or, where the only one is "-", the lines of stdin.  Ends the program
 * where that cannot be read.
 */
void idtext_each (const struct cmd *cmd, lines_f take, void *arg);

/* Warn that 's' of 'len' bytes is no id ('n' 0: 'errnum' as idtext_read () set it), or may be one of several schemes.
 * 'line' 0: not from a file.
 */
void idtext_warn (const struct cmd *cmd, uint64_t line, const char *s, size_t len, const struct candidate *candidate,
                  int n, int errnum);

/* Warn with any sentence about 's'. */
void idtext_warn_of (const struct cmd *cmd, uint64_t line, const char *s, size_t len, const char *what);

#endif /* CMD_IDTEXT_H */
