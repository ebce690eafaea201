/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* attr.c - named attributes of a broker */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/base/attr.h"
#include "libutil/errprintf.h"
#include "libutil/duration.h"
#include "libutil/text.h"

struct attr {
    char *value;
    char *fallback; /* the default; NULL: none, or not known yet */
    char *origin;   /* place in a file; NULL: command line, or not set */
    int flags;
    bool claimed; /* the broker has defined it, or the broker or a module has read it */
    attr_check_f check;
    attr_take_f take;
    void *arg;
    char name[];
};

#define ASKED_MAX 512 /* largest number of undefined names that are remembered */

struct attrs {
    unsigned refs;
    struct attr **attr; /* in order of names; the objects do not move */
    size_t n, room;
    char *asked[ASKED_MAX]; /* names that were read while they did not exist */
    size_t nasked;
    pthread_mutex_t lock; /* for all fields: other threads read while the broker's thread writes */
};

struct attrs *attrs_create (void)
{
    struct attrs *a = calloc (1, sizeof (*a));

    if (!a)
        return NULL;
    a->refs = 1;
    pthread_mutex_init (&a->lock, NULL);
    return a;
}

struct attrs *attrs_ref (struct attrs *a)
{
    assert (a->refs > 0);
    a->refs++;
    return a;
}

void attrs_destroy (struct attrs *a)
{
    if (!a || --a->refs > 0)
        return;
    for (size_t i = 0; i < a->n; i++) {
        free (a->attr[i]->value);
        free (a->attr[i]->fallback);
        free (a->attr[i]->origin);
        free (a->attr[i]);
    }
    while (a->nasked > 0)
        free (a->asked[--a->nasked]);
    free (a->attr);
    pthread_mutex_destroy (&a->lock);
    free (a);
}

/* The index of the first attribute whose name is 'name' or sorts after it. The caller holds the lock. */
static size_t place (const struct attrs *a, const char *name)
{
    size_t from = 0, to = a->n;

    while (from < to) {
        size_t mid = (from + to) / 2;
        if (strcmp (a->attr[mid]->name, name) < 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

static struct attr *find (const struct attrs *a, const char *name)
{
    size_t at = place (a, name);

    return at < a->n && strcmp (a->attr[at]->name, name) == 0 ? a->attr[at] : NULL;
}

static struct attr *lookup (struct attrs *a, const char *name)
{
    pthread_mutex_lock (&a->lock);
    struct attr *attr = find (a, name);
    pthread_mutex_unlock (&a->lock);
    return attr;
}

/* The attribute that follows 'attr' in order of names; 'attr' NULL: the first attribute. */
static struct attr *next (struct attrs *a, const struct attr *attr)
{
    pthread_mutex_lock (&a->lock);
    size_t at = attr ? place (a, attr->name) + 1 : 0;
    struct attr *found = at < a->n ? a->attr[at] : NULL;
    pthread_mutex_unlock (&a->lock);
    return found;
}

static int check_name (const char *name, idt_error_t *errp)
{
    size_t len = strlen (name);

    errno = EINVAL;
    if (len == 0)
        return errprintf (errp, "the name of an attribute is missing");
    if (len > ATTR_NAME_MAX)
        return errprintf (errp, "attribute %.40s...: a name has at most %d bytes, not %zu", name, ATTR_NAME_MAX, len);
    for (size_t i = 0; i < len; i++)
        if (name[i] <= ' ' || name[i] > '~')
            return errprintf (errp, "attribute %.40s: byte %zu of the name is not printable ASCII", name, i + 1);
    return 0;
}

static int check_text (const char *name, const char *value, idt_error_t *errp)
{
    size_t len = strlen (value), good = utf8_span_printable (value, len);

    if (good == len)
        return 0;
    return errsetf (errp, EINVAL, "attribute %s: byte %zu of its value (0x%02x) is %s", name, good + 1,
                    (unsigned char)value[good], utf8_span (value, len) > good ? "a control character" : "not UTF-8");
}

/* Check a value from outside. Values that the broker sets itself may be longer. */
static int check (const char *name, const char *value, idt_error_t *errp)
{
    size_t len = strlen (value);

    if (check_name (name, errp) < 0)
        return -1;
    if (len <= ATTR_VALUE_MAX)
        return check_text (name, value, errp);
    return errsetf (errp, EINVAL, "attribute %s: a value has at most %d bytes, not %zu", name, ATTR_VALUE_MAX, len);
}

static bool make_room (struct attrs *a)
{
    size_t room = a->room + 64;

    if (a->n < a->room)
        return true;
    struct attr **attr = realloc (a->attr, room * sizeof (struct attr *));
    if (!attr)
        return false;
    a->attr = attr;
    a->room = room;
    return true;
}

/* Find the attribute, or make it. The caller holds the lock. NULL without memory. */
static struct attr *find_or_add (struct attrs *a, const char *name)
{
    struct attr *attr = find (a, name);
    size_t size = strlen (name) + 1, at = place (a, name);

    if (attr || !make_room (a) || !(attr = calloc (1, sizeof (*attr) + size)))
        return attr;
    memcpy (attr->name, name, size);
    assert (at <= a->n && a->n < a->room);
    memmove (a->attr + at + 1, a->attr + at, (a->n - at) * sizeof (struct attr *));
    a->attr[at] = attr;
    a->n++;
    return attr;
}

/* Store a value. All other functions store values by this one. */
static int put (struct attrs *a, const char *name, const char *value, idt_error_t *errp)
{
    struct attr *attr;
    char *copy;

    if (check_name (name, errp) < 0 || check_text (name, value, errp) < 0)
        return -1;
    copy = strdup (value);
    pthread_mutex_lock (&a->lock);
    attr = copy ? find_or_add (a, name) : NULL;
    if (attr) {
        free (attr->value);
        attr->value = copy;
    }
    else
        free (copy);
    pthread_mutex_unlock (&a->lock);
    return attr ? 0 : errsetf (errp, ENOMEM, "attribute %s: out of memory", name);
}

static int set_origin (struct attr *attr, const char *origin, idt_error_t *errp)
{
    free (attr->origin);
    attr->origin = origin ? strdup (origin) : NULL;
    return attr->origin || !origin ? 0 : errsetf (errp, ENOMEM, "attribute %s: out of memory", attr->name);
}

static bool was_asked (const struct attrs *a, const char *name)
{
    for (size_t i = 0; i < a->nasked; i++)
        if (strcmp (a->asked[i], name) == 0)
            return true;
    return false;
}

/* Remember that 'name' was read. Does nothing without memory, or at ASKED_MAX names. */
static void note_asked (struct attrs *a, const char *name)
{
    if (a->nasked < ASKED_MAX && !was_asked (a, name) && (a->asked[a->nasked] = strdup (name)))
        a->nasked++;
}

struct attrs *attrs_copy (const struct attrs *a)
{
    struct attrs *copy = attrs_create ();

    for (size_t i = 0; copy && i < a->n; i++) {
        const struct attr *attr = a->attr[i];

        if (put (copy, attr->name, attr->value, NULL) < 0
            || set_origin (find (copy, attr->name), attr->origin, NULL) < 0) {
            attrs_destroy (copy);
            return errset_null (ENOMEM);
        }
    }
    for (size_t i = 0; copy && i < a->nasked; i++)
        note_asked (copy, a->asked[i]);
    return copy;
}

int attr_give_at (struct attrs *a, const char *name, const char *value, const char *origin, idt_error_t *errp)
{
    if (check (name, value, errp) < 0 || put (a, name, value, errp) < 0)
        return -1;
    return set_origin (lookup (a, name), origin, errp);
}

int attr_give (struct attrs *a, const char *name, const char *value, idt_error_t *errp)
{
    return attr_give_at (a, name, value, NULL, errp);
}

const char *attr_origin (struct attrs *a, const char *name)
{
    const struct attr *attr = lookup (a, name);

    return attr ? attr->origin : NULL;
}

int attr_set_origin (struct attrs *a, const char *name, const char *origin, idt_error_t *errp)
{
    struct attr *attr = lookup (a, name);

    return attr ? set_origin (attr, origin, errp) : errsetf (errp, ENOENT, "unknown attribute");
}

int attr_fault (struct attrs *a, const char *name, idt_error_t *errp, const char *fmt, ...)
{
    const struct attr *attr = lookup (a, name);
    char text[sizeof (errp->text)];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (text, sizeof (text), fmt, ap);
    va_end (ap);
    return errsetf (errp, EINVAL, "%s%sattribute %s=%s: %s", attr && attr->origin ? attr->origin : "",
                    attr && attr->origin ? ": " : "", name, attr ? attr->value : "", text);
}

const char *attr_blamed (struct attrs *a, const char *text)
{
    for (const struct attr *attr = next (a, NULL); attr; attr = next (a, attr)) {
        size_t n = strlen (attr->name);

        if (attr->origin && strncmp (text, attr->name, n) == 0 && text[n] == '='
            && strncmp (text + n + 1, attr->value, strlen (attr->value)) == 0)
            return attr->origin;
    }
    return "";
}

/* Store 'value' as the default, if the attribute has none yet. */
static int set_fallback (struct attrs *a, const char *name, const char *value, idt_error_t *errp)
{
    pthread_mutex_lock (&a->lock);
    struct attr *attr = find (a, name);
    if (!attr->fallback)
        attr->fallback = strdup (value);
    bool done = attr->fallback != NULL;
    pthread_mutex_unlock (&a->lock);
    return done ? 0 : errsetf (errp, ENOMEM, "attribute %s: out of memory", name);
}

const char *attr_fallback (struct attrs *a, const char *name)
{
    const struct attr *attr = lookup (a, name);

    return attr ? attr->fallback : NULL;
}

int attr_define (struct attrs *a, const char *name, const char *value, int flags, idt_error_t *errp)
{
    struct attr *attr = lookup (a, name);

    if (attr && attr->claimed)
        return errsetf (errp, EEXIST, "attribute %s is already defined", name);
    if (attr && (flags & ATTR_IMMUTABLE) && value)
        return errsetf (errp, EINVAL, "attribute %s cannot be set: the broker finds its value itself", name);
    if (!attr && !value)
        return 0;
    if ((!attr && put (a, name, value, errp) < 0) || (value && set_fallback (a, name, value, errp) < 0))
        return -1;
    attr = lookup (a, name);
    attr->flags = flags;
    attr->claimed = true;
    return 0;
}

const char *attr_default (struct attrs *a, const char *name, const char *value, idt_error_t *errp)
{
    if ((!lookup (a, name) && attr_give (a, name, value, errp) < 0) || set_fallback (a, name, value, errp) < 0)
        return NULL;
    return attr_get (a, name, NULL);
}

int attr_own (struct attrs *a, const char *name, attr_check_f may_take, attr_take_f take, void *arg, idt_error_t *errp)
{
    struct attr *attr = lookup (a, name);
    idt_error_t why;

    if (!attr)
        return errsetf (errp, ENOENT, "unknown attribute");
    if (may_take (attr->value, arg, &why) < 0)
        return attr_fault (a, name, errp, "%s", why.text);
    attr->check = may_take;
    attr->take = take;
    attr->arg = arg;
    take (name, attr->value, arg);
    return 0;
}

/* Mark the attribute as claimed, because the broker or a module uses it. */
static struct attr *claim (struct attrs *a, const char *name)
{
    struct attr *attr = find (a, name);

    if (!attr) {
        note_asked (a, name);
        return errset_null (ENOENT);
    }
    attr->claimed = true;
    return attr;
}

const char *attr_get (struct attrs *a, const char *name, int *flags)
{
    pthread_mutex_lock (&a->lock);
    struct attr *attr = claim (a, name);
    pthread_mutex_unlock (&a->lock);
    if (attr && flags)
        *flags = attr->flags;
    return attr ? attr->value : NULL;
}

const char *attr_look (struct attrs *a, const char *name, int *flags)
{
    const struct attr *attr = lookup (a, name);

    if (!attr)
        return errset_null (ENOENT);
    *flags = attr->flags;
    return attr->value;
}

bool attr_is_known (struct attrs *a, const char *name)
{
    pthread_mutex_lock (&a->lock);
    const struct attr *attr = find (a, name);
    bool known = (attr && attr->claimed) || was_asked (a, name);
    pthread_mutex_unlock (&a->lock);
    return known;
}

char *attr_read (struct attrs *a, const char *name)
{
    pthread_mutex_lock (&a->lock);
    struct attr *attr = claim (a, name);
    char *copy = attr ? strdup (attr->value) : NULL;
    pthread_mutex_unlock (&a->lock);
    return copy;
}

int attr_u32 (struct attrs *a, const char *name, const char *unless_given, uint32_t min, uint32_t max, uint32_t *value,
              idt_error_t *errp)
{
    const char *s = attr_default (a, name, unless_given, errp);
    uint64_t n;

    assert (min <= max);
    if (!s)
        return -1;
    if (parse_number (s, min, max, &n) < 0)
        return attr_fault (a, name, errp, "must be a number from %u to %u", min, max);
    *value = n;
    return 0;
}

int attr_switch (struct attrs *a, const char *name, const char *unless_given, bool *value, idt_error_t *errp)
{
    const char *s = attr_default (a, name, unless_given, errp);

    if (!s)
        return -1;
    return parse_switch (s, value) == 0 ? 0 : attr_fault (a, name, errp, "must be " SWITCH_WORDS);
}

static const struct unit {
    const char *suffix;
    double bytes;
} size_units[] = { { "", 1 }, { "k", 1 << 10 }, { "K", 1 << 10 }, { "M", 1 << 20 }, { "G", 1 << 30 } };

/* Parse digits with an optional fraction and a unit. strtod () also takes signs, exponents and hex digits; these are
 * refused here.
 */
static int parse_size (const char *s, double *bytes)
{
    char *end;
    double x = strtod (s, &end);

    if (end == s || !isfinite (x) || end != s + strspn (s, "0123456789."))
        return -1;
    for (size_t i = 0; i < sizeof (size_units) / sizeof (size_units[0]); i++)
        if (strcmp (end, size_units[i].suffix) == 0) {
            *bytes = x * size_units[i].bytes;
            return 0;
        }
    return -1;
}

int attr_size (struct attrs *a, const char *name, const char *unless_given, uint64_t min, uint64_t max, uint64_t *value,
               idt_error_t *errp)
{
    const char *s = attr_default (a, name, unless_given, errp);
    double x;

    if (!s)
        return -1;
    if (parse_size (s, &x) < 0 || x < (double)min || x > (double)max)
        return attr_fault (a, name, errp, "must be a size from %ju to %ju (k, M and G may follow)", (uintmax_t)min,
                           (uintmax_t)max);
    *value = x;
    return 0;
}

int attr_seconds (struct attrs *a, const char *name, const char *unless_given, double min, double max, double *value,
                  idt_error_t *errp)
{
    const char *s = attr_default (a, name, unless_given, errp);
    uint64_t ms;

    if (!s)
        return -1;
    if (parse_duration (s, max * 1E3, &ms) < 0 || ms < min * 1E3)
        return attr_fault (a, name, errp, "must be a time from %gs to %gs (ms, s, m, h or d may follow)", min, max);
    *value = ms / 1E3;
    return 0;
}

int attr_update (struct attrs *a, const char *name, const char *value, idt_error_t *errp)
{
    if (put (a, name, value, errp) < 0)
        return -1;
    lookup (a, name)->claimed = true;
    return 0;
}

int attr_check (struct attrs *a, const char *name, const char *value, idt_error_t *errp)
{
    const struct attr *attr = lookup (a, name);
    idt_error_t why;

    if (!attr)
        return errsetf (errp, ENOENT, "unknown attribute");
    if (!(attr->flags & ATTR_SETTABLE))
        return errsetf (errp, EINVAL, "attribute may not be updated");
    if (check (name, value, errp) < 0)
        return -1;
    if (attr->check && attr->check (value, attr->arg, &why) < 0)
        return errsetf (errp, EINVAL, "attribute %s=%s: %s", name, value, why.text);
    return 0;
}

int attr_set (struct attrs *a, const char *name, const char *value, idt_error_t *errp)
{
    const struct attr *attr;

    if (attr_check (a, name, value, errp) < 0 || put (a, name, value, errp) < 0)
        return -1;
    attr = lookup (a, name);
    if (attr->take)
        attr->take (name, attr->value, attr->arg);
    return 0;
}

void attr_foreach (struct attrs *a, void (*cb) (const char *name, const char *value, void *arg), void *arg)
{
    for (struct attr *attr = next (a, NULL); attr; attr = next (a, attr))
        cb (attr->name, attr->value, arg);
}

static bool is_claimed (struct attrs *a, const struct attr *attr)
{
    pthread_mutex_lock (&a->lock);
    bool claimed = attr->claimed;
    pthread_mutex_unlock (&a->lock);
    return claimed;
}

const char *attr_unclaimed (struct attrs *a, bool (*excused) (const char *name, void *arg), void *arg)
{
    struct attr *attr = next (a, NULL);

    while (attr && (is_claimed (a, attr) || (excused && excused (attr->name, arg))))
        attr = next (a, attr);
    return attr ? attr->name : NULL;
}
