/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document.h - what a handle does for the documents that are attached to it.  Not installed. */
#ifndef LIBIDTREE_DOCUMENT_H
#define LIBIDTREE_DOCUMENT_H

#include <idtree/handle.h>

/* Show an event to the documents of the handle, before the handlers. */
void document_dispatch (idt_t *h, const idt_msg_t *msg);

#endif /* LIBIDTREE_DOCUMENT_H */
