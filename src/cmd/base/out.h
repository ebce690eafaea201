/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* out.h - what commands print: text that others chose does no harm to a terminal
 *
 * Names, keys, events, lines of the log and errors may be anybody's.  All that is printed passes here: a %s of a format
 * has no control characters and is UTF-8.  A line break is shown as \n, and any other such byte as \xNN.  What the
 * format itself has stays as it is.  scripts/check refuses another way to stdout.
 */
#ifndef CMD_OUT_H
#define CMD_OUT_H

#include <stdarg.h>
#include <stdio.h>

#include <idtree/error.h>
#include <jansson.h>

/* Print to stdout, and to stderr.  Formats have d i u x c s, f g e, %%, with h l ll j z, flags, width and precision.
 * The width of a %s is in letters, its precision in bytes.
 */
void out_print (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));
void out_error (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));

/* The same to 'f'. */
void out_vprint (FILE *f, const char *fmt, va_list ap) __attribute__ ((format (printf, 2, 0)));

/* Print text of our own as it is: help of several lines, sequences for the terminal, a document that is asked for. */
void out_own (const char *text);

/* Write what was printed to 'f'.  Returns 0, or -1 with errno set and the reason in 'errp', also where it was an
 * earlier write that failed, as the buffer was full: of that no errno is left.
 */
int out_flush (FILE *f, idt_error_t *errp);

/* Print as JSON, with flags of json_dumps (): control characters that jansson leaves are escaped, too.  Returns 0, or
 * -1 with errno ENOMEM.  A failure to write is reported by out_flush ().
 */
int out_json (const json_t *o, size_t flags);

/* The width that printf is to pad 's' to, so that it fills 'columns': printf counts bytes, and a letter may have
 * several.
 */
int out_pad (const char *s, int columns);

#endif /* CMD_OUT_H */
