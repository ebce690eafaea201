/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module_run.c - a module in a thread of its own */
#include <errno.h>
#include <syslog.h>

#include "libidtree/private.h"

int idt_module_run (const struct idt_module *m, idt_t *h, int argc, char **argv)
{
    idt_error_t error = { .text = "" };
    void *ctx = NULL;
    int rc = 0;

    if (m->init (h, argc, argv, &ctx, &error) < 0) {
        idt_log (h, LOG_ERR, "%s: %s", m->name, error.text);
        return -1;
    }
    idt_reactor_t *r = idt_get_reactor (h);
    /* EPIPE: nothing more will come, which is how the broker asks a module to end; it may still send. */
    if (!r || (idt_reactor_run (r, IDT_REACTOR_DEFAULT) < 0 && errno != EPIPE))
        rc = -1;
    int errnum = errno;
    m->fini (h, ctx);
    errno = errnum;
    return rc;
}
