/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* mailbox.h - messages on their way from one thread to another
 *
 * 1. Any thread may push and close, one thread (the reader) pops.  Nothing here blocks.
 * 2. The descriptor is readable while there is something to pop or the mailbox is closed, and on until the reader was
 *    told that there is nothing: a level-triggered reactor misses nothing, and a burst costs one write and one read.
 * 3. Messages come out in the order in which they went in.
 * 4. The mailboxes of one reader may share a descriptor: that of a bell, which tells which of them have something.
 * 5. A message that was pushed may not be changed any more by the thread that pushed it.
 */
#ifndef UTIL_MAILBOX_H
#define UTIL_MAILBOX_H

#include <stdbool.h>
#include <stddef.h>

#include <idtree/msg.h>

struct mailbox;
struct bell;

/* Make a mailbox for at most 'limit' messages.  'drop' (idt_msg_unref) frees what is left in it
 * at the end.  NULL with errno: ENOMEM, or what the kernel said of a new descriptor (EMFILE,
 * ...).
 */
struct mailbox *mailbox_create (size_t limit, void (*drop) (const idt_msg_t *msg));

/* The same without a descriptor of its own: 'bell' (borrowed) rings, and tells the reader 'arg'. */
struct mailbox *mailbox_create_at (struct bell *bell, void *arg, size_t limit, void (*drop) (const idt_msg_t *msg));

/* The reader wants to be told nothing more of it. */
void mailbox_mute (struct mailbox *mb);

/* No other thread may use it any more.  NULL is fine; keeps errno. */
void mailbox_destroy (struct mailbox *mb);

/* Add a message, 'limited' or of what somebody else bounds; on success the caller's reference has become the mailbox's.
 * Returns 0, or -1 with errno set and the reference still the caller's:
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

/* Wait until it has something, or is closed.  Returns false where that takes longer than 'seconds'. */
bool mailbox_wait (struct mailbox *mb, double seconds);

/* Messages that wait now. */
size_t mailbox_count (struct mailbox *mb);

/* --- bells ----------------------------------------------------------------------------------- */

struct bell *bell_create (void);    /* NULL with errno, as mailbox_create () */
void bell_destroy (struct bell *b); /* after its mailboxes; NULL is fine; keeps errno */
int bell_fd (const struct bell *b); /* readable while it rings, until bell_next () said no; never read or write it */

/* For the reader: the 'arg' of the next mailbox that has something, by turns; it takes one message.  NULL: it does not
 * ring.
 */
void *bell_next (struct bell *b);

#endif /* UTIL_MAILBOX_H */
