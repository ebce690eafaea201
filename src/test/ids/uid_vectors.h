/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uid_vectors.h - convert the values in uid.json, for tests only
 *
 * Vectors whose fingerprint does not have 4 bytes have no value here, because the original makes malformed ids of them.
 */
#ifndef UID_VECTORS_H
#define UID_VECTORS_H

#include <errno.h>

#include "test/ids/vectors.h"
#include "idtree/uid.h"

#define OWN_NODE "uid@127.0.0.1"
#define NO_FINGERPRINT "the original accepts fingerprints that do not have 4 bytes; they are not valid here"

static inline bool vector_node (json_t *node, struct uid_node *out)
{
    const char *atom = get_s (node, "atom"), *hex = get_s (node, "hex");
    unsigned fingerprint = 0;

    if (atom) {
        *out = uid_node_named (atom);
        return true;
    }
    if (!hex || strlen (hex) != 8)
        return false;
    sscanf (hex, "%8x", &fingerprint);
    *out = (struct uid_node){ .fingerprint = fingerprint };
    return true;
}

static inline bool vector_value (json_t *value, struct uid *out)
{
    json_t *node = json_object_get (value, "node"), *t = json_object_get (value, "t");
    struct uid id = { .kind = node ? UID_GLOBAL : UID_LOCAL };

    if (node && !vector_node (node, &id.node))
        return false;
    id.a = json_integer_value (json_array_get (t, 0));
    id.b = json_integer_value (json_array_get (t, 1));
    id.c = json_integer_value (json_array_get (t, 2));
    id.sequence = get_i (value, "seq");
    *out = id;
    return true;
}

static inline bool same_value (const struct uid *a, const struct uid *b)
{
    return uid_compare (a, b) == 0;
}

static inline bool is_value (const struct uid *id, json_t *expected)
{
    struct uid value;
    return expected && vector_value (expected, &value) && same_value (id, &value);
}

#endif /* UID_VECTORS_H */
