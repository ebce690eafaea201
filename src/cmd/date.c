/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* date.c - dates as people and brokers write them
 *
 * A date is valid if and only if writing what was read gives it back: so that 30 February, which
 * timegm () would take for 2 March, is refused.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cmd/date.h"

/* Make 'YYYY-MM-DDTHH:MM:SS.mmmZ' of any form.  Returns false where 's' is none. */
static int complete (const char *s, char buf[DATE_STRING_MAX])
{
    size_t len = strlen (s);

    if (len == 10)
        snprintf (buf, DATE_STRING_MAX, "%sT00:00:00.000Z", s);
    else if (len == 20)
        snprintf (buf, DATE_STRING_MAX, "%.19s.000%s", s, s + 19);
    else if (len == 24)
        snprintf (buf, DATE_STRING_MAX, "%s", s);
    else
        return 0;
    return 1;
}

int date_parse (const char *s, int64_t *ms)
{
    char text[DATE_STRING_MAX], again[DATE_STRING_MAX];
    struct tm tm = { 0 };
    int milli;

    if (!complete (s, text)
        || sscanf (text, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
                   &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &milli) != 7
        || tm.tm_year < 1970)
        goto error;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    int64_t t = timegm (&tm) * INT64_C (1000) + milli;
    if (t < 0 || strcmp (date_format (t, again), text))
        goto error;
    *ms = t;
    return 0;
error:
    errno = EINVAL;
    return -1;
}

const char *date_format (int64_t ms, char buf[DATE_STRING_MAX])
{
    time_t t = ms / 1000;
    struct tm tm;

    gmtime_r (&t, &tm);
    size_t n = strftime (buf, DATE_STRING_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf (buf + n, DATE_STRING_MAX - n, ".%03dZ", (int)(ms % 1000));
    return buf;
}
