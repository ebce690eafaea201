/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_event.c - events, announcements and answers to a fetch in any order and form
 *
 * The input is a list. Each entry begins with a byte for its kind. For an announcement a number follows, for other
 * kinds a length and bytes. Children must get events in the order of their numbers.
 */
#include "broker/route/event.h"
#include "broker/route/router.h"
#include "fuzz.h"

#define OTHER_STREAM "bbbbbbbb-0000-4000-8000-000000000000"
#define STREAM "aaaaaaaa-0000-4000-8000-000000000000"

struct rig {
    struct event *ev;
    uint64_t last; /* number of the last event that was sent to children; 0: a stream begins */
    bool asked;
};

static void forward_cb (void *arg, const idt_msg_t *msg)
{
    struct rig *rig = arg;

    must (idt_msg_type (msg) == IDT_MSGTYPE_EVENT && (rig->last == 0 || event_seq (rig->ev) >= rig->last));
    rig->last = event_seq (rig->ev);
}

static void announce_cb (void *arg)
{
    ((struct rig *)arg)->last = 0;
}

static const struct event_ops ops;

static void replay (struct rig *rig, const void *buf, size_t size)
{
    if (!rig->asked)
        return;
    rig->asked = false;
    event_replay (rig->ev, buf, size);
}

static void receive (struct rig *rig, const uint8_t *data, size_t size)
{
    idt_msg_t *msg = idt_msg_decode (data, size);

    if (msg && idt_msg_type (msg) == IDT_MSGTYPE_EVENT && idt_msg_topic (msg))
        event_receive (rig->ev, msg);
    idt_msg_unref (msg);
}

/* Receive a well-formed event whose number is near the number of the last event. */
static void receive_good (struct rig *rig, uint32_t number)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_EVENT);

    must (msg && idt_msg_set_topic (msg, "a.b") == 0);
    idt_msg_set_seq (msg, number);
    event_receive (rig->ev, msg);
    idt_msg_unref (msg);
}

static int subscriber_send (void *arg, const idt_msg_t *msg)
{
    must (idt_msg_type (msg) == IDT_MSGTYPE_EVENT);
    return 0;
}

static void step (struct rig *rig, struct input *in)
{
    uint8_t what = input_byte (in);
    uint32_t n;
    uint8_t buf[4096];

    if (what < 64)
        event_newest (rig->ev, what & 1 ? OTHER_STREAM : STREAM, input_byte (in) == 255 ? input_u32 (in) : what);
    else if (what < 128)
        receive_good (rig, (uint32_t)event_seq (rig->ev) + (what & 7));
    else if (what == 255)
        replay (rig, NULL, 0);
    else {
        n = (uint32_t)input_byte (in) << 4 | (what & 15);
        n = n < in->left ? n : (uint32_t)in->left;
        input_bytes (in, buf, n);
        if (what & 16)
            replay (rig, buf, n);
        else
            receive (rig, buf, n);
    }
}

static void fetch_cb (void *arg, const char *stream, uint64_t from)
{
    ((struct rig *)arg)->asked = true;
}

static const struct event_ops ops = { .forward = forward_cb, .fetch = fetch_cb, .announce = announce_cb };

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct input in = { data, size };
    struct rig rig = { 0 };
    struct peer client = { .uuid = "cccccccc-0000-4000-8000-000000000000",
                           .kind = PEER_CLIENT,
                           .send = subscriber_send };

    must ((rig.ev = event_create (false, "dddddddd-0000-4000-8000-000000000000", 16, &ops, &rig)) != NULL);
    const struct idt_cred owner = { 100, IDT_ROLE_OWNER };
    must (event_subscribe (rig.ev, &client, owner, "a.") == 0
          && event_subscribe (rig.ev, &client, owner, "event.lost") == 0);
    while (in.left > 0)
        step (&rig, &in);
    event_forget (rig.ev, &client);
    event_destroy (rig.ev);
    return 0;
}
