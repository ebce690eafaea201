/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* vectors.h - read the golden vectors of other implementations, for tests only
 *
 * The folder is $IDTREE_VECTORS, else t/vectors of the source tree.  A test program is one
 * translation unit and owns what it loads until it exits.
 */
#ifndef TESTIDS_VECTORS_H
#define TESTIDS_VECTORS_H

#include <jansson.h>
#include <string.h>

#include "libutil/tap.h"

#ifndef TESTIDS_SRCDIR
#define TESTIDS_SRCDIR "."
#endif

/* Load NAME.json, or end the test. */
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

/* The section 'key', or end the test: a section that is missing would pass unseen. */
__attribute__ ((unused)) static json_t *vectors_section (json_t *vectors, const char *key)
{
    json_t *section = json_object_get (vectors, key);
    if (!section) {
        fprintf (stderr, "no section %s\n", key);
        bail_out ("the vectors lack a section");
    }
    return section;
}

__attribute__ ((unused)) static const char *get_s (json_t *row, const char *key)
{
    return json_string_value (json_object_get (row, key));
}

__attribute__ ((unused)) static int64_t get_i (json_t *row, const char *key)
{
    return json_integer_value (json_object_get (row, key));
}

/* Turn hex digits to bytes.  Returns their number. */
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

/* True when 'n' bytes are those of 'hex'. */
__attribute__ ((unused)) static bool is_hex (const void *bytes, size_t n, const char *hex)
{
    unsigned char expected[1024];
    return hex && unhex (hex, expected, sizeof (expected)) == n && !memcmp (bytes, expected, n);
}

#endif /* TESTIDS_VECTORS_H */
