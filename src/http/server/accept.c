/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* accept.c - choose the media type that a client prefers (RFC 9110, 12.5.1)
 *
 *     Accept      = [ range *( "," range ) ]
 *     range       = ( "*" "/" "*" | type "/" "*" | type "/" subtype ) *( ";" name "=" value ) [ ";" "q" "=" weight ]
 *     weight      = ( "0" [ "." 0*3DIGIT ] ) | ( "1" [ "." 0*3"0" ] )
 *
 * A range does not match an offered type if it has a parameter of the type with another value. A parameter that the
 * type does not have, such as one that was defined later, is ignored.
 */
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "http/server/accept.h"

#define BLANKS " \t"
#define EXACT 2           /* as specific as a type without parameters */
#define MOST_PARAMETERS 8 /* parameters of a range that are counted */

struct slice {
    const char *s;
    size_t len;
};

static bool slice_is (struct slice a, struct slice b)
{
    return a.len == b.len && strncasecmp (a.s, b.s, a.len) == 0;
}

static bool slice_is_text (struct slice a, const char *text)
{
    return slice_is (a, (struct slice){ text, strlen (text) });
}

static struct slice trim (struct slice a)
{
    while (a.len > 0 && strchr (BLANKS, a.s[0])) {
        a.s++;
        a.len--;
    }
    while (a.len > 0 && strchr (BLANKS, a.s[a.len - 1]))
        a.len--;
    return a;
}

/* The text before the next 'c' outside of quotes; '*rest' is then the text behind it, with s NULL at the end. */
static struct slice split (struct slice *rest, char c)
{
    struct slice part = *rest;
    bool quoted = false;

    for (size_t i = 0; i < rest->len; i++) {
        if (quoted && rest->s[i] == '\\')
            i++;
        else if (rest->s[i] == '"')
            quoted = !quoted;
        else if (rest->s[i] == c && !quoted) {
            part.len = i;
            *rest = (struct slice){ rest->s + i + 1, rest->len - i - 1 };
            return trim (part);
        }
    }
    *rest = (struct slice){ NULL, 0 };
    return trim (part);
}

static struct slice unquote (struct slice value)
{
    if (value.len >= 2 && value.s[0] == '"' && value.s[value.len - 1] == '"')
        return (struct slice){ value.s + 1, value.len - 2 };
    return value;
}

/* Thousandths; -1 if it is malformed. */
static int read_weight (struct slice s)
{
    int q = 0, unit = 1000;

    if (s.len == 0 || s.len > 5 || (s.s[0] != '0' && s.s[0] != '1') || (s.len > 1 && s.s[1] != '.'))
        return -1;
    for (size_t i = 0; i < s.len; i += i == 0 ? 2 : 1) {
        if (s.s[i] < '0' || s.s[i] > '9')
            return -1;
        q += (s.s[i] - '0') * unit;
        unit /= 10;
    }
    return q <= 1000 ? q : -1;
}

/* --- one range --------------------------------------------------------- */

/* -1 if the range has another type. */
static int match_name (struct slice range, struct slice type)
{
    struct slice of = { type.s, strcspn (type.s, "/") + 1 };

    if (slice_is_text (range, "*/*"))
        return 0;
    if (slice_is (range, type))
        return EXACT;
    return range.len == of.len + 1 && range.s[range.len - 1] == '*' && strncasecmp (range.s, of.s, of.len) == 0 ? 1
                                                                                                                : -1;
}

/* Whether the type has the parameter with another value. */
static bool differs (struct slice parameters, struct slice name, struct slice value)
{
    while (parameters.s) {
        struct slice own = split (&parameters, ';');

        if (slice_is (split (&own, '='), name))
            return !slice_is (trim (own), unquote (value));
    }
    return false;
}

/* How specifically the range matches; '*q' is its weight, 1000 by default. -1 if it does not match or breaks the
 * grammar.
 */
static int match (struct slice range, const char *offered, int *q)
{
    struct slice parameters = { offered, strlen (offered) }, type = split (&parameters, ';');
    int specific = match_name (split (&range, ';'), type), count = 0;

    *q = 1000;
    while (specific >= 0 && range.s) {
        struct slice value = split (&range, ';'), name = split (&value, '=');

        if (!value.s && name.len > 0)
            return -1;
        value = trim (value);
        if (slice_is_text (name, "q"))
            return (*q = read_weight (value)) < 0 ? -1 : specific * MOST_PARAMETERS + count; /* extensions follow */
        if (differs (parameters, name, value))
            return -1;
        count += name.len > 0 && count < MOST_PARAMETERS - 1;
    }
    return specific < 0 ? -1 : specific * MOST_PARAMETERS + count;
}

/* --- all of them --------------------------------------------------------- */

void accept_init (struct accept *a, const char *const *types, size_t n)
{
    *a = (struct accept){ .types = types, .n = n < ACCEPT_TYPES ? n : ACCEPT_TYPES };
    for (size_t i = 0; i < ACCEPT_TYPES; i++)
        a->weights[i].specific = -1;
}

static void weigh (struct accept *a, size_t i, struct slice range)
{
    struct accept_weight *w = &a->weights[i];
    int q, specific = match (range, a->types[i], &q);

    if (specific > w->specific || (specific >= 0 && specific == w->specific && q > w->q))
        *w = (struct accept_weight){ specific, q };
}

void accept_read (struct accept *a, const char *value)
{
    struct slice rest = { value, strlen (value) };

    a->fields++;
    while (rest.s) {
        struct slice range = split (&rest, ',');

        for (size_t i = 0; i < a->n && range.len > 0; i++)
            weigh (a, i, range);
    }
}

size_t accept_choose (const struct accept *a)
{
    size_t best = 0;

    for (size_t i = 1; i < a->n && a->fields > 0; i++) {
        const struct accept_weight *w = &a->weights[i], *b = &a->weights[best];
        int than = b->specific < 0 ? 0 : b->q;

        if (w->specific < 0 || w->q == 0)
            continue;
        if (w->q > than || (w->q == than && w->specific / MOST_PARAMETERS > b->specific / MOST_PARAMETERS))
            best = i;
    }
    return best;
}
