/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* inside.h - lines between brokers of one process, whose messages stay in the process; part of the core
 *
 * A broker that may have children has a port, which is found by the broker's rank.  A child opens a line to the port. A
 * line has two ends.  Each end has a queue of the messages that are on their way to it, and the sender's end sets the
 * limit of this queue.
 *
 * 1. The opener of a line states its rank, and this is believed, because only code of this process can call these
 *    functions; messages from other processes arrive elsewhere.  The brokers of a process trust each other: they are
 *    one program of one user.
 * 2. The only callback is 'touched', which may only note that there is input.  A receiver reads messages in
 *    its own turn.
 * 3. If the sender has released a message before it is read, the message is not copied.  Otherwise the receiver gets a
 *    copy, because it changes the message.
 * 4. When one end is closed, the other end can still read the messages that were on their way to it, and then reads
 *    that the line has ended.  There is one exception.  If the port has neither read from a line nor asked for its
 *    opener, and the line is closed, the port gets nothing of this line.
 *
 * All functions belong to one thread.
 */
#ifndef BROKER_INSIDE_H
#define BROKER_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/msg.h>

struct inside;
struct inside_port;
struct inside_line;

#define INSIDE_OVERHEAD 256 /* bytes of memory for each message beside its encoding */

/* One end of a line, or a port.  'messages' and 'bytes' limit what may be on its way from this end to one other end. If
 * nothing is on its way, one message always fits.
 */
struct inside_end {
    size_t messages;
    size_t bytes;
    void (*touched) (void *arg); /* called when there is input */
    void *arg;
};

/* The next input of a port. */
struct inside_item {
    idt_msg_t *msg; /* owned by the reader; NULL: the line is closed */
    uint32_t rank;  /* rank of the opener of the line */
    char identity[IDT_MSG_UUID_LEN + 1];
    int line; /* number of the line; this port never uses it again */
};

struct inside *inside_create (void);     /* NULL with errno ENOMEM */
void inside_destroy (struct inside *in); /* after all its ports; NULL is allowed */

/* --- above ------------------------------------------------------------------------------------------ */

/* Listen as 'rank'.  'tag' is returned to brokers that find the port.  Returns NULL with errno EEXIST or ENOMEM. */
struct inside_port *inside_port_create (struct inside *in, uint32_t rank, int tag, const struct inside_end *end);
void inside_port_destroy (struct inside_port *port); /* closes all lines; NULL is allowed */

/* inside_find () returns NULL if no broker of this rank listens in the process. */
struct inside_port *inside_find (const struct inside *in, uint32_t rank);
int inside_port_tag (const struct inside_port *port);

/* A name that no other port of the process ever has. */
const char *inside_port_name (const struct inside_port *port);

/* Take the next input of the port; its lines take turns.  Returns whether there was any.  If the input is the end of a
 * line, the line is released.
 */
bool inside_port_next (struct inside_port *port, struct inside_item *item);

/* Send a message over the line with this identity.  Returns 0, or -1 with errno EHOSTUNREACH (there is no such line),
 * EAGAIN (the line is full), ENOMEM.
 */
int inside_port_send (struct inside_port *port, const char *identity, const idt_msg_t *msg);

/* Get the rank of the opener and the number of the line with this identity.  Returns false if there is no such line, or
 * if its end was read.
 */
bool inside_port_who (const struct inside_port *port, const char *identity, uint32_t *rank, int *line);

/* --- below ------------------------------------------------------------------------------------------ */

/* Open a line to a port.  'identity' (36 characters) must be unique.  Returns NULL with errno EEXIST or ENOMEM. */
struct inside_line *inside_line_open (struct inside_port *port, uint32_t rank, const char *identity,
                                      const struct inside_end *end);
void inside_line_close (struct inside_line *line); /* NULL is allowed */

/* Take the next message.  NULL with errno EAGAIN: there is no message now; EPIPE: the port has closed the line; ENOMEM:
 * one message is lost.
 */
idt_msg_t *inside_line_next (struct inside_line *line);

/* Send a message to the port.  Returns 0, or -1 with errno EHOSTUNREACH (the port has closed the line), EAGAIN (the
 * line is full), ENOMEM.
 */
int inside_line_send (struct inside_line *line, const idt_msg_t *msg);

#endif /* BROKER_INSIDE_H */
