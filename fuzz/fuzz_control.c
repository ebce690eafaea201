/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_control.c - control messages with any payload: if a message can be read, writing it gives the same bytes */
#include "broker/overlay/control.h"
#include "fuzz.h"

static idt_msg_t *make (const uint8_t *data, size_t size)
{
    idt_msg_t *msg = control_encode (CONTROL_HEARTBEAT, 0, NULL);

    must (msg && idt_msg_set_payload (msg, data, size) == 0);
    return msg;
}

static void same_payload (idt_msg_t *again, const uint8_t *data, size_t size)
{
    const void *p;
    size_t n;

    must (again && idt_msg_payload (again, &p, &n) == 0 && n == size && memcmp (p, data, size) == 0);
    idt_msg_unref (again);
}

struct keys {
    struct control_key *key;
    size_t n;
};

static void take_key (const struct control_key *key, void *arg)
{
    struct keys *keys = arg;

    keys->key[keys->n++] = *key;
}

static void try_keys (const idt_msg_t *msg, const uint8_t *data, size_t size)
{
    struct keys keys = { malloc ((size / 36 + 1) * sizeof (struct control_key)), 0 };

    must (keys.key != NULL);
    if (control_decode_keys (msg, take_key, &keys) == 0) {
        must (keys.n == size / 36);
        if (keys.n > 0)
            same_payload (control_encode_keys (keys.key, keys.n), data, size);
    }
    free (keys.key);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    idt_msg_t *msg = make (data, size);
    struct heartbeat hb;
    uint64_t sent_us;

    if (control_decode_up (msg, &sent_us) == 0)
        same_payload (control_heartbeat_up (0, sent_us), data, size);
    if (control_decode_down (msg, &hb) == 0) {
        idt_msg_t *again = control_heartbeat_down (&hb);
        struct heartbeat twice;

        must (again && control_decode_down (again, &twice) == 0);
        must (twice.sent_us == hb.sent_us && twice.peer_received_us == hb.peer_received_us && twice.seq == hb.seq
              && twice.peer_sent_us == hb.peer_sent_us && twice.peer_bound_us == hb.peer_bound_us
              && strcmp (twice.stream, hb.stream) == 0);
        idt_msg_unref (again);
    }
    try_keys (msg, data, size);
    idt_msg_unref (msg);
    return 0;
}
