/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* text.h - ids on the command line and on the terminal */
#ifndef CMD_IDTEXT_H
#define CMD_IDTEXT_H

#include "cmd/base/input.h"
#include "cmd/id/scheme.h"

/* End the program: 's' is not a WHAT; the message lists the valid names. */
void idtext_no_such (const struct cmd *cmd, const char *what, const char *s, const char *const *names)
    __attribute__ ((noreturn));

/* The number of the form named 's' of a scheme, or end the program. */
int idtext_form (const struct cmd *cmd, const struct scheme *scheme, const char *s);

/* Add all forms of an id to an object, with their names as keys. */
void idtext_add_forms (json_t *o, const struct scheme *scheme, const struct ident *id);

/* Readers of options that several commands have: --scheme, 'to' is a const struct scheme *; --drift, --kind (NULL: not
 * given).
 */
void idtext_take_scheme (struct cmd *cmd, const char *arg, void *to);
int idtext_drift (const struct cmd *cmd, const char *s);
enum uid_kind idtext_kind (const struct cmd *cmd, const char *s);

#define IDTEXT_WARNINGS_MAX 10

/* How to read texts: as ids of one scheme, or of any (NULL), by scheme_guess (). */
struct idtext_reader {
    struct cmd *cmd;
    const struct scheme *scheme;
    uint64_t warnings_max; /* number of warnings about texts that are not ids; later ones are only counted */
    uint64_t bad;          /* texts with a warning */
    int64_t now_ms;        /* since 1970 */
};

/* Find the candidates for 's' of 'len' bytes (followed by a NUL).  Returns their number; 0: not an id, with errno as of
 * scheme_guess ().
 */
int idtext_read (const struct idtext_reader *r, const char *s, size_t len, struct candidate candidate[SCHEME_COUNT]);

/* Call 'take' for each operand, with line number 0; or, if the only operand is "-", for each line of stdin.  Ends the
 * program if stdin cannot be read.
 */
void idtext_each (struct idtext_reader *r, lines_f take, void *arg);

/* Warn that 's' of 'len' bytes is not an id ('n' 0: 'errnum' of idtext_read ()), or may be of several schemes.  'line'
 * 0: not from stdin.
 */
void idtext_warn (struct idtext_reader *r, uint64_t line, const char *s, size_t len, const struct candidate *candidate,
                  int n, int errnum);

/* Warn with the clause 'what' about 's'. */
void idtext_warn_of (struct idtext_reader *r, uint64_t line, const char *s, size_t len, const char *what);

/* Call at the end: warns about the number of bad lines without a warning of their own, and returns the exit status. */
int idtext_end (const struct idtext_reader *r);

#endif /* CMD_IDTEXT_H */
