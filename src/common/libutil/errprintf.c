/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* errprintf.c - how a function fails in one line */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "libutil/utf8.h"

static void print (idt_error_t *errp, const char *fmt, va_list ap)
{
    if (errp) {
        vsnprintf (errp->text, sizeof (errp->text), fmt, ap);
        utf8_clean_printable (errp->text, strlen (errp->text));
    }
}

int errprintf (idt_error_t *errp, const char *fmt, ...)
{
    int saved_errno = errno;
    va_list ap;

    va_start (ap, fmt);
    print (errp, fmt, ap);
    va_end (ap);
    return errset (saved_errno);
}

int errsetf (idt_error_t *errp, int errnum, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    print (errp, fmt, ap);
    va_end (ap);
    return errset (errnum);
}
