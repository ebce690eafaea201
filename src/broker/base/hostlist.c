/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* hostlist.c - the host of each rank, in order, stored as runs of names, and as text
 *
 * Each run has at least one rank.
 */
#include "config.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/base/hostlist.h"
#include "libutil/errprintf.h"

#define MAX_DIGITS 9 /* largest number of digits; further digits at the end of a name belong to the stem */

struct number_run {
    char *stem; /* the name without its number */
    int width;  /* width of the number if it is padded with zeros; 0: the names have no number */
    uint32_t first;
    uint32_t count; /* number of ranks */
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

/* Whether a name has the stem and the width of a run. In a run of numbers padded with zeros all names have the width of
 * the first one. Other numbers may get longer.
 */
static bool is_alike (const struct number_run *r, const char *name, size_t stem, int digits)
{
    if (strncmp (r->stem, name, stem) != 0 || r->stem[stem] || (r->width == 0) != (digits == 0))
        return false;
    return digits == r->width || (digits > r->width && name[stem] != '0');
}

/* Add the next ranks to the run if they continue it. Returns whether the ranks were added. */
static bool go_on (struct number_run *r, const char *name, size_t stem, uint32_t count)
{
    int digits = (int)strlen (name + stem);
    uint32_t number = digits > 0 ? (uint32_t)strtoul (name + stem, NULL, 10) : 0;
    bool again = number == r->first && (r->same || r->count == 1);

    assert (r->count > 0);
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

    assert (count > 0);
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

/* Write the runs that have the same stem with one pair of brackets. Returns the number of runs written. */
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

/* --- the names of a text ----------------------------------------------------------------------- */

struct expansion {
    int (*cb) (const char *name, void *arg, idt_error_t *errp);
    void *arg;
    idt_error_t *errp;
    uint32_t count;
};

static bool is_name (const char *s)
{
    while (isalnum ((unsigned char)*s) || (*s && strchr ("-._:", *s)))
        s++;
    return *s == '\0';
}

static int take (struct expansion *x, const char *name)
{
    if (x->count++ == HOSTLIST_MAX)
        return errsetf (x->errp, EINVAL, "a list has at most %d hosts", HOSTLIST_MAX);
    return x->cb (name, x->arg, x->errp);
}

static int emit (struct expansion *x, const char *name, size_t len)
{
    if (len == 0 || len > HOSTLIST_NAME_MAX || !is_name (name))
        return errsetf (x->errp, EINVAL, "'%.64s' is not a host name: 1 to %d letters, digits, - or dots", name,
                        HOSTLIST_NAME_MAX);
    return take (x, name);
}

/* Read "7" or "007-12". Returns the rest of the text; NULL: malformed. */
static const char *read_range (const char *s, int *width, uint32_t *first, uint32_t *last)
{
    size_t digits = strspn (s, "0123456789");

    if (digits == 0 || digits > MAX_DIGITS)
        return NULL;
    *width = (int)digits;
    *first = *last = (uint32_t)strtoul (s, NULL, 10);
    s += digits;
    if (*s != '-')
        return s;
    digits = strspn (++s, "0123456789");
    *last = (uint32_t)strtoul (s, NULL, 10);
    return digits == 0 || digits > MAX_DIGITS || *last < *first ? NULL : s + digits;
}

/* Expand an item whose bracket begins at 'open' and ends at 'close'. */
static int expand_bracket (struct expansion *x, const char *item, const char *open, const char *close)
{
    const char *s = open, *tail = close + 1;
    char name[2 * HOSTLIST_NAME_MAX + 1];
    uint32_t first, last;
    int width;

    do {
        if (!(s = read_range (s + 1, &width, &first, &last)) || (*s != ',' && s != close))
            return errsetf (x->errp, EINVAL, "'%.64s' has no ranges such as [0-127,200] in its brackets", item);
        for (uint32_t i = first; i <= last; i++) {
            int n = snprintf (name, sizeof (name), "%.*s%0*u%s", (int)(open - item), item, width, i, tail);

            if (emit (x, name, n) < 0)
                return -1;
        }
    } while (s != close);
    return 0;
}

/* Whether the bracket is part of an address, as in "[::1]:8060", and holds no ranges. */
static bool is_number (const char *item, const char *open, const char *close)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr number;

    if (open != item || !close || close - open > (int)sizeof (text))
        return false;
    snprintf (text, sizeof (text), "%.*s", (int)(close - open - 1), open + 1);
    return inet_pton (AF_INET6, text, &number) == 1 && (!close[1] || close[1] == ':') && is_name (close + 1);
}

static int expand_item (struct expansion *x, const char *item)
{
    const char *open = strchr (item, '['), *close = strchr (item, ']');

    if (!open && !close)
        return emit (x, item, strlen (item));
    if (is_number (item, open, close))
        return take (x, item);
    if (!open || !close || close < open || strpbrk (open + 1, "[") || strpbrk (close + 1, "]"))
        return errsetf (x->errp, EINVAL, "'%.64s' must have one [ and one ] after it", item);
    return expand_bracket (x, item, open, close);
}

/* The length of the first item, up to a comma outside of brackets. */
static size_t item_length (const char *s)
{
    bool inside = false;
    size_t n = 0;

    for (; s[n] && (inside || s[n] != ','); n++)
        inside = s[n] == '[' || (inside && s[n] != ']');
    return n;
}

static int expand (struct expansion *x, char *s)
{
    for (char *item = s; item; item = s) {
        size_t n = item_length (s);
        char *end = item + n;

        s = *end ? end + 1 : NULL;
        while (isspace ((unsigned char)*item))
            item++;
        while (end > item && isspace ((unsigned char)end[-1]))
            end--;
        *end = '\0';
        if (expand_item (x, item) < 0)
            return -1;
    }
    return 0;
}

int hostlist_expand (const char *text, int (*cb) (const char *name, void *arg, idt_error_t *errp), void *arg,
                     idt_error_t *errp)
{
    struct expansion x = { .cb = cb, .arg = arg, .errp = errp };
    char *copy = strdup (text);
    int rc = copy ? expand (&x, copy) : errsetf (errp, ENOMEM, "out of memory");

    free (copy);
    return rc;
}
