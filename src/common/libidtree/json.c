/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* json.c - JSON in payloads: objects, as text with its NUL */
#include <errno.h>
#include <stdlib.h>

#include "libidtree/private.h"
#include "libutil/errprintf.h"

/* Say what is wrong with the payload. */
static json_t *refuse (idt_error_t *errp, const char *why)
{
    errno = EPROTO;
    errprintf (errp, "%s", why);
    return NULL;
}

json_t *idt_msg_json (const idt_msg_t *msg, idt_error_t *errp)
{
    json_error_t error;
    const char *s;
    json_t *o;

    if (!idt_msg_has_flag (msg, IDT_MSGFLAG_PAYLOAD))
        return refuse (errp, "message has no payload");
    if (!(s = idt_msg_string (msg)))
        return refuse (errp, "payload is not a NUL-terminated string");
    if (!(o = json_loads (s, 0, &error)))
        return refuse (errp, error.text);
    if (!json_is_object (o)) {
        json_decref (o);
        return refuse (errp, "payload is not a JSON object");
    }
    return o;
}

int msg_vunpack (const idt_msg_t *msg, json_t **o, idt_error_t *errp, const char *fmt, va_list ap)
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
    int rc = msg_vunpack (msg, o, errp, fmt, ap);
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
