/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* duration.c - parse lengths of time, dates, numbers and switches, independent of locale and time zone */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "libutil/errprintf.h"
#include "libutil/duration.h"

#define BILLION UINT64_C (1000000000)
#define LAST_MS INT64_C (253402300799999) /* 9999-12-31T23:59:59.999Z */

static bool is_digit (char c)
{
    return c >= '0' && c <= '9';
}

/* Read a number of at most 'max' at '*s', and move '*s' behind its digits. */
static int read_digits (const char **s, uint64_t max, uint64_t *n)
{
    uint64_t value = 0;

    if (!is_digit (**s))
        return errset (EINVAL);
    for (; is_digit (**s); (*s)++) {
        uint64_t digit = (uint64_t)(**s - '0');

        if (value > (max - digit) / 10 || digit > max)
            return errset (ERANGE);
        value = value * 10 + digit;
    }
    *n = value;
    return 0;
}

/* If a decimal fraction follows, read it in units of 1 / 'whole'. Digits beyond that are cut off. */
static bool read_fraction (const char **s, uint64_t whole, uint64_t *part)
{
    *part = 0;
    if (**s != '.')
        return true;
    if (!is_digit (*++*s))
        return false;
    for (; is_digit (**s); (*s)++)
        *part += (uint64_t)(**s - '0') * (whole /= 10);
    return true;
}

int parse_number (const char *s, uint64_t min, uint64_t max, uint64_t *n)
{
    uint64_t value;

    if (read_digits (&s, max, &value) < 0)
        return -1;
    if (*s != '\0')
        return errset (EINVAL);
    if (value < min)
        return errset (ERANGE);
    *n = value;
    return 0;
}

int parse_switch (const char *s, bool *on)
{
    static const char *const words[] = { "false", "true", "off", "on", "no", "yes", "0", "1" };

    for (size_t i = 0; i < sizeof (words) / sizeof (words[0]); i++)
        if (strcmp (s, words[i]) == 0) {
            *on = i % 2;
            return 0;
        }
    return errset (EINVAL);
}

static const struct unit {
    const char *name;
    uint64_t ms;
} units[] = { { "", 1000 }, { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 } };

static const struct unit *find_unit (const char *name)
{
    for (size_t i = 0; i < sizeof (units) / sizeof (units[0]); i++)
        if (strcmp (units[i].name, name) == 0)
            return &units[i];
    return NULL;
}

int parse_duration (const char *s, uint64_t max_ms, uint64_t *ms)
{
    const struct unit *unit;
    uint64_t whole, part;

    if (read_digits (&s, UINT64_MAX, &whole) < 0)
        return -1;
    if (!read_fraction (&s, BILLION, &part) || !(unit = find_unit (s)))
        return errset (EINVAL);
    part = part * unit->ms / BILLION;
    if (whole > max_ms / unit->ms || whole * unit->ms + part > max_ms)
        return errset (ERANGE);
    *ms = whole * unit->ms + part;
    return 0;
}

/* --- dates ------------------------------------------------------------------------------------- */

/* Read a text of a fixed form. A number in 'form' stands for a number with the same count of digits, and is the largest
 * one allowed. Any other character stands for itself.
 */
static bool read_fields (const char **s, const char *form, int64_t *field)
{
    while (*form) {
        if (!is_digit (*form)) {
            if (*form++ != *(*s)++)
                return false;
            continue;
        }
        int64_t max = 0, n = 0;
        for (; is_digit (*form); form++, (*s)++) {
            if (!is_digit (**s))
                return false;
            max = max * 10 + (*form - '0');
            n = n * 10 + (**s - '0');
        }
        if (n > max)
            return false;
        *field++ = n;
    }
    return true;
}

/* Read "Z" or a difference to UTC, which is returned in minutes. */
static bool read_zone (const char **s, int64_t *minutes)
{
    int64_t field[2], sign = **s == '-' ? -1 : 1;

    *minutes = 0;
    if (**s == 'Z' || **s == 'z') {
        (*s)++;
        return true;
    }
    if (**s != '+' && **s != '-')
        return false;
    (*s)++;
    if (!read_fields (s, "23:59", field))
        return false;
    *minutes = sign * (field[0] * 60 + field[1]);
    return true;
}

/* Read the text behind the day: 'field' gets hour, minute and second, '*ms' the milliseconds, '*zone' the minutes of
 * the zone.
 */
static bool read_time (const char *s, int64_t field[3], uint64_t *ms, int64_t *zone)
{
    if (*s != 'T' && *s != 't' && *s != ' ')
        return false;
    s++;
    return read_fields (&s, "23:59:59", field) && read_fraction (&s, 1000, ms) && read_zone (&s, zone) && *s == '\0';
}

int parse_date (const char *s, int64_t *unix_ms)
{
    int64_t f[6] = { 0 }, ms, zone = 0;
    uint64_t part = 0;

    if (!read_fields (&s, "9999-12-31", f) || (*s != '\0' && !read_time (s, f + 3, &part, &zone)))
        return errset (EINVAL);
    struct tm tm = { .tm_year = (int)f[0] - 1900, .tm_mon = (int)f[1] - 1, .tm_mday = (int)f[2] };
    int64_t day = timegm (&tm); /* turns the 30th of February into a day of March */
    if (f[0] < 1970 || tm.tm_mon != f[1] - 1 || tm.tm_mday != f[2])
        return errset (EINVAL);
    ms = (int64_t)part + (day + (f[3] * 60 + f[4] - zone) * 60 + f[5]) * 1000;
    if (ms < 0 || ms > LAST_MS) /* the zone may move the time to another year */
        return errset (EINVAL);
    *unix_ms = ms;
    return 0;
}

char *format_date (int64_t unix_ms, char buf[DATE_SIZE])
{
    int ms = (int)(unix_ms % 1000 + 1000) % 1000;
    time_t t = (unix_ms - ms) / 1000;
    struct tm tm;

    gmtime_r (&t, &tm);
    size_t n = strftime (buf, DATE_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf (buf + n, DATE_SIZE - n, ".%03dZ", ms);
    return buf;
}
