/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module_run.c - a module in a thread of its own */
#include <errno.h>

#include "libidtree/private.h"

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
    /* EPIPE: nothing more will come, which is how the broker asks a module to end; it may still
     * send.
     */
    if (!r || tell (h, 0, "") < 0 || (idt_reactor_run (r, IDT_REACTOR_DEFAULT) < 0 && errno != EPIPE))
        rc = -1;
    int errnum = errno;
    m->fini (h, ctx);
    errno = errnum;
    return rc;
}
