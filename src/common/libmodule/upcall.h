/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* upcall.h - a module's requests to other services, until they are answered
 *
 * A module that ends drops its list with upcalls_stop (); afterwards no callback is called.
 */
#ifndef LIBMODULE_UPCALL_H
#define LIBMODULE_UPCALL_H

#include <stdint.h>
#include <sys/queue.h>

#include <idtree/idtree.h>

#include "libutil/queue/freelist.h"

struct upcall {
    LIST_ENTRY (upcall) link;
    struct upcalls *list;
    void *owner; /* the module */
    idt_future_t *f;
    const idt_msg_t *msg; /* a request that needs this answer (owned), or NULL */
    uint32_t tag;         /* for the owner */
};

/* Must be zero initially. */
struct upcalls {
    LIST_HEAD (, upcall) calls;
    struct freelist spare;
};

/* Keep 'f' (stolen; NULL if the request could not be sent) until it is fulfilled, or for 'timeout_ms' (below 0: no
 * limit). Then 'cb' is called with the future and the upcall, and must call upcall_destroy (). Returns NULL with errno
 * set.
 */
struct upcall *upcall_create (struct upcalls *list, idt_future_t *f, double timeout_ms, idt_future_f cb, void *owner);
void upcall_destroy (struct upcall *up); /* NULL is fine */

/* The module ends: drop all upcalls. Each 'msg' in the list is answered with EHOSTUNREACH and 'text'. */
void upcalls_stop (struct upcalls *list, idt_t *h, const char *text);

#endif /* LIBMODULE_UPCALL_H */
