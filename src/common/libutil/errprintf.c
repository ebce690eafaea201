/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* errprintf.c - let a function fail in one line */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "libutil/text.h"

#define WHOLE_MAX 8192 /* bytes of a text before it is shortened: enough for a path of PATH_MAX and a sentence */
#define GAP "..."

static bool is_inside (char c)
{
    return ((unsigned char)c & 0xc0) == 0x80; /* a continuation byte of UTF-8 */
}

/* Find the longest word of 's', usually a path. Returns its size and sets '*at' to its beginning. */
static size_t longest_word (const char *s, size_t *at)
{
    size_t size = 0;

    *at = 0;
    for (size_t i = 0, n; s[i]; i += n ? n : 1)
        if ((n = strcspn (s + i, " ")) > size) {
            size = n;
            *at = i;
        }
    return size;
}

/* Cut out the middle of the longest word so that 'max' bytes remain. So the reason and advice behind the word are kept.
 * If no word is long enough, the text is unchanged, and the caller cuts it at its end.
 */
static void shorten (char *s, size_t max)
{
    size_t len = strlen (s), at, size = longest_word (s, &at), gap = strlen (GAP);

    if (len <= max || size < len - max + gap)
        return;
    size_t keep = size - (len - max) - gap, from = at + keep / 2, to = at + size - (keep - keep / 2);
    while (from > at && is_inside (s[from]))
        from--;
    while (is_inside (s[to]))
        to++;
    memcpy (s + from, GAP, gap);
    memmove (s + from + gap, s + to, strlen (s + to) + 1);
}

static void print (idt_error_t *errp, const char *fmt, va_list ap)
{
    char whole[WHOLE_MAX];

    if (errp) {
        vsnprintf (whole, sizeof (whole), fmt, ap);
        shorten (whole, sizeof (errp->text) - 1);
        snprintf (errp->text, sizeof (errp->text), "%.*s", (int)sizeof (errp->text) - 1, whole);
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

void *errsetf_null (idt_error_t *errp, int errnum, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    print (errp, fmt, ap);
    va_end (ap);
    return errset_null (errnum);
}
