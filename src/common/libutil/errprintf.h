/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* errprintf.h - fill the optional error text of a function that a person will read */
#ifndef UTIL_ERRPRINTF_H
#define UTIL_ERRPRINTF_H

#include <idtree/error.h>

/* Print into 'errp' (may be NULL).  The text is cut where it does not fit, and UTF-8: what is not, such as half a
 * character at the cut, is shown as '?', for texts go into JSON that takes nothing else.  Returns -1 and keeps errno,
 * so that it ends a failing function in one line: return errprintf (errp, "%s: bad fanout '%s'", ...).
 */
int errprintf (idt_error_t *errp, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

#endif /* UTIL_ERRPRINTF_H */
