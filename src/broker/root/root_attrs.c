/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* root_attrs.c - the attributes that should be the same on all candidates of rank 0 */
#include "config.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "broker/root/root_attrs.h"

#define HASH_DIGITS 16
#define VALUE_MAX 60 /* bytes of a value that are listed */

/* --- a description -------------------------------------------------------------------------------------- */

struct description {
    uint64_t hash;
    char *text;
    size_t length;
};

static uint64_t add_text (uint64_t hash, const char *s)
{
    do
        hash = (hash ^ (unsigned char)*s) * UINT64_C (0x100000001b3); /* FNV-1a */
    while (*s++);
    return hash;
}

static bool is_shared (const char *name)
{
    static const char *const prefixes[] = { "fluid.",         "flake.",          "compressor.",  "ingest.",
                                            "broker.modules", "root.store-sync", "root.takeover" };

    if (strcmp (name, "fluid.recover-horizon") == 0) /* for one start */
        return false;
    for (size_t i = 0; i < sizeof (prefixes) / sizeof (prefixes[0]); i++)
        if (strncmp (name, prefixes[i], strlen (prefixes[i])) == 0)
            return true;
    return false;
}

static void add_attribute (const char *name, const char *value, void *arg)
{
    struct description *d = arg;
    size_t left = ROOT_ATTRS_SIZE - d->length, n = strlen (name) + strlen (value) + 2;

    if (!is_shared (name))
        return;
    d->hash = add_text (add_text (d->hash, name), value);
    if (n >= left)
        return;
    snprintf (d->text + d->length, left, "%s=%s\n", name, value);
    d->length += n;
}

void root_attrs_describe (struct attrs *attrs, char text[ROOT_ATTRS_SIZE])
{
    struct description d = { .hash = UINT64_C (0xcbf29ce484222325), .text = text, .length = HASH_DIGITS + 1 };
    char hash[HASH_DIGITS + 1];

    text[d.length] = '\0';
    attr_foreach (attrs, add_attribute, &d);
    snprintf (hash, sizeof (hash), "%016" PRIx64, d.hash);
    memcpy (text, hash, HASH_DIGITS);
    text[HASH_DIGITS] = '\n';
}

bool root_attrs_differ (const char *ours, const char *theirs)
{
    return *theirs && strncmp (ours, theirs, HASH_DIGITS) != 0;
}

/* --- the differences ---------------------------------------------------------------------------------------- */

/* An attribute in a description. */
struct line {
    const char *name; /* NULL: there are no more */
    int name_length;
    const char *value;
    int value_length;
};

static struct line read_line (const char *s)
{
    size_t length = strcspn (s, "\n"), name = strcspn (s, "=\n");

    if (name == length)
        return (struct line){ NULL };
    return (struct line){ s, (int)name, s + name + 1, (int)(length - name - 1) };
}

static struct line first_line (const char *text)
{
    const char *s = strchr (text, '\n');

    return read_line (s ? s + 1 : "");
}

static struct line next_line (const struct line *l)
{
    const char *end = l->value + l->value_length;

    return read_line (*end ? end + 1 : end);
}

/* Below 0: 'a' comes first. */
static int compare (const struct line *a, const struct line *b)
{
    int n = a->name_length < b->name_length ? a->name_length : b->name_length;
    int rc;

    if (!a->name || !b->name)
        return a->name ? -1 : b->name != NULL;
    rc = strncmp (a->name, b->name, (size_t)n);
    return rc ? rc : a->name_length - b->name_length;
}

static int value_length (const struct line *l)
{
    return l->value_length < VALUE_MAX ? l->value_length : VALUE_MAX;
}

/* Add an attribute that differs; one of both sides may be NULL. */
static size_t add (char *buf, size_t size, size_t n, const struct line *here, const struct line *there)
{
    static const struct line unset = { .value = "not set", .value_length = 7 };
    const struct line *l = here ? here : there;

    here = here ? here : &unset;
    there = there ? there : &unset;
    if (n < size)
        n += (size_t)snprintf (buf + n, size - n, "%s%.*s (%.*s here, %.*s there)", n > 0 ? ", " : "", l->name_length,
                               l->name, value_length (here), here->value, value_length (there), there->value);
    return n;
}

const char *root_attrs_list (const char *ours, const char *theirs, char *buf, size_t size)
{
    struct line a = first_line (ours), b = first_line (theirs);
    size_t n = 0;

    buf[0] = '\0';
    while (a.name || b.name) {
        int rc = compare (&a, &b);

        if (rc != 0)
            n = add (buf, size, n, rc < 0 ? &a : NULL, rc < 0 ? NULL : &b);
        else if (a.value_length != b.value_length || strncmp (a.value, b.value, (size_t)a.value_length) != 0)
            n = add (buf, size, n, &a, &b);
        if (rc <= 0)
            a = next_line (&a);
        if (rc >= 0)
            b = next_line (&b);
    }
    return buf;
}
