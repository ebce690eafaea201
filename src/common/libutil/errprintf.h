/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* errprintf.h - let a function fail in one line: set errno, and a text for people */
#ifndef UTIL_ERRPRINTF_H
#define UTIL_ERRPRINTF_H

#include <errno.h>
#include <stddef.h>

#include <idtree/error.h>

/* Print into 'errp' (may be NULL). If the text is too long, the middle of its longest word (usually a path) is left
 * out, so that the reason after the path remains. A text without a word of sufficient length is cut at its end. The
 * text is valid UTF-8, because texts are sent as JSON: other bytes, such as half a character at the cut, become '?'.
 * Control characters also become '?', because texts contain data from peers and are shown on terminals. Returns -1 and
 * keeps errno, so that a failing function can end with: return errprintf (errp, "%s: bad fanout '%s'", ...).
 */
int errprintf (idt_error_t *errp, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

/* Like errprintf (), but set errno to 'errnum'. Return -1, or NULL. */
int errsetf (idt_error_t *errp, int errnum, const char *fmt, ...) __attribute__ ((format (printf, 3, 4)));
void *errsetf_null (idt_error_t *errp, int errnum, const char *fmt, ...) __attribute__ ((format (printf, 3, 4)));

/* Set errno. Return -1, or NULL. */
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

/* For parsers: 'pos' is the offset of the first wrong character, and is stored in '*errpos' (may be NULL). */
static inline int errset_at (int errnum, size_t pos, size_t *errpos)
{
    if (errpos)
        *errpos = pos;
    return errset (errnum);
}

#endif /* UTIL_ERRPRINTF_H */
