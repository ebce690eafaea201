/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* mailbox.h - messages from one thread to another
 *
 * 1. Any thread may push and close, one thread (the reader) pops. No call blocks, except mailbox_wait ().
 * 2. The descriptor is readable while the mailbox has messages or is closed, and until a pop has found it empty. So a
 *    level-triggered reactor misses no message, and a burst of messages needs one write and one read.
 * 3. Messages are popped in the order in which they were pushed.
 * 4. The mailboxes of one reader may share the descriptor of a bell, which returns the mailboxes with messages.
 * 5. The thread that pushed a message must not change it afterwards.
 */
#ifndef BROKER_MODULE_MAILBOX_H
#define BROKER_MODULE_MAILBOX_H

#include <stdbool.h>
#include <stddef.h>

#include <idtree/msg.h>

struct mailbox;
struct bell;

/* Make a mailbox for at most 'limit' messages. mailbox_destroy () calls 'drop' (idt_msg_unref) for each message that is
 * left. NULL with errno set: ENOMEM, or an error of eventfd () (EMFILE, ...).
 */
struct mailbox *mailbox_create (size_t limit, void (*drop) (const idt_msg_t *msg));

/* The same without a descriptor of its own: 'bell' (borrowed) rings instead, and returns 'arg' to the reader. */
struct mailbox *mailbox_create_at (struct bell *bell, void *arg, size_t limit, void (*drop) (const idt_msg_t *msg));

/* From now on the mailbox does not ring its bell. */
void mailbox_mute (struct mailbox *mb);

/* No other thread may use it any longer. NULL is fine; keeps errno. */
void mailbox_destroy (struct mailbox *mb);

/* Add a message; 'limited' is false for messages that another limit bounds. On success the mailbox owns the reference.
 * Returns 0, or -1 with errno set and the reference still owned by the caller:
 *   ENOBUFS  'limited', and 'limit' messages wait already
 *   EPIPE    closed
 *   ENOMEM
 */
int mailbox_push_new (struct mailbox *mb, const idt_msg_t *msg, bool limited);

/* Take the oldest message; the caller unrefs it. NULL with errno EAGAIN (empty) or EPIPE (closed and empty). */
const idt_msg_t *mailbox_pop (struct mailbox *mb);

/* Refuse further messages. The reader is woken; it gets the messages that are left, then EPIPE. */
void mailbox_close (struct mailbox *mb);

/* The descriptor of rule 2, to poll only. */
int mailbox_pollfd (const struct mailbox *mb);

/* Block until the mailbox has messages or is closed. Returns false after 'seconds' without that. */
bool mailbox_wait (struct mailbox *mb, double seconds);

/* The number of waiting messages. */
size_t mailbox_count (struct mailbox *mb);

/* --- bells ----------------------------------------------------------------------------------- */

struct bell *bell_create (void);    /* NULL with errno as mailbox_create () */
void bell_destroy (struct bell *b); /* after its mailboxes; NULL is fine; keeps errno */
int bell_fd (const struct bell *b); /* to poll only: readable while it rings, until bell_next () returns NULL */

/* For the reader: the 'arg' of the next mailbox with messages; mailboxes take turns, and the reader pops one message.
 * NULL: the bell does not ring.
 */
void *bell_next (struct bell *b);

#endif /* BROKER_MODULE_MAILBOX_H */
