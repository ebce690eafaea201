/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* attr.c - attributes of the broker
 *
 * Each response with a value is kept, since the caller borrows the value. An attribute that the broker marks immutable
 * is requested only once.
 */
#include <errno.h>
#include <string.h>

#include "libidtree/private.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"

#define ATTR_IMMUTABLE 1 /* "flags" of attr.get */

const char *attr_peek (idt_t *h, const char *name)
{
    const char *value;
    int flags = 0;

    if (h->transport->attr_get)
        return h->transport->attr_get (h->impl, name);
    if (json_unpack (json_object_get (h->attrs, name), "{s:s s?i}", "value", &value, "flags", &flags) < 0)
        return NULL;
    return flags & ATTR_IMMUTABLE ? value : NULL;
}

void attr_forget (idt_t *h)
{
    const char *name;
    json_t *answer;

    json_object_foreach (h->attrs, name, answer)
        json_object_del (answer, "flags");
    h->has_rank = false;
}

/* Returns the value in the response to attr.get or attr.define, and keeps the response; destroys the future. */
static const char *keep_answer (idt_t *h, const char *name, idt_future_t *f)
{
    const char *value = NULL;
    json_t *answer;

    if (f && idt_rpc_get_unpack (f, "o", &answer) == 0) {
        if (!(value = json_string_value (json_object_get (answer, "value"))))
            errno = EPROTO;
        else if (json_object_set (h->attrs, name, answer) < 0)
            value = errset_null (ENOMEM);
    }
    idt_future_destroy (f);
    return value;
}

const char *idt_attr_get (idt_t *h, const char *name)
{
    const char *value = attr_peek (h, name);

    if (value || h->transport->attr_get)
        return value;
    return keep_answer (h, name, idt_rpc_pack (h, "attr.get", IDT_NODEID_ANY, RPC_TYPED, "{s:s}", "name", name));
}

const char *idt_attr_define (idt_t *h, const char *name, const char *value)
{
    if (h->transport->attr_define)
        return h->transport->attr_define (h->impl, name, value);
    return keep_answer (h, name,
                        idt_rpc_pack (h, "attr.define", IDT_NODEID_ANY, 0, "{s:s s:s}", "name", name, "value", value));
}

int idt_attr_set (idt_t *h, const char *name, const char *value, idt_error_t *errp)
{
    idt_future_t *f = idt_rpc_pack (h, "attr.set", IDT_NODEID_ANY, RPC_TYPED, "{s:s s:s}", "name", name, "value",
                                    value);
    int rc = f ? idt_rpc_get (f, NULL) : -1;

    if (rc < 0)
        errprintf (errp, "%s: %s", name, f && idt_future_is_ready (f) ? idt_future_error (f) : strerror (errno));
    idt_future_destroy (f);
    return rc;
}

static int get_number (idt_t *h, const char *name, uint32_t *number)
{
    const char *value = idt_attr_get (h, name);
    uint64_t n;

    if (!value)
        return -1;
    if (parse_number (value, 0, UINT32_MAX, &n) < 0)
        return errset (EPROTO);
    *number = (uint32_t)n;
    return 0;
}

/* Cached, since each request to the parent contains the rank. */
int idt_get_rank (idt_t *h, uint32_t *rank)
{
    if (!h->has_rank && get_number (h, "rank", &h->rank) < 0)
        return -1;
    h->has_rank = true;
    *rank = h->rank;
    return 0;
}

int idt_get_size (idt_t *h, uint32_t *size)
{
    return get_number (h, "size", size);
}
