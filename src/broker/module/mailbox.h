/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* mailbox.h - messages from one thread to another
 *
 * 1. Any thread may push and close; one thread, the reader, pops. No call blocks, except mailbox_wait ().
 * 2. The descriptor is readable while the mailbox has messages or is closed. The descriptor then stays readable until a
 *    pop has found the mailbox empty. So a level-triggered reactor misses no message, and a burst of messages needs one
 *    write
 *    and one read.
 * 3. Messages are popped in the order in which they were pushed.
 * 4. Mailboxes with the same reader may share the descriptor of a bell. The bell returns the mailboxes that have
 *    messages.
 * 5. The thread that pushed a message must not change the message afterwards.
 */
#ifndef BROKER_MODULE_MAILBOX_H
#define BROKER_MODULE_MAILBOX_H

#include <stdbool.h>
#include <stddef.h>

#include <idtree/msg.h>

struct mailbox;
struct bell;

/* Make a mailbox for at most 'limit' messages. mailbox_destroy () calls 'drop' (idt_msg_unref) for each message that
 * was not popped. NULL with errno set: ENOMEM, or an error of eventfd () (EMFILE, ...).
 */
struct mailbox *mailbox_create (size_t limit, void (*drop) (const idt_msg_t *msg));

/* Make a mailbox that has no descriptor of its own: 'bell' (borrowed) rings in its place, and bell_next () returns
 * 'arg'.
 */
struct mailbox *mailbox_create_at (struct bell *bell, void *arg, size_t limit, void (*drop) (const idt_msg_t *msg));

/* From now on the mailbox no longer rings its bell. */
void mailbox_mute (struct mailbox *mb);

/* No other thread may use the mailbox any longer. NULL is fine; keeps errno. */
void mailbox_destroy (struct mailbox *mb);

/* Add a message. 'limited' is false if another limit already bounds the number of such messages. On success the mailbox
 * owns the reference. Returns 0, or -1 with errno set; the reference then still belongs to the caller:
 *   ENOBUFS  'limited', and 'limit' messages are already waiting
 *   EPIPE    the mailbox is closed
 *   ENOMEM
 */
int mailbox_push_new (struct mailbox *mb, const idt_msg_t *msg, bool limited);

/* Take the oldest message; the caller unrefs it. NULL with errno EAGAIN (the mailbox is empty) or EPIPE (it is empty
 * and closed).
 */
const idt_msg_t *mailbox_pop (struct mailbox *mb);

/* Refuse further messages, and wake the reader. The reader gets the remaining messages, then EPIPE. */
void mailbox_close (struct mailbox *mb);

/* The descriptor of rule 2; only poll it. */
int mailbox_pollfd (const struct mailbox *mb);

/* Block until the mailbox has messages or is closed. Returns false if 'seconds' have passed before. */
bool mailbox_wait (struct mailbox *mb, double seconds);

/* The number of waiting messages. */
size_t mailbox_count (struct mailbox *mb);

/* --- bells ----------------------------------------------------------------------------------- */

struct bell *bell_create (void);    /* NULL with errno as mailbox_create () */
void bell_destroy (struct bell *b); /* after its mailboxes are destroyed; NULL is fine; keeps errno */
int bell_fd (const struct bell *b); /* only poll it: readable while the bell rings, until bell_next () returns NULL */

/* For the reader: the 'arg' of the next mailbox with messages. The reader then pops one message. Mailboxes take turns.
 * NULL: no mailbox has messages.
 */
void *bell_next (struct bell *b);

#endif /* BROKER_MODULE_MAILBOX_H */
