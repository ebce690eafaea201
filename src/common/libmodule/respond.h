/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* respond.h - a module's answers. If an answer cannot be made, the requester gets an error (idt_respond ()). If it
 * cannot be sent, that is logged.
 */
#ifndef LIBMODULE_RESPOND_H
#define LIBMODULE_RESPOND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include <idtree/idtree.h>

/* Answer a request. 's' and 'text' may be NULL. module_respond_new () steals 's', and module_respond_object () steals
 * 'o'; if that is NULL, memory was exhausted, and the answer is ENOMEM.
 */
void module_respond (idt_t *h, const idt_msg_t *msg, const char *s);
void module_respond_new (idt_t *h, const idt_msg_t *msg, char *s);
void module_respond_raw (idt_t *h, const idt_msg_t *msg, const void *data, size_t size);
void module_respond_object (idt_t *h, const idt_msg_t *msg, json_t *o);
void module_respond_error (idt_t *h, const idt_msg_t *msg, int errnum, const char *text);

/* Whether a request came from the client that the message 'disconnect' reports as disconnected. */
bool module_same_client (const idt_msg_t *msg, const idt_msg_t *disconnect);

#endif /* LIBMODULE_RESPOND_H */
