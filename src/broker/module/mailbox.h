/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* mailbox.h - messages on their way from one thread to another
 *
 * 1. Any thread may push and close, one thread (the reader) pops.  Nothing here blocks.
 * 2. The descriptor is readable exactly while there is something to pop or the mailbox is closed,
 *    so a level-triggered reactor misses nothing.
 * 3. Messages come out in the order in which they went in.
 * 4. A message that was pushed may not be changed any more by the thread that pushed it.
 */
#ifndef UTIL_MAILBOX_H
#define UTIL_MAILBOX_H

#include <idtree/msg.h>

struct mailbox;

/* Make a mailbox for at most 'limit' messages.  'drop' (idt_msg_unref) frees what is left in it
 * at the end.  NULL with errno: ENOMEM, or what the kernel said of a new descriptor (EMFILE,
 * ...).
 */
struct mailbox *mailbox_create (size_t limit, void (*drop) (const idt_msg_t *msg));

/* No other thread may use it any more.  NULL is fine; keeps errno. */
void mailbox_destroy (struct mailbox *mb);

/* Add a message, 'limited' or of what somebody else bounds; on success the caller's reference has become the mailbox's.  Returns 0, or -1 with
 * errno set and the reference still the caller's:
 *   ENOBUFS  'limited', and 'limit' messages wait already
 *   EPIPE    closed
 *   ENOMEM
 */
int mailbox_push_new (struct mailbox *mb, const idt_msg_t *msg, bool limited);

/* Take the oldest message, for the caller to unref.  NULL with errno EAGAIN (empty), or EPIPE
 * (closed and empty).
 */
const idt_msg_t *mailbox_pop (struct mailbox *mb);

/* Take no more messages.  The reader is woken; it gets what is in there, then EPIPE. */
void mailbox_close (struct mailbox *mb);

/* The descriptor of rule 2; never read or write it. */
int mailbox_pollfd (const struct mailbox *mb);

/* Messages that wait now. */
size_t mailbox_count (struct mailbox *mb);

#endif /* UTIL_MAILBOX_H */
