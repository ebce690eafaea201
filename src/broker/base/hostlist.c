/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* hostlist.c - the host of each rank, in order, stored as runs of names */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/base/hostlist.h"

#define MAX_DIGITS 9 /* of a number at the end of a name; further digits belong to the stem */

struct number_run {
    char *stem; /* the name without its number */
    int width;  /* width of numbers padded with zeros; 0: no number */
    uint32_t first;
    uint32_t count; /* of ranks */
    bool same;      /* all ranks are on one host */
};

struct hostlist {
    struct number_run *runs;
    size_t n, room;
};

struct hostlist *hostlist_create (void)
{
    return calloc (1, sizeof (struct hostlist));
}

void hostlist_destroy (struct hostlist *hl)
{
    if (!hl)
        return;
    for (size_t i = 0; i < hl->n; i++)
        free (hl->runs[i].stem);
    free (hl->runs);
    free (hl);
}

/* --- appending --------------------------------------------------------------------------------- */

static size_t stem_length (const char *name)
{
    size_t len = strlen (name), digits = 0;

    while (digits < len && digits < MAX_DIGITS && name[len - digits - 1] >= '0' && name[len - digits - 1] <= '9')
        digits++;
    return len - digits;
}

static struct number_run *add_run (struct hostlist *hl)
{
    if (hl->n == hl->room) {
        size_t room = hl->room > 0 ? 2 * hl->room : 4;
        struct number_run *runs = realloc (hl->runs, room * sizeof (runs[0]));

        if (!runs)
            return NULL;
        hl->runs = runs;
        hl->room = room;
    }
    return &hl->runs[hl->n];
}

/* Whether a name has the stem and the width of a run. Numbers padded with zeros have the width of the first; others may
 * get longer.
 */
static bool is_alike (const struct number_run *r, const char *name, size_t stem, int digits)
{
    if (strncmp (r->stem, name, stem) != 0 || r->stem[stem] || (r->width == 0) != (digits == 0))
        return false;
    return digits == r->width || (digits > r->width && name[stem] != '0');
}

/* Add the next ranks to the run, if they fit. Returns whether they do. */
static bool go_on (struct number_run *r, const char *name, size_t stem, uint32_t count)
{
    int digits = (int)strlen (name + stem);
    uint32_t number = digits > 0 ? (uint32_t)strtoul (name + stem, NULL, 10) : 0;
    bool again = number == r->first && (r->same || r->count == 1);

    if (!is_alike (r, name, stem, digits) || !(again || (count == 1 && !r->same && number == r->first + r->count)))
        return false;
    r->same = again;
    r->count += count;
    return true;
}

int hostlist_append (struct hostlist *hl, const char *name, uint32_t count)
{
    size_t stem = stem_length (name);
    struct number_run *r;

    if (hl->n > 0 && go_on (&hl->runs[hl->n - 1], name, stem, count))
        return 0;
    if (!(r = add_run (hl)) || !(r->stem = strndup (name, stem)))
        return -1;
    r->width = (int)strlen (name + stem);
    r->first = r->width > 0 ? (uint32_t)strtoul (name + stem, NULL, 10) : 0;
    r->count = count;
    r->same = count > 1;
    hl->n++;
    return 0;
}

/* --- text -------------------------------------------------------------------------------------- */

static void put_numbers (FILE *f, const struct number_run *r)
{
    if (!r->same && r->count > 1)
        fprintf (f, "%0*" PRIu32 "-%0*" PRIu32, r->width, r->first, r->width, r->first + r->count - 1);
    for (uint32_t i = 0; i < (r->same ? r->count : r->count == 1); i++)
        fprintf (f, "%s%0*" PRIu32, i > 0 ? "," : "", r->width, r->first);
}

/* Write runs of the same stem with common brackets. Returns the number of runs written. */
static size_t put_group (FILE *f, const struct number_run *r, size_t left)
{
    size_t n = 1;

    while (n < left && r[n].width > 0 && strcmp (r[n].stem, r->stem) == 0)
        n++;
    bool brackets = n > 1 || r->count > 1;
    fprintf (f, "%s%s", r->stem, brackets ? "[" : "");
    for (size_t i = 0; i < n; i++) {
        fputs (i > 0 ? "," : "", f);
        put_numbers (f, &r[i]);
    }
    fputs (brackets ? "]" : "", f);
    return n;
}

char *hostlist_text (const struct hostlist *hl)
{
    char *text = NULL;
    size_t size, done;
    FILE *f = open_memstream (&text, &size);

    for (size_t i = 0; f && i < hl->n; i += done) {
        const struct number_run *r = &hl->runs[i];

        fputs (i > 0 ? "," : "", f);
        done = 1;
        for (uint32_t k = 0; r->width == 0 && k < r->count; k++)
            fprintf (f, "%s%s", k > 0 ? "," : "", r->stem);
        if (r->width > 0)
            done = put_group (f, r, hl->n - i);
    }
    if (f && fclose (f) == 0)
        return text;
    free (text);
    return NULL;
}
