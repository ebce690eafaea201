/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* json.h - JSON: payloads, and values that are built part by part */
#ifndef LIBIDTREE_JSON_H
#define LIBIDTREE_JSON_H

#include <stdarg.h>

#include <jansson.h>

#include <idtree/error.h>
#include <idtree/msg.h>

/* --- payloads ------------------------------------------------------------------------------- */

/* Pack JSON text. Returns a string for free (), or NULL with the reason in 'errp' and errno EINVAL (bad format, text
 * that is not UTF-8) or ENOMEM.
 */
char *json_vpack_text (idt_error_t *errp, const char *fmt, va_list ap);

/* Whether a JSON text in the payload has more than 'values' values: their number determines how long reading the text
 * takes.
 */
bool json_msg_is_large (const idt_msg_t *msg, uint32_t values);

/* As idt_msg_unpack (). */
int json_msg_vunpack (const idt_msg_t *msg, json_t **o, idt_error_t *errp, const char *fmt, va_list ap);

/* --- building ------------------------------------------------------------------------------- */

/* If one part cannot be made, the whole value becomes NULL. So the caller checks for an error only once, at the end,
 * and no response is sent without one of its parts.
 */
static inline void json_spoil (json_t **o)
{
    json_decref (*o);
    *o = NULL;
}

/* Add 'part' (stolen) to an array. If 'part' is NULL because it could not be made, the array becomes NULL. */
static inline void json_add_new (json_t **array, json_t *part)
{
    if (json_array_append_new (*array, part) < 0)
        json_spoil (array);
}

/* Set 'part' (stolen) in an object. If 'part' is NULL because it could not be made, the object becomes NULL. */
static inline void json_put_new (json_t **object, const char *key, json_t *part)
{
    if (json_object_set_new (*object, key, part) < 0)
        json_spoil (object);
}

#endif /* LIBIDTREE_JSON_H */
