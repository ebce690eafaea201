/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* out.h - output of commands that is safe for a terminal
 *
 * Names, keys, events, lines of the log and errors may be chosen by any user.  All output passes through here: a %s of
 * a format prints no control characters and only valid UTF-8.  A line break becomes \n, and any other such byte \xNN.
 * The format itself is printed unchanged.  scripts/check refuses other ways to write to stdout.
 */
#ifndef CMD_OUT_H
#define CMD_OUT_H

#include <stdarg.h>
#include <stdio.h>

#include <jansson.h>

#include <idtree/error.h>

/* Print to stdout, and to stderr.  Formats may have d i u x c s, f g e, %%, with h l ll j z, flags, width and
 * precision.  The width of a %s is in letters, its precision in bytes.
 */
void out_print (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));
void out_error (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));

/* The same to 'f'. */
void out_vprint (FILE *f, const char *fmt, va_list ap) __attribute__ ((format (printf, 2, 0)));

/* Print a text of the command itself unchanged: help of several lines, escape sequences, a document that the user
 * requested.
 */
void out_own (const char *text);

/* Write all that was printed to 'f'.  Returns 0, or -1 with errno set and the reason in 'errp'.  It fails with EIO if
 * an earlier write failed when the buffer was full, as its errno is lost.
 */
int out_flush (FILE *f, idt_error_t *errp);

/* Print as JSON, with flags of json_dumps ().  Control characters that jansson leaves are escaped, too.  Returns 0, or
 * -1 with errno ENOMEM.  out_flush () reports a failure to write.
 */
int out_json (const json_t *o, size_t flags);

/* Print the members of an object for people, one a line: 'prefix' and the key, padded to 'columns' (0: to the longest
 * one) and followed by at least one blank, then the text of the value, or its JSON (with 'flags' of jansson).  null is
 * printed as -, a list with commas, the members of an object behind its key, and an array of objects as a table after
 * all others.
 */
void out_print_members (const json_t *o, const char *prefix, int columns, size_t flags);

/* The width for printf to pad 's' to 'columns': printf counts bytes, and a letter may have several. */
int out_pad (const char *s, int columns);

#endif /* CMD_OUT_H */
