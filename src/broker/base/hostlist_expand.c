/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* hostlist_expand.c - the names that a list of hosts contains */
#include "config.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/base/hostlist.h"
#include "libutil/errprintf.h"

#define MAX_DIGITS 9

struct expansion {
    int (*cb) (const char *name, void *arg, idt_error_t *errp);
    void *arg;
    idt_error_t *errp;
    uint32_t count;
};

static bool is_name (const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isalnum ((unsigned char)s[i]) && !strchr ("-._:", s[i]))
            return false;
    return true;
}

static int take (struct expansion *x, const char *name)
{
    if (x->count++ == HOSTLIST_MAX)
        return errsetf (x->errp, EINVAL, "a list has at most %d hosts", HOSTLIST_MAX);
    return x->cb (name, x->arg, x->errp);
}

static int emit (struct expansion *x, const char *name, size_t len)
{
    if (len == 0 || len > HOSTLIST_NAME_MAX || !is_name (name, strlen (name)))
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
    return inet_pton (AF_INET6, text, &number) == 1 && (!close[1] || close[1] == ':')
           && is_name (close + 1, strlen (close + 1));
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
