/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* errprintf.c - fill the optional error text of a function that a person will read */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "libutil/utf8.h"

int errprintf (idt_error_t *errp, const char *fmt, ...)
{
    int saved_errno = errno;

    if (errp) {
        va_list ap;

        va_start (ap, fmt);
        vsnprintf (errp->text, sizeof (errp->text), fmt, ap);
        va_end (ap);
        utf8_clean (errp->text, strlen (errp->text));
    }
    errno = saved_errno;
    return -1;
}
