/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* text.c - texts that come from other programs and people: UTF-8, sets of numbers, log lines */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "libutil/text.h"

/* --- UTF-8 ------------------------------------------------------------------------------------------------------ */

#define CONTROL_END 0x20 /* end of the C0 controls */
#define C1_BEGIN 0x7f    /* first of DEL and the C1 controls */
#define C1_END 0xa0

/* Read the character at 's' into '*c'. Returns its size; 0 if it is not well-formed or not complete. */
static size_t character (const unsigned char *s, size_t size, uint32_t *c)
{
    /* the smallest character of each length: a smaller one has a shorter form (RFC 3629 3) */
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t len = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf8 ? 4 : 0;

    if (len == 0 || len > size)
        return 0;
    *c = len == 1 ? s[0] : s[0] & (0x7f >> len);
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        *c = *c << 6 | (s[i] & 0x3f);
    }
    return *c < least[len] || *c > 0x10ffff || (*c >= 0xd800 && *c < 0xe000) ? 0 : len;
}

size_t utf8_span (const char *s, size_t size)
{
    size_t at = 0, len;
    uint32_t c;

    while (at < size && (len = character ((const unsigned char *)s + at, size - at, &c)) > 0)
        at += len;
    return at;
}

size_t utf8_span_printable (const char *s, size_t size)
{
    size_t at = 0, len;
    uint32_t c;

    while (at < size && (len = character ((const unsigned char *)s + at, size - at, &c)) > 0 && c >= CONTROL_END
           && (c < C1_BEGIN || c >= C1_END))
        at += len;
    return at;
}

void utf8_clean (char *s, size_t size)
{
    for (size_t at = utf8_span (s, size); at < size; at += utf8_span (s + at, size - at))
        s[at] = '?';
}

void utf8_clean_printable (char *s, size_t size)
{
    for (size_t at = utf8_span_printable (s, size); at < size; at += utf8_span_printable (s + at, size - at))
        s[at] = '?';
}

/* --- sets of numbers -------------------------------------------------------------------------------------------- */

/* Read a number of at most 10 digits. Returns the text behind it, or NULL. */
static const char *read_number (const char *s, uint64_t *n)
{
    size_t digits = strspn (s, "0123456789");

    if (digits == 0 || digits > 10)
        return NULL;
    *n = strtoull (s, NULL, 10);
    return *n <= UINT32_MAX ? s + digits : NULL;
}

static const char *read_range (const char *s, uint64_t *first, uint64_t *last)
{
    if (!(s = read_number (s, first)))
        return NULL;
    *last = *first;
    if (*s == '-' && !(s = read_number (s + 1, last)))
        return NULL;
    return *first <= *last ? s : NULL;
}

int ranges_each (const char *text, ranges_each_f each, void *arg)
{
    bool brackets = *text == '[';
    const char *s = text + brackets;
    uint64_t first, last;

    if (strcmp (text, "") == 0 || strcmp (text, "[]") == 0)
        return 0;
    do {
        if (!(s = read_range (s, &first, &last)))
            return errset (EINVAL);
        each (first, last, arg);
    } while (*s == ',' && *++s);
    if (brackets && *s++ != ']')
        return errset (EINVAL);
    return *s || s[-1] == ',' ? errset (EINVAL) : 1;
}

struct summary {
    uint64_t n, end; /* these two are set by the caller */
    bool has_n;
    uint32_t last;
    uint64_t below_end;
};

static void sum_up (uint64_t first, uint64_t last, void *arg)
{
    struct summary *s = arg;

    s->has_n = s->has_n || (first <= s->n && s->n <= last);
    s->last = (uint32_t)max_u64 (s->last, last);
    if (first < s->end)
        s->below_end += min_u64 (last + 1, s->end) - first;
}

int ranges_have (const char *text, uint32_t n)
{
    struct summary s = { .n = n };

    return ranges_each (text, sum_up, &s) < 0 ? -1 : s.has_n;
}

int ranges_last (const char *text, uint32_t *last)
{
    struct summary s = { 0 };
    int rc = ranges_each (text, sum_up, &s);

    if (rc > 0)
        *last = s.last;
    return rc;
}

uint64_t ranges_count (const char *text, uint32_t end)
{
    struct summary s = { .end = end };

    return ranges_each (text, sum_up, &s) > 0 ? s.below_end : 0;
}

static int compare (const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Print all ranges, with a bracket before the first one. Returns how many were printed. */
static size_t print_all (FILE *f, const uint32_t *numbers, size_t count)
{
    size_t ranges = 0;

    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && numbers[end] <= numbers[end - 1] + 1; end++)
            ;
        fprintf (f, "%s%" PRIu32, ranges++ ? "," : "[", numbers[i]);
        if (numbers[end - 1] > numbers[i])
            fprintf (f, "-%" PRIu32, numbers[end - 1]);
    }
    return ranges;
}

char *ranges_format (uint32_t *numbers, size_t count)
{
    char *text = NULL;
    size_t size, ranges;
    FILE *f = open_memstream (&text, &size);

    if (!f)
        return NULL;
    if (count > 0)
        qsort (numbers, count, sizeof (numbers[0]), compare);
    ranges = print_all (f, numbers, count);
    if (ranges > 1)
        fputc (']', f);
    if (fclose (f) != 0) {
        free (text);
        return NULL;
    }
    if (ranges == 1)
        memmove (text, text + 1, size);
    return text;
}

/* --- log lines -------------------------------------------------------------------------------------------------- */

static const char *const levels[LOGLINE_LEVELS] = { "emerg",   "alert",  "crit", "err",
                                                    "warning", "notice", "info", "debug" };

const char *logline_level (int level)
{
    return level >= 0 && level < LOGLINE_LEVELS ? levels[level] : NULL;
}

int logline_level_parse (const char *name)
{
    for (int i = 0; i < LOGLINE_LEVELS; i++)
        if (!strcmp (name, levels[i]))
            return i;
    return -1;
}

int logline_parse (const char *line, struct logline *l)
{
    int pri, end = -1;

    if (sscanf (line, "<%d>1 %63s %31s %63s %*s %*s %*s%n", &pri, l->time, l->rank, l->name, &end) != 4 || end < 0
        || !logline_level (pri >> 3))
        return errset (EINVAL);
    l->level = pri >> 3;
    l->text = line + end + (line[end] == ' ');
    return 0;
}

int logline_format (const char *line, char *buf, size_t size)
{
    struct logline l;

    if (logline_parse (line, &l) < 0)
        return -1;
    snprintf (buf, size, "%s %s.%s[%s]: %s", l.time, l.name, logline_level (l.level), l.rank, l.text);
    return 0;
}
