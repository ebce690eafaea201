/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* open.c - a handle is opened: where, if nobody says it, and how
 *
 * Here and nowhere else the library reads the environment.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "libidtree/private.h"
#include "libutil/errprintf.h"

#define DEFAULT_URI "local:///run/idtree/local"
#define TIMEOUT_MS 30000.

static const char *variable (const char *name)
{
    const char *s = getenv (name);

    return s && *s ? s : NULL; /* one that is set to nothing is unset */
}

const char *idt_default_uri (void)
{
    const char *uri = variable ("IDTREE_URI");

    if (!uri)
        uri = variable ("FLUX_URI");
    return uri ? uri : DEFAULT_URI;
}

idt_t *idt_open_within (const char *uri, int flags, double timeout_ms, idt_error_t *errp)
{
    bool nowhere = !uri && !variable ("IDTREE_URI") && !variable ("FLUX_URI");

    if ((flags & ~(IDT_O_RECONNECT | IDT_O_ONCE | IDT_O_NOSHM)) != 0
        || (flags & (IDT_O_RECONNECT | IDT_O_ONCE)) == (IDT_O_RECONNECT | IDT_O_ONCE)) {
        errsetf (errp, EINVAL, "a handle is opened with IDT_O_RECONNECT, or IDT_O_ONCE, or neither, and IDT_O_NOSHM");
        return NULL;
    }
    idt_t *h = connection_open (uri ? uri : idt_default_uri (), flags, timeout_ms, errp);
    if (!h && nowhere && (errno == ENOENT || errno == ECONNREFUSED))
        errprintf (errp, "no instance: neither IDTREE_URI nor FLUX_URI is set, and no broker listens at " DEFAULT_URI);
    return h;
}

idt_t *idt_open_with (const char *uri, int flags, idt_error_t *errp)
{
    return idt_open_within (uri, flags, TIMEOUT_MS, errp);
}

idt_t *idt_open (const char *uri, idt_error_t *errp)
{
    return idt_open_with (uri, 0, errp);
}
