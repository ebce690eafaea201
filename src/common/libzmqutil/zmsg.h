/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* zmsg.h - messages on ZeroMQ sockets: one frame for each part, or one frame for the whole message (protocol.md section
 * 1)
 */
#ifndef MSG_ZMSG_H
#define MSG_ZMSG_H

#include <idtree/msg.h>

/* Properties of a received message that are not in the message itself; ZeroMQ knows them. */
struct msg_zmq_from {
    /* on a ROUTER: the peer's routing id of 36 characters; a message from a peer with another id is refused with EPROTO
     */
    char identity[IDT_MSG_UUID_LEN + 1];
    /* the user id that the ZAP handler gave the connection; "": it gave none, or one that is too long */
    char user[32];
    /* the connection's file descriptor (ZMQ_SRCFD); -1: unknown */
    int fd;
};

#define ZMSG_ZERO_COPY_SIZE 4096 /* bytes: from this size on a payload is not copied */

/* Send a message without blocking. 'identity' (NULL on a DEALER) is sent first as a frame of its own: a ROUTER sends
 * the message to the peer with that identity. A failed call sends nothing. A payload of ZMSG_ZERO_COPY_SIZE or more is
 * not copied: ZeroMQ holds a reference to the message until it is sent, and meanwhile the payload must not be written
 * to or replaced. Returns 0, or -1 with errno set: EAGAIN (the queue is full, or the socket has no connection),
 * EHOSTUNREACH (a ROUTER with ROUTER_MANDATORY does not know the peer), ENOMEM, ETERM.
 */
int msg_zmq_send (void *sock, const char *identity, const idt_msg_t *msg);

/* Like msg_zmq_send (), but in one frame, because CURVE and ZeroMQ have a fixed overhead per frame. A message with a
 * payload of ZMSG_ZERO_COPY_SIZE or more is sent in parts. Only for a peer that is known to accept this encoding.
 */
int msg_zmq_send_whole (void *sock, const char *identity, const idt_msg_t *msg);

/* Receive one message in either encoding, without blocking. With 'router' true the first frame is the peer's identity;
 * 'from' may be NULL. All frames of the message are always consumed. NULL with errno set:
 *   EAGAIN  no message
 *   EPROTO  malformed; 'from' names the sender
 *   EMSGSIZE longer than 'max_message' bytes, counted as idt_msg_encode_size () does
 *   ENOMEM  the message is lost
 */
idt_msg_t *msg_zmq_recv (void *sock, bool router, size_t max_message, struct msg_zmq_from *from);

#endif /* MSG_ZMSG_H */
