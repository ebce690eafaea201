/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* open.c - open a handle: the default URI, and options */
#include "config.h"

#include <errno.h>

#include "libidtree/private.h"
#include "libpage/page_client.h"
#include "libutil/errprintf.h"

const char *idt_default_uri (void)
{
    return call_default_uri ();
}

idt_t *idt_open_ex (const char *uri, const struct idt_open_options *options, idt_error_t *errp)
{
    static const struct idt_open_options defaults;
    const struct idt_open_options *o = options ? options : &defaults;
    bool nowhere = !uri && !call_is_told ();

    if ((o->flags & ~(IDT_O_RECONNECT | IDT_O_NORECONNECT | IDT_O_NOSHM)) != 0
        || (o->flags & (IDT_O_RECONNECT | IDT_O_NORECONNECT)) == (IDT_O_RECONNECT | IDT_O_NORECONNECT)) {
        errsetf (
            errp, EINVAL,
            "flags 0x%x are not valid: use IDT_O_RECONNECT or IDT_O_NORECONNECT or neither, and optionally IDT_O_NOSHM",
            (unsigned)o->flags);
        return NULL;
    }
    idt_t *h = connection_open (uri ? uri : idt_default_uri (), o, errp);
    if (!h && nowhere && (errno == ENOENT || errno == ECONNREFUSED))
        errprintf (errp,
                   "no instance: neither IDTREE_URI nor FLUX_URI is set, and no broker listens at " CALL_DEFAULT_URI);
    if (h)
        idt_set_interrupt (h, o->interrupt, o->arg);
    return h;
}

idt_t *idt_open (const char *uri, idt_error_t *errp)
{
    return idt_open_ex (uri, NULL, errp);
}
