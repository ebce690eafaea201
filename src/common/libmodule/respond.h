/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* respond.h - a module's answers: one that cannot be made is an error to who asked (idt_respond ()), and is logged */
#ifndef LIBMODULE_RESPOND_H
#define LIBMODULE_RESPOND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include <idtree/idtree.h>

/* Answer a request.  's' and 'text' may be NULL; 's' of _new and 'o' are stolen, and NULL where there was no memory for
 * them, which is the answer then.
 */
void module_respond (idt_t *h, const idt_msg_t *msg, const char *s);
void module_respond_new (idt_t *h, const idt_msg_t *msg, char *s);
void module_respond_raw (idt_t *h, const idt_msg_t *msg, const void *data, size_t size);
void module_respond_object (idt_t *h, const idt_msg_t *msg, json_t *o);
void module_respond_error (idt_t *h, const idt_msg_t *msg, int errnum, const char *text);

/* Whether a request came from the client whose end 'disconnect' tells. */
bool module_same_client (const idt_msg_t *msg, const idt_msg_t *disconnect);

#endif /* LIBMODULE_RESPOND_H */
