/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* control.c - control messages between a broker and its parent (doc/design/broker.md) */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "libutil/minmax.h"
#include "libutil/errprintf.h"
#include "broker/overlay/control.h"

#define DOWN_SIZE (4 * 8 + 4 + IDT_MSG_UUID_LEN)

idt_msg_t *control_encode (enum control_type type, uint32_t status, const char *text)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_CONTROL);

    if (!msg || (text && idt_msg_set_string (msg, text) < 0)) {
        idt_msg_unref (msg);
        return NULL;
    }
    idt_msg_set_control (msg, type, status);
    return msg;
}

/* Make a message that has 'size' bytes of payload, and store their address in '*p'. */
static idt_msg_t *make (enum control_type type, uint32_t status, size_t size, uint8_t **p)
{
    idt_msg_t *msg = control_encode (type, status, NULL);

    if (msg && !(*p = idt_msg_alloc_payload (msg, size))) {
        idt_msg_unref (msg);
        return NULL;
    }
    return msg;
}

idt_msg_t *control_heartbeat_up (uint32_t health, uint64_t sent_us)
{
    uint8_t *p;
    idt_msg_t *msg = make (CONTROL_HEARTBEAT, health, 8, &p);

    if (msg)
        put_be (p, 8, sent_us);
    return msg;
}

idt_msg_t *control_heartbeat_down (const struct heartbeat *hb)
{
    uint8_t *p;
    idt_msg_t *msg = make (CONTROL_HEARTBEAT, 0, DOWN_SIZE, &p);

    if (!msg)
        return NULL;
    put_be (p, 8, hb->sent_us);
    put_be (p + 8, 8, hb->peer_received_us);
    put_be (p + 16, 8, hb->peer_sent_us);
    put_be (p + 24, 8, hb->peer_bound_us);
    put_be (p + 32, 4, hb->seq);
    memset (p + 36, 0, IDT_MSG_UUID_LEN);
    memcpy (p + 36, hb->stream, strnlen (hb->stream, IDT_MSG_UUID_LEN));
    return msg;
}

#define KEY_RECORD (4 + CONTROL_KEY_SIZE)

idt_msg_t *control_encode_keys (const struct control_key *keys, size_t n)
{
    uint8_t *p;
    idt_msg_t *msg = make (CONTROL_KEYS, 0, n * KEY_RECORD, &p);

    for (size_t i = 0; msg && i < n; i++, p += KEY_RECORD) {
        put_be (p, 4, keys[i].rank);
        memcpy (p + 4, keys[i].key, CONTROL_KEY_SIZE);
    }
    return msg;
}

int control_decode_keys (const idt_msg_t *msg, void (*cb) (const struct control_key *key, void *arg), void *arg)
{
    const void *data;
    const uint8_t *p;
    size_t size;

    if (idt_msg_payload (msg, &data, &size) < 0 || size % KEY_RECORD != 0)
        return errset (EPROTO);
    for (p = data; size > 0; p += KEY_RECORD, size -= KEY_RECORD) {
        struct control_key key = { .rank = get_be (p, 4) };

        memcpy (key.key, p + 4, CONTROL_KEY_SIZE);
        cb (&key, arg);
    }
    return 0;
}

static int payload_of (const idt_msg_t *msg, size_t want, const uint8_t **p)
{
    const void *data;
    size_t size;

    if (idt_msg_payload (msg, &data, &size) < 0 || size != want)
        return errset (EPROTO);
    *p = data;
    return 0;
}

int control_decode_up (const idt_msg_t *msg, uint64_t *sent_us)
{
    const uint8_t *p;

    if (payload_of (msg, 8, &p) < 0)
        return -1;
    *sent_us = get_be (p, 8);
    return 0;
}

int control_decode_down (const idt_msg_t *msg, struct heartbeat *hb)
{
    const uint8_t *p;

    if (payload_of (msg, DOWN_SIZE, &p) < 0)
        return -1;
    hb->sent_us = get_be (p, 8);
    hb->peer_received_us = get_be (p + 8, 8);
    hb->peer_sent_us = get_be (p + 16, 8);
    hb->peer_bound_us = get_be (p + 24, 8);
    hb->seq = get_be (p + 32, 4);
    memcpy (hb->stream, p + 36, IDT_MSG_UUID_LEN);
    hb->stream[IDT_MSG_UUID_LEN] = '\0';
    return 0;
}
