/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* text.h - ids on the command line and on the terminal */
#ifndef CMD_IDTEXT_H
#define CMD_IDTEXT_H

#include <stdint.h>

#include "cmd/base/cmd.h"
#include "cmd/base/lines.h"
#include "cmd/id/scheme.h"

/* End the program: 's' is no WHAT; with the names that there are. */
void idtext_no_such (const struct cmd *cmd, const char *what, const char *s, const char *const *names)
    __attribute__ ((noreturn));

/* The number of the form named 's' of a scheme, or end the program. */
int idtext_form (const struct cmd *cmd, const struct scheme *scheme, const char *s);

/* Options that several commands have: --scheme, 'to' a const struct scheme *; --drift, --kind (NULL: not given). */
void idtext_take_scheme (struct cmd *cmd, const char *arg, void *to);
int idtext_drift (const struct cmd *cmd, const char *s);
enum uid_kind idtext_kind (const struct cmd *cmd, const char *s);

#define IDTEXT_TOLD_MAX 10

/* How texts are read: as ids of one scheme, or of any (NULL), by scheme_guess (). */
struct idtext_reader {
    struct cmd *cmd;
    const struct scheme *scheme;
    uint64_t told_max; /* texts that are no ids and are told one by one; the others are counted */
    uint64_t bad;      /* texts that there was a warning of */
    int64_t now_ms;    /* since 1970 */
};

/* What 's' of 'len' bytes (with a NUL behind) may be.  Returns the number of candidates; 0: it is no id, with errno as
 * scheme_guess ().
 */
int idtext_read (const struct idtext_reader *r, const char *s, size_t len, struct candidate candidate[SCHEME_COUNT]);

/* Hand out the operands, with 0 for a line; or, where the only one is "-", the lines of stdin.  Ends the program where
 * that cannot be read.
 */
void idtext_each (struct idtext_reader *r, lines_f take, void *arg);

/* Warn that 's' of 'len' bytes is no id ('n' 0: 'errnum' as idtext_read () set it), or may be one of several schemes.
 * 'line' 0: not from a file.
 */
void idtext_warn (struct idtext_reader *r, uint64_t line, const char *s, size_t len, const struct candidate *candidate,
                  int n, int errnum);

/* Warn with any sentence about 's'. */
void idtext_warn_of (struct idtext_reader *r, uint64_t line, const char *s, size_t len, const char *what);

/* The exit status, when all was read; tells how many were not told. */
int idtext_end (const struct idtext_reader *r);

#endif /* CMD_IDTEXT_H */
