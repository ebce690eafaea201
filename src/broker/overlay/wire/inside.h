/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* inside.h - lines between brokers of one process, which no message leaves it for; a thinking part
 *
 * A broker that others may be below has a port, found by its rank.  Who is below opens a line to it.  A line has two
 * ends, and to each of them a queue of what is on its way there, with a bound that belongs to who sends.
 *
 * 1. Who opens a line says who he is, and is believed: only the code of this process can call, and all that comes from
 *    outside came in elsewhere.  What the brokers of a process are to each other is what their process is: one program
 *    of one user.
 * 2. Nobody is called back but by 'touched', which may only note that there is something: a message is read when its
 *    receiver asks for it, in the receiver's own turn.
 * 3. A message is not copied where its sender has let go of it by the time it is read; else the receiver has a copy,
 *    for it will change it.
 * 4. When one end is closed the other reads what was on its way, and then the end of it.  A port that has not read from
 *    a line, nor asked whose it is, hears nothing of one that is closed.
 *
 * All of this is one thread's.
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

#define INSIDE_OVERHEAD 256 /* bytes that a message costs beside its own */

/* Of one end.  'messages' and 'bytes' may be on their way from it to one other end; one message is never too large. */
struct inside_end {
    size_t messages;
    size_t bytes;
    void (*touched) (void *arg); /* there is something to read */
    void *arg;
};

/* What comes next. */
struct inside_item {
    idt_msg_t *msg; /* the reader's; NULL: the line is closed */
    uint32_t rank;  /* of who opened the line */
    char identity[IDT_MSG_UUID_LEN + 1];
    int line; /* its number: no other line of this port ever has it */
};

struct inside *inside_create (void);     /* NULL with errno ENOMEM */
void inside_destroy (struct inside *in); /* without ports; NULL is fine */

/* --- above ------------------------------------------------------------------------------------------ */

/* Be found as 'rank'.  'tag' is for those who find it.  NULL with errno EEXIST or ENOMEM. */
struct inside_port *inside_port_create (struct inside *in, uint32_t rank, int tag, const struct inside_end *end);
void inside_port_destroy (struct inside_port *port); /* closes all lines; NULL is fine */

/* NULL: no such rank is in this process. */
struct inside_port *inside_find (const struct inside *in, uint32_t rank);
int inside_port_tag (const struct inside_port *port);

/* A name that no other port of the process ever has. */
const char *inside_port_name (const struct inside_port *port);

/* Take what comes next, by turns over the lines.  Returns whether there was something.  A line whose end was taken is
 * gone.
 */
bool inside_port_next (struct inside_port *port, struct inside_item *item);

/* Returns 0, or -1 with errno EHOSTUNREACH (no such line), EAGAIN (it is full), ENOMEM. */
int inside_port_send (struct inside_port *port, const char *identity, const idt_msg_t *msg);

/* Who has opened the line of that identity.  Returns false: nobody, or it was read to its end. */
bool inside_port_who (const struct inside_port *port, const char *identity, uint32_t *rank, int *line);

/* --- below ------------------------------------------------------------------------------------------ */

/* 'identity' (36 characters) is no other line's.  NULL with errno EEXIST or ENOMEM. */
struct inside_line *inside_line_open (struct inside_port *port, uint32_t rank, const char *identity,
                                      const struct inside_end *end);
void inside_line_close (struct inside_line *line); /* NULL is fine */

/* Take the next message.  NULL with errno EAGAIN: nothing now; EPIPE: the port has closed it; ENOMEM: one is lost. */
idt_msg_t *inside_line_next (struct inside_line *line);

/* Returns 0, or -1 with errno EHOSTUNREACH (the port has closed it), EAGAIN, ENOMEM. */
int inside_line_send (struct inside_line *line, const idt_msg_t *msg);

#endif /* BROKER_INSIDE_H */
