/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* date.c - dates as people and brokers write them
 *
 * Of what RFC 3339 allows, only what is written the same way again is taken.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cmd/id/date.h"
#include "libutil/errprintf.h"

/* Make 'YYYY-MM-DDTHH:MM:SS.mmmZ' of any form.  Returns false where 's' is none. */
static bool complete (const char *s, char buf[DATE_SIZE])
{
    size_t len = strlen (s);

    if (len == 10)
        snprintf (buf, DATE_SIZE, "%sT00:00:00.000Z", s);
    else if (len == 20)
        snprintf (buf, DATE_SIZE, "%.19s.000%s", s, s + 19);
    else if (len == 24)
        snprintf (buf, DATE_SIZE, "%s", s);
    else
        return false;
    return true;
}

int date_parse (const char *s, int64_t *ms)
{
    char text[DATE_SIZE], again[DATE_SIZE];
    int64_t t;

    if (!complete (s, text) || parse_date (text, &t) < 0 || strcmp (format_date (t, again), text) != 0)
        return errset (EINVAL);
    *ms = t;
    return 0;
}
