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

/* Return the number of the form named 's' in a scheme, or end the program. */
int idtext_form (const struct cmd *cmd, const struct scheme *scheme, const char *s);

/* Add all forms of an id to an object.  The keys are the names of the forms. */
void idtext_add_forms (json_t *o, const struct scheme *scheme, const struct ident *id);

/* Readers of options that several commands have.  --scheme: 'to' is a const struct scheme *.  --drift and --kind: 's'
 * is NULL if the option was not given.
 */
void idtext_take_scheme (struct cmd *cmd, const char *arg, void *to);
int idtext_drift (const struct cmd *cmd, const char *s);
enum uid_kind idtext_kind (const struct cmd *cmd, const char *s);

#define IDTEXT_WARNINGS_MAX 10

/* How to read texts: as ids of 'scheme', or if it is NULL, of any scheme (scheme_guess ()). */
struct idtext_reader {
    struct cmd *cmd;
    const struct scheme *scheme;
    uint64_t warnings_max; /* limit of warnings about texts that are not ids; further ones are only counted */
    uint64_t bad;          /* number of texts that are not ids of one scheme */
    int64_t now_ms;        /* the time in ms since 1970 */
};

/* Find the ids that the 'len' bytes at 's' (followed by a NUL) can be.  Returns the number of candidates.  0: the text
 * is not an id; errno is set as by scheme_guess ().
 */
int idtext_read (const struct idtext_reader *r, const char *s, size_t len, struct candidate candidate[SCHEME_COUNT]);

/* Call 'take' for each operand, with the line number 0.  If the only operand is "-", call it for each line of stdin.
 * Ends the program if stdin cannot be read.
 */
void idtext_each (struct idtext_reader *r, lines_f take, void *arg);

/* Warn that the 'len' bytes at 's' are not an id ('n' 0; 'errnum' is the errno of idtext_read ()), or may be ids of
 * several schemes.  'line' is 0 if the text is not from stdin.
 */
void idtext_warn (struct idtext_reader *r, uint64_t line, const char *s, size_t len, const struct candidate *candidate,
                  int n, int errnum);

/* Warn about 's' with the clause 'what'. */
void idtext_warn_of (struct idtext_reader *r, uint64_t line, const char *s, size_t len, const char *what);

/* Call this at the end.  If bad lines got no warning of their own, it warns with their number.  Returns the exit
 * status.
 */
int idtext_end (const struct idtext_reader *r);

#endif /* CMD_IDTEXT_H */
