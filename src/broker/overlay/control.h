/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* control.h - control messages between a broker and its parent (doc/design/broker.md)
 *
 *   HEARTBEAT  up:   status = health of the subtree; payload u64 sent (the child's CLOCK_BOOTTIME, microseconds)
 *              down: status = 0; payload u64 sent (the child's value, returned), then u64 received, u64 sent, u64 bound
 *                    (of the parent's clock, microseconds of the instance; all three are 0 while it is unknown),
 *                    u32 number of the last event that was sent to the child, 36 bytes stream
 *   DISCONNECT down: status = errno; payload: the reason, a string.  The child closes the connection and sends hello
 *                    again.
 *   STOP       down: the subtree must stop, leaves first
 *   GOODBYE    up:   the subtree has stopped, or the child leaves for a nearer ancestor; answered by DISCONNECT with
 *                    status 0
 *   KEYS       up:   descendants and their CURVE public keys: repeated u32 rank, 32 bytes key
 *   CREDIT     both: grants up to which the other side may send (channel.h)
 *   PART       both: a piece of an encoded message; status = its class (channel.h) and its place in the message
 *   JOINED     up:   status = joined brokers of the subtree, if it has changed since hello
 * Numbers are big-endian.
 */
#ifndef BROKER_CONTROL_H
#define BROKER_CONTROL_H

#include <idtree/module.h>
#include <idtree/msg.h>

enum control_type {
    CONTROL_HEARTBEAT = 1,
    CONTROL_DISCONNECT = 2,
    CONTROL_STOP = 3,
    CONTROL_GOODBYE = 4,
    CONTROL_KEYS = 5,
    CONTROL_CREDIT = 6,
    CONTROL_PART = 7,
    CONTROL_JOINED = 8,
};

/* Bits of the status of a PART. */
#define CONTROL_PART_CLASS 0xffu
#define CONTROL_PART_LAST 0x100u
#define CONTROL_PART_FIRST 0x200u /* the receiver drops an unfinished message of this class */

struct heartbeat {
    uint64_t sent_us; /* when the child sent the heartbeat, on the child's clock */
    uint64_t peer_received_us;
    uint64_t peer_sent_us;
    uint64_t peer_bound_us;
    uint32_t seq;
    char stream[IDT_MSG_UUID_LEN + 1];
};

/* Make messages.  NULL with errno ENOMEM. */
idt_msg_t *control_encode (enum control_type type, uint32_t status, const char *text);
idt_msg_t *control_heartbeat_up (uint32_t health, uint64_t sent_us);
idt_msg_t *control_heartbeat_down (const struct heartbeat *hb);

#define CONTROL_KEY_SIZE 32 /* bytes */

struct control_key {
    uint32_t rank;
    uint8_t key[CONTROL_KEY_SIZE];
};

idt_msg_t *control_encode_keys (const struct control_key *keys, size_t n);

/* Call 'cb' for each key.  Returns 0, or -1 with errno EPROTO. */
int control_decode_keys (const idt_msg_t *msg, void (*cb) (const struct control_key *key, void *arg), void *arg);

/* Read the payload of a heartbeat.  Returns 0, or -1 with errno EPROTO. */
int control_decode_up (const idt_msg_t *msg, uint64_t *sent_us);
int control_decode_down (const idt_msg_t *msg, struct heartbeat *hb);

#endif /* BROKER_CONTROL_H */
