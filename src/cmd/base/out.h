/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* out.h - output of commands that is safe for a terminal
 *
 * Any user may choose names, keys, events, lines of the log and texts of errors.  So all output passes through the
 * functions of this file: a %s in a format prints no control characters and only valid UTF-8.  A line break becomes \n,
 * and any other such byte \xNN. The format itself is printed unchanged.  scripts/check refuses other ways to write to
 * stdout.
 */
#ifndef CMD_OUT_H
#define CMD_OUT_H

#include <stdarg.h>
#include <stdio.h>

#include <jansson.h>

#include <idtree/error.h>

/* Print to stdout, or to stderr.  Formats may have the conversions d i u x c s, f g e, %%, with h l ll j z, flags,
 * width and precision.  The width of a %s is in letters, its precision in bytes.
 */
void out_print (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));
void out_error (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));

/* Print like out_print (), to 'f'. */
void out_vprint (FILE *f, const char *fmt, va_list ap) __attribute__ ((format (printf, 2, 0)));

/* Print a text unchanged that the command itself made, or that the user requested: help of several lines, escape
 * sequences, a document.
 */
void out_own (const char *text);

/* Write all buffered output to 'f'.  Returns 0, or -1 with errno set and the reason in 'errp'.  If an earlier write
 * failed because the buffer was full, its errno is lost: then errno is EIO.
 */
int out_flush (FILE *f, idt_error_t *errp);

/* Print as JSON, with the flags of json_dumps ().  Control characters that jansson does not escape are escaped, too.
 * Returns 0, or -1 with errno ENOMEM.  If writing fails, out_flush () reports it.
 */
int out_json (const json_t *o, size_t flags);

/* Print the members of an object for people, one a line: 'prefix' and the key, padded to 'columns' (0: to the longest
 * label) and followed by at least one blank, then the value as text or JSON (with 'flags' of jansson).  null is printed
 * as -, and a list with commas.  The members of an object get its key before their own.  An array of objects is printed
 * as a table, after all other members.
 */
void out_print_members (const json_t *o, const char *prefix, int columns, size_t flags);

/* Return the width that makes printf () pad 's' to 'columns'.  printf () counts bytes, and a letter may have several.
 */
int out_pad (const char *s, int columns);

#endif /* CMD_OUT_H */
