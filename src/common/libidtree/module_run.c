/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module_run.c - run a module in its own thread */
#include <errno.h>

#include "libidtree/private.h"
#include "libutil/errprintf.h"

static int tell (idt_t *h, int errnum, const char *text)
{
    int rc = h->transport->started ? h->transport->started (h->impl, errnum, text) : 0;

    if (errnum != 0)
        errno = errnum;
    return rc;
}

int idt_module_run (const struct idt_module *m, idt_t *h, int argc, char **argv)
{
    idt_error_t error = { .text = "" };
    void *ctx = NULL;
    int rc = 0;

    if (m->init (h, argc, argv, &ctx, &error) < 0) {
        tell (h, errno ? errno : EIO, error.text);
        return -1;
    }
    idt_reactor_t *r = idt_get_reactor (h);
    /* EPIPE: no further message will arrive; this is how the broker asks a module to end. The module may still send. */
    if (!r || tell (h, 0, "") < 0 || (idt_reactor_run (r, IDT_REACTOR_DEFAULT) < 0 && errno != EPIPE))
        rc = -1;
    int errnum = errno;
    m->fini (h, ctx);
    errno = errnum;
    return rc;
}

/* --- services of the broker for modules ------------------------------------------------------- */

int idt_module_keep (idt_t *h, const void *data, size_t size)
{
    if (size == 0 || size > IDT_MODULE_KEEP_MAX)
        return errset (size == 0 ? EINVAL : EMSGSIZE);
    if (h->transport->keep)
        return h->transport->keep (h->impl, data, size);
    return errset (ENOTSUP);
}

const void *idt_module_kept (idt_t *h, size_t *size)
{
    return h->transport->kept ? h->transport->kept (h->impl, size) : NULL;
}

int idt_overlay_attach (idt_t *h, const struct idt_overlay_ops *ops, void *arg)
{
    if (h->transport->overlay_attach)
        return h->transport->overlay_attach (h->impl, ops, arg);
    return errset (ENOTSUP);
}

bool idt_overlay_covers (idt_t *h, const idt_msg_t *request, uint32_t rank)
{
    return h->transport->overlay_covers && h->transport->overlay_covers (h->impl, request, rank);
}
