/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* upcall.h - what a module has asked of others, until it is answered
 *
 * Whoever ends before the answer comes drops what is in his list: no callback is called any more then.
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
    const idt_msg_t *msg; /* a request that is answered with what is heard (owned); NULL: none */
    uint32_t tag;         /* the owner's */
};

/* All zero at first. */
struct upcalls {
    LIST_HEAD (, upcall) calls;
    struct freelist spare;
};

/* Keep 'f' (stolen; NULL: it could not be sent) until it is fulfilled, 'timeout_ms' at most (below 0: however long):
 * then 'cb' is called with it and the upcall, and ends with upcall_destroy ().  Returns NULL with errno set.
 */
struct upcall *upcall_create (struct upcalls *list, idt_future_t *f, double timeout_ms, idt_future_f cb, void *owner);
void upcall_destroy (struct upcall *up); /* NULL is fine */

/* The module ends: drop all.  Requests that were to be answered with what is heard fail with EHOSTUNREACH and 'text'.
 */
void upcalls_stop (struct upcalls *list, idt_t *h, const char *text);

#endif /* LIBMODULE_UPCALL_H */
