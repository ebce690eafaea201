/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* vectors.h - read the golden vectors of other implementations, for tests only
 *
 * The folder is $IDTREE_VECTORS, or t/vectors of the source tree if that is not set. A test program that includes this
 * file is one translation unit, and owns the vectors that it loads until it exits.
 */
#ifndef TESTIDS_VECTORS_H
#define TESTIDS_VECTORS_H

#include <jansson.h>
#include <string.h>

#include "test/tap.h"

#ifndef TESTIDS_SRCDIR
#define TESTIDS_SRCDIR "."
#endif

/* Load NAME.json. Ends the test if it cannot be loaded. */
__attribute__ ((unused)) static json_t *vectors_load (const char *name)
{
    const char *dir = getenv ("IDTREE_VECTORS");
    char path[4096];
    json_error_t error;

    snprintf (path, sizeof (path), "%s/%s.json", dir ? dir : TESTIDS_SRCDIR "/t/vectors", name);
    json_t *vectors = json_load_file (path, JSON_ALLOW_NUL, &error);
    if (!vectors) {
        fprintf (stderr, "%s: %s\n", path, error.text);
        bail_out ("cannot read the vectors");
    }
    return vectors;
}

/* Return the section 'key'. If it is missing, end the test, which would otherwise pass without checking anything. */
__attribute__ ((unused)) static json_t *vectors_section (json_t *vectors, const char *key)
{
    json_t *section = json_object_get (vectors, key);
    if (!section) {
        fprintf (stderr, "no section %s\n", key);
        bail_out ("the vectors lack a section");
    }
    return section;
}

/* The results of a section's rows. A row passes, fails, or is excepted under a name. A row is excepted where the
 * original behaves differently; the row then checks the behaviour of this library.
 */
struct tally {
    const char *section;
    size_t passed, failed;
    struct {
        const char *name;
        size_t count;
    } excepted[4];
};

/* Count a row. 'exception' is the name of its exception, or NULL. */
__attribute__ ((unused)) static void tally (struct tally *t, const char *exception, bool good)
{
    size_t row = t->passed + t->failed, i = 0;

    for (size_t k = 0; k < 4; k++)
        row += t->excepted[k].count;
    while (exception && t->excepted[i].name && strcmp (t->excepted[i].name, exception))
        if (++i == 4)
            bail_out ("a section has more than 4 names of exceptions");
    if (!good) {
        diag ("%s row %zu%s%s", t->section, row, exception ? ": failed: " : "", exception ? exception : "");
        t->failed++;
    }
    else if (exception) {
        t->excepted[i].name = exception;
        t->excepted[i].count++;
    }
    else
        t->passed++;
}

/* Report the three numbers as a test. 'what' is the sentence that the rows must fulfil. */
__attribute__ ((unused)) static void tally_end (const struct tally *t, const char *what)
{
    size_t excepted = 0;

    for (size_t k = 0; k < 4; k++)
        excepted += t->excepted[k].count;
    ok (t->failed == 0 && t->passed + excepted > 0, "section %s: %s: %zu passed, %zu excepted, %zu failed", t->section,
        what, t->passed, excepted, t->failed);
    for (size_t k = 0; k < 4 && t->excepted[k].name; k++)
        diag ("%zu excepted: %s", t->excepted[k].count, t->excepted[k].name);
}

__attribute__ ((unused)) static const char *get_s (json_t *row, const char *key)
{
    return json_string_value (json_object_get (row, key));
}

__attribute__ ((unused)) static int64_t get_i (json_t *row, const char *key)
{
    return json_integer_value (json_object_get (row, key));
}

/* Convert hex digits to bytes. Returns the number of bytes. */
__attribute__ ((unused)) static size_t unhex (const char *hex, void *bytes, size_t size)
{
    size_t n = strlen (hex) / 2;
    for (size_t i = 0; i < n && i < size; i++) {
        unsigned byte = 0;
        sscanf (hex + 2 * i, "%2x", &byte);
        ((unsigned char *)bytes)[i] = (unsigned char)byte;
    }
    return n;
}

/* Whether 'n' bytes equal the bytes of 'hex'. */
__attribute__ ((unused)) static bool is_hex (const void *bytes, size_t n, const char *hex)
{
    unsigned char expected[1024];
    return hex && unhex (hex, expected, sizeof (expected)) == n && !memcmp (bytes, expected, n);
}

#endif /* TESTIDS_VECTORS_H */
