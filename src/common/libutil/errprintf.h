/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* errprintf.h - how a function fails in one line: errno, and a text that a person will read */
#ifndef UTIL_ERRPRINTF_H
#define UTIL_ERRPRINTF_H

#include <errno.h>
#include <stddef.h>

#include <idtree/error.h>

/* Print into 'errp' (may be NULL).  If the text does not fit, the middle of its longest word (a path) is left out, so
 * that the reason behind it stays; a text without a word that is long enough is cut at its end.  The text is UTF-8:
 * other bytes, such as half a character at the cut, are shown as '?', for texts go into JSON that takes nothing else.
 * So are control characters, for texts show what others sent, and go to terminals.  Returns -1 and keeps errno, so that
 * it ends a failing function in one line: return errprintf (errp, "%s: bad fanout '%s'", ...).
 */
int errprintf (idt_error_t *errp, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

/* The same with 'errnum' as errno. */
int errsetf (idt_error_t *errp, int errnum, const char *fmt, ...) __attribute__ ((format (printf, 3, 4)));

/* Set errno.  Returns -1, or NULL. */
static inline int errset (int errnum)
{
    errno = errnum;
    return -1;
}

static inline void *errset_null (int errnum)
{
    errno = errnum;
    return NULL;
}

/* For what reads text: 'pos' is where it is at fault, and goes to '*errpos' (may be NULL). */
static inline int errset_at (int errnum, size_t pos, size_t *errpos)
{
    if (errpos)
        *errpos = pos;
    return errset (errnum);
}

#endif /* UTIL_ERRPRINTF_H */
