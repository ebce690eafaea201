/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* upcall.c - a module's requests to other services, until they are answered */
#include <errno.h>
#include <stdlib.h>

#include "libmodule/respond.h"
#include "libmodule/upcall.h"

void upcall_destroy (struct upcall *up)
{
    if (!up)
        return;
    LIST_REMOVE (up, link);
    idt_future_destroy (up->f);
    idt_msg_unref (up->msg);
    freelist_put (&up->list->spare, up);
}

struct upcall *upcall_create (struct upcalls *list, idt_future_t *f, double timeout_ms, idt_future_f cb, void *owner)
{
    struct upcall *up = NULL;

    if (list->spare.size == 0)
        freelist_init (&list->spare, sizeof (*up));
    if (!f || !(up = freelist_get (&list->spare))) {
        idt_future_destroy (f);
        return NULL;
    }
    *up = (struct upcall){ .list = list, .owner = owner, .f = f };
    LIST_INSERT_HEAD (&list->calls, up, link);
    if (idt_future_then (f, timeout_ms, cb, up) < 0) {
        upcall_destroy (up);
        return NULL;
    }
    return up;
}

void upcalls_stop (struct upcalls *list, idt_t *h, const char *text)
{
    struct upcall *up;

    while ((up = LIST_FIRST (&list->calls))) {
        if (up->msg)
            module_respond_error (h, up->msg, EHOSTUNREACH, text);
        upcall_destroy (up);
    }
    freelist_fini (&list->spare);
}
