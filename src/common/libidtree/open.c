/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* open.c - a handle is opened: where, if nobody says it, and how */
#include "config.h"

#include <errno.h>

#include "libidtree/private.h"
#include "libpage/call.h"
#include "libutil/errprintf.h"

#define TIMEOUT_MS 30000.

const char *idt_default_uri (void)
{
    return call_default_uri ();
}

idt_t *idt_open_asking (const char *uri, int flags, double timeout_ms, idt_interrupt_f cb, void *arg, idt_error_t *errp)
{
    bool nowhere = !uri && !call_is_told ();

    if ((flags & ~(IDT_O_RECONNECT | IDT_O_ONCE | IDT_O_NOSHM)) != 0
        || (flags & (IDT_O_RECONNECT | IDT_O_ONCE)) == (IDT_O_RECONNECT | IDT_O_ONCE)) {
        errsetf (errp, EINVAL, "a handle is opened with IDT_O_RECONNECT, or IDT_O_ONCE, or neither, and IDT_O_NOSHM");
        return NULL;
    }
    idt_t *h = connection_open (uri ? uri : idt_default_uri (), flags, timeout_ms, cb, arg, errp);
    if (!h && nowhere && (errno == ENOENT || errno == ECONNREFUSED))
        errprintf (errp,
                   "no instance: neither IDTREE_URI nor FLUX_URI is set, and no broker listens at " CALL_DEFAULT_URI);
    if (h)
        idt_set_interrupt (h, cb, arg);
    return h;
}

idt_t *idt_open_within (const char *uri, int flags, double timeout_ms, idt_error_t *errp)
{
    return idt_open_asking (uri, flags, timeout_ms, NULL, NULL, errp);
}

idt_t *idt_open_with (const char *uri, int flags, idt_error_t *errp)
{
    return idt_open_within (uri, flags, TIMEOUT_MS, errp);
}

idt_t *idt_open (const char *uri, idt_error_t *errp)
{
    return idt_open_with (uri, 0, errp);
}
