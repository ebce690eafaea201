/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* inside.h - lines between brokers of one process, whose messages stay in the process; part of the core
 *
 * A broker that may have children has a port, found by its rank.  A child opens a line to it.  A line has two ends, and
 * each end has a queue of messages on their way to it.  The sender's end sets the limit of the queue.
 *
 * 1. The opener of a line states its rank and is believed: only code of this process can call these functions, and
 *    messages from outside arrive elsewhere.  The brokers of a process trust each other: they are one program of one
 *    user.
 * 2. The only callback is 'touched', which may only note that there is input.  A receiver reads messages in its own
 *    turn.
 * 3. A message is not copied if its sender has released it by the time it is read.  Otherwise the receiver gets a copy,
 *    because it changes the message.
 * 4. When one end is closed, the other reads the messages on their way, and then the end.  If the port has neither read
 *    from a line nor asked for its opener, it gets nothing of a closed line.
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

#define INSIDE_OVERHEAD 256 /* bytes of memory per message beside its encoding */

/* One end.  'messages' and 'bytes' limit what may be on its way from it to one other end; a single message always fits.
 */
struct inside_end {
    size_t messages;
    size_t bytes;
    void (*touched) (void *arg); /* there is input */
    void *arg;
};

/* The next input. */
struct inside_item {
    idt_msg_t *msg; /* owned by the reader; NULL: the line is closed */
    uint32_t rank;  /* of the opener */
    char identity[IDT_MSG_UUID_LEN + 1];
    int line; /* number of the line, never used again by this port */
};

struct inside *inside_create (void);     /* NULL with errno ENOMEM */
void inside_destroy (struct inside *in); /* after its ports; NULL is allowed */

/* --- above ------------------------------------------------------------------------------------------ */

/* Listen as 'rank'.  'tag' is for the brokers that find the port.  Returns NULL with errno EEXIST or ENOMEM. */
struct inside_port *inside_port_create (struct inside *in, uint32_t rank, int tag, const struct inside_end *end);
void inside_port_destroy (struct inside_port *port); /* closes all lines; NULL is allowed */

/* NULL: the process has no such rank. */
struct inside_port *inside_find (const struct inside *in, uint32_t rank);
int inside_port_tag (const struct inside_port *port);

/* A name that no other port of the process ever has. */
const char *inside_port_name (const struct inside_port *port);

/* Take the next input; lines take turns.  Returns whether there was one.  A line whose end was taken is released. */
bool inside_port_next (struct inside_port *port, struct inside_item *item);

/* Returns 0, or -1 with errno EHOSTUNREACH (no such line), EAGAIN (it is full), ENOMEM. */
int inside_port_send (struct inside_port *port, const char *identity, const idt_msg_t *msg);

/* Get the opener of the line with this identity.  Returns false if there is no such line, or its end was read. */
bool inside_port_who (const struct inside_port *port, const char *identity, uint32_t *rank, int *line);

/* --- below ------------------------------------------------------------------------------------------ */

/* 'identity' (36 characters) must be unique.  Returns NULL with errno EEXIST or ENOMEM. */
struct inside_line *inside_line_open (struct inside_port *port, uint32_t rank, const char *identity,
                                      const struct inside_end *end);
void inside_line_close (struct inside_line *line); /* NULL is allowed */

/* Take the next message.  NULL with errno EAGAIN: none now; EPIPE: the port has closed the line; ENOMEM: one is lost.
 */
idt_msg_t *inside_line_next (struct inside_line *line);

/* Returns 0, or -1 with errno EHOSTUNREACH (the port has closed the line), EAGAIN (it is full), ENOMEM. */
int inside_line_send (struct inside_line *line, const idt_msg_t *msg);

#endif /* BROKER_INSIDE_H */
