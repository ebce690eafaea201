/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* msglist.h - streaming requests that get an answer whenever there is news, until their askers go */
#ifndef BROKER_FOLLOW_H
#define BROKER_FOLLOW_H

#include <stddef.h>

#include <idtree/handle.h>

struct follow;

#define FOLLOW_MAX 256 /* requests of one kind */

struct follow *follow_create (void); /* NULL with errno ENOMEM */
void follow_destroy (struct follow *fw);

/* Keep a request (a reference of its own).  Returns 0, or -1 with errno ENOSPC (FOLLOW_MAX), ENOMEM. */
int follow_add (struct follow *fw, const idt_msg_t *request);

/* Answer all: with a string (NULL: without a payload); for the last time, with an error. */
void follow_respond (struct follow *fw, idt_t *h, const char *s);
void follow_end (struct follow *fw, idt_t *h, int errnum);

/* Forget those of the client whose disconnect message this is. */
void follow_disconnect (struct follow *fw, const idt_msg_t *msg);

size_t follow_count (const struct follow *fw);

#endif /* BROKER_FOLLOW_H */
