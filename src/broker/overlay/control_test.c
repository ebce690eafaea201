/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* control_test.c - control messages in both directions, with every invalid size */
#include <errno.h>
#include <string.h>

#include "broker/overlay/control.h"
#include "test/tap.h"

#define STREAM "01234567-89ab-4cde-8f01-23456789abcd"

/* Encode a message and decode it again. */
static idt_msg_t *through_wire (idt_msg_t *msg)
{
    char buf[1024];
    ssize_t n = idt_msg_encode (msg, buf, sizeof (buf));
    idt_msg_t *copy = n > 0 ? idt_msg_decode (buf, n) : NULL;

    idt_msg_unref (msg);
    if (!copy)
        bail_out ("a control message cannot be decoded");
    return copy;
}

static void test_plain (void)
{
    static const enum control_type types[] = { CONTROL_DISCONNECT, CONTROL_STOP, CONTROL_GOODBYE };

    for (size_t i = 0; i < sizeof (types) / sizeof (types[0]); i++) {
        idt_msg_t *msg = through_wire (control_encode (types[i], 42 + i, i == 0 ? "why" : NULL));

        ok (idt_msg_type (msg) == IDT_MSGTYPE_CONTROL && idt_msg_control_type (msg) == types[i]
                && idt_msg_control_status (msg) == 42 + i,
            "control message %d keeps its type and status", types[i]);
        ok (i == 0 ? strcmp (idt_msg_string (msg), "why") == 0 : idt_msg_payload (msg, NULL, NULL) < 0,
            "a control message has a payload only if it was made with a text");
        idt_msg_unref (msg);
    }
}

static void test_up (void)
{
    idt_msg_t *msg = through_wire (control_heartbeat_up (2, 0x0123456789abcdefU));
    uint64_t sent = 0;
    const void *data;
    size_t size;

    ok (idt_msg_control_type (msg) == CONTROL_HEARTBEAT && idt_msg_control_status (msg) == 2,
        "a heartbeat has the health of its sender");
    ok (control_decode_up (msg, &sent) == 0 && sent == 0x0123456789abcdefU,
        "a heartbeat has the time at which it was sent");
    ok (idt_msg_payload (msg, &data, &size) == 0 && size == 8
            && memcmp (data, "\x01\x23\x45\x67\x89\xab\xcd\xef", 8) == 0,
        "the payload of a heartbeat is big-endian");
    idt_msg_unref (msg);
}

static bool same (const struct heartbeat *a, const struct heartbeat *b)
{
    return a->sent_us == b->sent_us && a->peer_received_us == b->peer_received_us && a->peer_sent_us == b->peer_sent_us
           && a->peer_bound_us == b->peer_bound_us && a->seq == b->seq && strcmp (a->stream, b->stream) == 0;
}

static void test_down (void)
{
    static const struct heartbeat beats[] = {
        { 1, 2, 3, 4, 5, STREAM },
        { UINT64_MAX, UINT64_MAX - 1, 0, UINT64_MAX, UINT32_MAX, STREAM },
        { 0, 0, 0, 0, 0, "" },
    };

    for (size_t i = 0; i < sizeof (beats) / sizeof (beats[0]); i++) {
        idt_msg_t *msg = through_wire (control_heartbeat_down (&beats[i]));
        struct heartbeat hb;

        memset (&hb, 0xff, sizeof (hb));
        ok (control_decode_down (msg, &hb) == 0 && same (&hb, &beats[i]),
            "heartbeat %zu of a parent is decoded to the values that were encoded", i);
        idt_msg_unref (msg);
    }
}

static void test_sizes (void)
{
    struct heartbeat hb;
    uint64_t sent;
    bool refused = true;

    for (size_t size = 0; size < 200; size++) {
        idt_msg_t *msg = control_encode (CONTROL_HEARTBEAT, 0, NULL);

        memset (idt_msg_alloc_payload (msg, size), 'x', size);
        errno = 0;
        if (size != 8 && (control_decode_up (msg, &sent) == 0 || errno != EPROTO))
            refused = false;
        if (size != 72 && (control_decode_down (msg, &hb) == 0 || errno != EPROTO))
            refused = false;
        idt_msg_unref (msg);
    }
    ok (refused, "a heartbeat with a payload of an unknown size fails with EPROTO");
    idt_msg_t *msg = control_encode (CONTROL_HEARTBEAT, 0, NULL);
    ok (control_decode_up (msg, &sent) < 0 && control_decode_down (msg, &hb) < 0,
        "a heartbeat without a payload fails with EPROTO");
    idt_msg_unref (msg);
}

int main (void)
{
    test_plain ();
    test_up ();
    test_down ();
    test_sizes ();
    return done_testing ();
}
