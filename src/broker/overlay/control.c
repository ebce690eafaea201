/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* control.c - control messages between a broker and its parent (protocol.md section 7) */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

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

static void put_u64 (unsigned char **p, uint64_t x)
{
    x = htobe64 (x);
    memcpy (*p, &x, 8);
    *p += 8;
}

static uint64_t get_u64 (const unsigned char **p)
{
    uint64_t x;

    memcpy (&x, *p, 8);
    *p += 8;
    return be64toh (x);
}

/* A heartbeat with room for 'size' bytes of payload at '*p'. */
static idt_msg_t *make_heartbeat (uint32_t status, size_t size, unsigned char **p)
{
    idt_msg_t *msg = control_encode (CONTROL_HEARTBEAT, status, NULL);

    if (msg && !(*p = idt_msg_alloc_payload (msg, size))) {
        idt_msg_unref (msg);
        return NULL;
    }
    return msg;
}

idt_msg_t *control_heartbeat_up (uint32_t health, uint64_t sent_us)
{
    unsigned char *p;
    idt_msg_t *msg = make_heartbeat (health, 8, &p);

    if (msg)
        put_u64 (&p, sent_us);
    return msg;
}

idt_msg_t *control_heartbeat_down (const struct heartbeat *hb)
{
    unsigned char *p;
    idt_msg_t *msg = make_heartbeat (0, DOWN_SIZE, &p);
    uint32_t seq = htobe32 (hb->seq);

    if (!msg)
        return NULL;
    put_u64 (&p, hb->sent_us);
    put_u64 (&p, hb->peer_received_us);
    put_u64 (&p, hb->peer_sent_us);
    put_u64 (&p, hb->peer_bound_us);
    memcpy (p, &seq, 4);
    memset (p + 4, 0, IDT_MSG_UUID_LEN);
    memcpy (p + 4, hb->stream, strnlen (hb->stream, IDT_MSG_UUID_LEN));
    return msg;
}

#define KEY_RECORD (4 + CONTROL_KEY_SIZE)

idt_msg_t *control_encode_keys (const struct control_key *keys, size_t n)
{
    idt_msg_t *msg = control_encode (CONTROL_KEYS, 0, NULL);
    unsigned char *p;

    if (!msg || !(p = idt_msg_alloc_payload (msg, n * KEY_RECORD))) {
        idt_msg_unref (msg);
        return NULL;
    }
    for (size_t i = 0; i < n; i++, p += KEY_RECORD) {
        uint32_t rank = htobe32 (keys[i].rank);

        memcpy (p, &rank, 4);
        memcpy (p + 4, keys[i].key, CONTROL_KEY_SIZE);
    }
    return msg;
}

int control_decode_keys (const idt_msg_t *msg, void (*cb) (const struct control_key *key, void *arg), void *arg)
{
    const void *data;
    const unsigned char *p;
    size_t size;

    if (idt_msg_payload (msg, &data, &size) < 0 || size % KEY_RECORD != 0)
        return errset (EPROTO);
    for (p = data; size > 0; p += KEY_RECORD, size -= KEY_RECORD) {
        struct control_key key;

        memcpy (&key.rank, p, 4);
        key.rank = be32toh (key.rank);
        memcpy (key.key, p + 4, CONTROL_KEY_SIZE);
        cb (&key, arg);
    }
    return 0;
}

static int payload_of (const idt_msg_t *msg, size_t want, const unsigned char **p)
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
    const unsigned char *p;

    if (payload_of (msg, 8, &p) < 0)
        return -1;
    *sent_us = get_u64 (&p);
    return 0;
}

int control_decode_down (const idt_msg_t *msg, struct heartbeat *hb)
{
    const unsigned char *p;
    uint32_t seq;

    if (payload_of (msg, DOWN_SIZE, &p) < 0)
        return -1;
    hb->sent_us = get_u64 (&p);
    hb->peer_received_us = get_u64 (&p);
    hb->peer_sent_us = get_u64 (&p);
    hb->peer_bound_us = get_u64 (&p);
    memcpy (&seq, p, 4);
    hb->seq = be32toh (seq);
    memcpy (hb->stream, p + 4, IDT_MSG_UUID_LEN);
    hb->stream[IDT_MSG_UUID_LEN] = '\0';
    return 0;
}
