/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* json_build.h - JSON that is built part by part: if one part cannot be made, the whole becomes NULL
 *
 * The caller checks for an error once, at the end, and no response silently lacks a part.
 */
#ifndef LIBIDTREE_JSON_BUILD_H
#define LIBIDTREE_JSON_BUILD_H

#include <jansson.h>

static inline void json_spoil (json_t **o)
{
    json_decref (*o);
    *o = NULL;
}

/* Add 'part' (stolen; NULL: it could not be made) to an array. */
static inline void json_add_new (json_t **array, json_t *part)
{
    if (json_array_append_new (*array, part) < 0)
        json_spoil (array);
}

/* Set 'part' (stolen; NULL: it could not be made) in an object. */
static inline void json_put_new (json_t **object, const char *key, json_t *part)
{
    if (json_object_set_new (*object, key, part) < 0)
        json_spoil (object);
}

#endif /* LIBIDTREE_JSON_BUILD_H */
