/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* event.c - subscribing and publishing
 *
 * The broker filters: each connection gets what it subscribed to.  Rank 0 alone numbers and
 * publishes.
 */
#include <stdlib.h>
#include <string.h>

#include "libidtree/private.h"
#include "libutil/base64.h"

idt_future_t *idt_event_subscribe (idt_t *h, const char *prefix)
{
    return idt_rpc_pack (h, "event.subscribe", IDT_NODEID_ANY, 0, "{s:s}", "topic", prefix);
}

idt_future_t *idt_event_unsubscribe (idt_t *h, const char *prefix)
{
    return idt_rpc_pack (h, "event.unsubscribe", IDT_NODEID_ANY, 0, "{s:s}", "topic", prefix);
}

idt_future_t *idt_event_publish (idt_t *h, const char *topic, int flags, const char *s)
{
    if (!s)
        return idt_rpc_pack (h, "event.publish", 0, 0, "{s:s s:i}", "topic", topic, "flags", flags);
    size_t size = strlen (s) + 1; /* with its NUL */
    char *text = malloc (BASE64_ENCODED_SIZE (size) + 1);
    if (!text)
        return NULL;
    base64_encode (s, size, text);
    idt_future_t *f = idt_rpc_pack (h, "event.publish", 0, 0, "{s:s s:i s:s}", "topic", topic, "flags", flags,
                                    "payload", text);
    free (text);
    return f;
}
