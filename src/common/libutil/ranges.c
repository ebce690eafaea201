/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ranges.c - sets of numbers as text */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "libutil/ranges.h"

/* Read a number of 10 digits at most.  Returns what follows it, or NULL. */
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

struct wanted_range {
    uint32_t n;
    bool found;
};

static void look (uint64_t first, uint64_t last, void *arg)
{
    struct wanted_range *w = arg;

    w->found = w->found || (first <= w->n && w->n <= last);
}

int ranges_have (const char *text, uint32_t n)
{
    struct wanted_range w = { .n = n };

    return ranges_each (text, look, &w) < 0 ? -1 : w.found;
}

static void raise_last (uint64_t first, uint64_t last, void *arg)
{
    uint32_t *greatest = arg;

    if (last > *greatest)
        *greatest = last;
}

int ranges_last (const char *text, uint32_t *last)
{
    uint32_t greatest = 0;
    int rc = ranges_each (text, raise_last, &greatest);

    if (rc > 0)
        *last = greatest;
    return rc;
}

struct below {
    uint64_t end, count;
};

static void count_below (uint64_t first, uint64_t last, void *arg)
{
    struct below *b = arg;

    if (first < b->end)
        b->count += (last < b->end ? last + 1 : b->end) - first;
}

uint64_t ranges_count (const char *text, uint32_t end)
{
    struct below b = { .end = end };

    return ranges_each (text, count_below, &b) > 0 ? b.count : 0;
}

static int compare (const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Returns how many ranges were written. */
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
