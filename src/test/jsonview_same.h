/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* jsonview_same.h - for tests: compares how jsonview and jansson read a text */
#ifndef TEST_JSONVIEW_SAME_H
#define TEST_JSONVIEW_SAME_H

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "libjsonview/jsonview.h"

static bool same_string (const struct jv *v, const char *text, size_t size)
{
    size_t n;
    char *copy = jv_strdup (v, &n);
    bool same = copy && n == size && strlen (copy) == n && memcmp (copy, text, size) == 0 && jv_equals (v, copy)
                && jv_copy (v, NULL, 0) == n;

    free (copy);
    return same;
}

static bool same_value (const struct jv *v, json_t *o);

static bool same_members (const struct jv *v, json_t *o)
{
    void *at = json_object_iter (o);
    const struct jv *key;

    jv_foreach (v, key) {
        const char *name = json_object_iter_key (at);
        if (!same_string (key, name, strlen (name)) || jv_member (v, name) != jv_value (key)
            || key->span != 1 + jv_value (key)->span || !same_value (jv_value (key), json_object_iter_value (at)))
            return false;
        at = json_object_iter_next (o, at);
    }
    return !at && jv_count (v) == json_object_size (o);
}

static bool same_elements (const struct jv *v, json_t *o)
{
    const struct jv *element;
    size_t i = 0;

    jv_foreach (v, element)
        if (!same_value (element, json_array_get (o, i++)))
            return false;
    return i == json_array_size (o) && jv_count (v) == i;
}

/* Whether both values are the same, with their members in the same order. */
static bool same_value (const struct jv *v, json_t *o)
{
    switch (o ? (int)json_typeof (o) : -1) {
    case JSON_OBJECT:
        return jv_is (v, JV_OBJECT) && same_members (v, o);
    case JSON_ARRAY:
        return jv_is (v, JV_ARRAY) && same_elements (v, o);
    case JSON_STRING:
        return jv_is (v, JV_STRING) && same_string (v, json_string_value (o), json_string_length (o));
    case JSON_INTEGER:
        return jv_is (v, JV_INTEGER) && jv_integer (v) == json_integer_value (o)
               && jv_number (v) == json_number_value (o);
    case JSON_REAL:
        return jv_is (v, JV_REAL) && jv_number (v) == json_real_value (o);
    default:
        return jv_is (v, json_is_null (o) ? JV_NULL : json_is_true (o) ? JV_TRUE : JV_FALSE);
    }
}

/* Whether both readers accept a text as the same value, or both refuse it. A text with a NUL may be accepted by jansson
 * only, because jansson does not notice a NUL behind a number.
 */
static bool jsonview_same (struct jv_reader *r, const char *text, size_t size)
{
    struct jv_error e;
    const struct jv *v = jv_read (r, text, size, JSON_PARSER_MAX_DEPTH, 1000000, &e);
    bool refused = !v && errno == EINVAL;
    json_t *o = json_loadb (text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    bool same = v && o ? same_value (v, o) : refused && (!o || memchr (text, '\0', size));

    json_decref (o);
    return same;
}

#endif /* TEST_JSONVIEW_SAME_H */
