/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pending.h - requests that were passed on and are not answered yet
 *
 * Keyed by who asked first (the oldest route) and the matchtag: the peer and the matchtag are not enough, since two
 * clients under one child may use the same tag.  An asker that uses one tag twice gets two entries.
 */
#ifndef BROKER_PENDING_H
#define BROKER_PENDING_H

#include <stdbool.h>
#include <stddef.h>

#include <idtree/msg.h>

struct pending;

struct pending *pending_create (size_t max); /* NULL with errno ENOMEM */
void pending_destroy (struct pending *p);

/* Remember that 'request' went to 'to'.  Returns 0, or -1 with errno ENOBUFS (full) or ENOMEM. */
int pending_add (struct pending *p, const idt_msg_t *request, const void *to);

/* Forget the request that 'response', which came from 'from', answers for good.  Returns whether there
 * was one.
 */
bool pending_answered (struct pending *p, const idt_msg_t *response, const void *from);

/* Take out every entry that 'match' picks; 'cb' gets it (its reference to the request ends after). */
typedef bool (*pending_match_f) (const idt_msg_t *request, const void *to, void *arg);
typedef void (*pending_f) (const idt_msg_t *request, const void *to, void *arg);
void pending_take (struct pending *p, pending_match_f match, pending_f cb, void *arg);

size_t pending_count (const struct pending *p);

#endif /* BROKER_PENDING_H */
