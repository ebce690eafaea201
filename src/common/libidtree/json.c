/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* json.c - JSON payloads: objects, stored as text with its NUL
 *
 * jsonview reads a text, and this file then makes jansson values of the result. For long strings both together take a
 * hundredth of the time of jansson's own reader.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <idtree/rpc.h>

#include "libidtree/json.h"
#include "libjsonview/jsonview.h"
#include "libutil/errprintf.h"

#define MAX_DEPTH 1024

static json_t *refuse (idt_error_t *errp, const char *why)
{
    errno = EPROTO;
    errprintf (errp, "%s", why);
    return NULL;
}

/* --- values of jansson ---------------------------------------------------------------------- */

static json_t *value_of (const struct jv *v);

static json_t *string_of (const struct jv *v)
{
    size_t size;
    char *text;
    json_t *o;

    if (!v->escaped)
        return json_stringn_nocheck (v->text, v->size);
    if (!(text = jv_strdup (v, &size)))
        return NULL;
    o = json_stringn_nocheck (text, size);
    free (text);
    return o;
}

static json_t *array_of (const struct jv *v)
{
    json_t *array = json_array ();
    const struct jv *element;

    jv_foreach (v, element)
        json_add_new (&array, value_of (element));
    return array;
}

static json_t *object_of (const struct jv *v)
{
    json_t *object = json_object ();
    const struct jv *key;

    jv_foreach (v, key) {
        char *name = jv_strdup (key, NULL);

        if (!name || json_object_set_new_nocheck (object, name, value_of (jv_value (key))) < 0)
            json_spoil (&object);
        free (name);
    }
    return object;
}

/* Make a jansson value. NULL: out of memory. */
static json_t *value_of (const struct jv *v)
{
    switch ((enum jv_type)v->type) {
    case JV_OBJECT:
        return object_of (v);
    case JV_ARRAY:
        return array_of (v);
    case JV_STRING:
        return string_of (v);
    case JV_INTEGER:
        return json_integer (jv_integer (v));
    case JV_REAL:
        return json_real (jv_number (v));
    case JV_TRUE:
        return json_true ();
    case JV_FALSE:
        return json_false ();
    case JV_NULL:
        break;
    }
    return json_null ();
}

/* --- payloads ------------------------------------------------------------------------------- */

json_t *idt_msg_json (const idt_msg_t *msg, idt_error_t *errp)
{
    struct jv_reader r = JV_READER_INIT;
    const struct jv *v;
    struct jv_error error;
    const char *s;
    json_t *o = NULL;

    if (!idt_msg_has_flag (msg, IDT_MSGFLAG_PAYLOAD))
        return refuse (errp, "message has no payload");
    if (!(s = idt_msg_string (msg)))
        return refuse (errp, "payload is not a NUL-terminated string");
    if (!(v = jv_read (&r, s, strlen (s), MAX_DEPTH, JV_VALUES_LIMIT, &error)))
        refuse (errp, errno == EINVAL ? error.text : strerror (errno));
    else if (!jv_is (v, JV_OBJECT))
        refuse (errp, "payload is not a JSON object");
    else if (!(o = value_of (v)))
        refuse (errp, "out of memory");
    jv_reader_fini (&r);
    return o;
}

bool json_msg_is_large (const idt_msg_t *msg, uint32_t values)
{
    struct jv_reader r = JV_READER_INIT;
    const char *s = idt_msg_string (msg);
    struct jv_error error;
    bool much = s && !jv_read (&r, s, strlen (s), MAX_DEPTH, values, &error) && errno == EINVAL
                && error.fault == JV_VALUES;

    jv_reader_fini (&r);
    return much;
}

int json_msg_vunpack (const idt_msg_t *msg, json_t **o, idt_error_t *errp, const char *fmt, va_list ap)
{
    json_error_t error;
    json_t *obj = idt_msg_json (msg, errp);

    if (obj && json_vunpack_ex (obj, &error, 0, fmt, ap) < 0) {
        json_decref (obj);
        obj = refuse (errp, error.text);
    }
    *o = obj;
    return obj ? 0 : -1;
}

int idt_msg_unpack (const idt_msg_t *msg, json_t **o, idt_error_t *errp, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    int rc = json_msg_vunpack (msg, o, errp, fmt, ap);
    va_end (ap);
    return rc;
}

char *json_vpack_text (idt_error_t *errp, const char *fmt, va_list ap)
{
    json_error_t error;
    json_t *o = json_vpack_ex (&error, 0, fmt, ap);

    if (!o) {
        errno = json_error_code (&error) == json_error_out_of_memory ? ENOMEM : EINVAL;
        errprintf (errp, "%s", error.text);
        return NULL;
    }
    char *s = json_dumps (o, JSON_COMPACT);
    json_decref (o);
    if (!s) {
        errno = ENOMEM;
        errprintf (errp, "out of memory");
    }
    return s;
}
