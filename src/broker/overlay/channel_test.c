/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* channel_test.c - two ends of a link, joined by a wire that takes messages at random times
 *
 * Every message carries its size and its number within its class and direction.  The messages of each class must arrive
 * completely and in order, but requests only need to be in order for each requester.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker/overlay/channel.h"
#include "broker/overlay/control.h"
#include "libutil/queue/fifo.h"
#include "test/tap.h"

#define REQUESTERS 3
#define WINDOW ((uint64_t)1 << 20)
#define MESSAGES 900
#define MAX_QUEUE ((size_t)4 << 20)

struct end {
    struct channel channel;
    struct fifo wire;   /* messages that this end has sent and the other end has not read */
    size_t bytes, most; /* bytes of messages on the wire, and the largest number of these so far */
    unsigned seed;
    int room; /* number of messages that the wire takes; negative: no limit */
    uint32_t sent[CLASS_COUNT], came[CLASS_COUNT];
    uint32_t asked[REQUESTERS], asks[REQUESTERS];
    int controls, errors, wrong;
    int errnum; /* errno of the last error */
};

static const char *requester_name (int i)
{
    static const char *names[] = { "00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b",
                                   "00000000-0000-4000-8000-00000000000c" };

    return names[i];
}

static int wire_send (void *arg, const idt_msg_t *msg)
{
    struct end *e = arg;

    if (e->room == 0) {
        errno = EAGAIN;
        return -1;
    }
    e->room -= e->room > 0;
    fifo_push (&e->wire, idt_msg_copy (msg, true));
    e->bytes += idt_msg_encode_size (msg);
    if (e->bytes > e->most)
        e->most = e->bytes;
    return 0;
}

static void check_payload (struct end *e, const idt_msg_t *msg, uint32_t number)
{
    const void *data;
    size_t size;
    uint32_t head[2];

    if (idt_msg_payload (msg, &data, &size) < 0 || size < sizeof (head)) {
        e->wrong++;
        return;
    }
    memcpy (head, data, sizeof (head));
    e->wrong += head[0] != number || head[1] != size;
}

static void message_came (void *arg, idt_msg_t *msg)
{
    struct end *e = arg;

    if (idt_msg_type (msg) == IDT_MSGTYPE_REQUEST) {
        int requester = idt_msg_route_oldest (msg)[35] - 'a';

        check_payload (e, msg, e->asks[requester]++);
        e->came[CLASS_ASK]++;
    }
    else if (idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE && idt_msg_errnum (msg) != 0) {
        e->errors++;
        e->errnum = idt_msg_errnum (msg);
    }
    else if (idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE)
        check_payload (e, msg, e->came[CLASS_ANSWER]++);
    else
        check_payload (e, msg, e->came[CLASS_EVENT]++);
    idt_msg_unref (msg);
}

static void control_came (void *arg, const idt_msg_t *msg)
{
    ((struct end *)arg)->controls++;
}

static const struct channel_ops ops = { .send = wire_send, .message = message_came, .control = control_came };

static void end_init (struct end *e, unsigned seed)
{
    memset (e, 0, sizeof (*e));
    e->seed = seed;
    e->room = -1;
    if (channel_init (&e->channel, &ops, e, MAX_QUEUE, WINDOW, 360) < 0)
        bail_out ("no channel");
}

static void wire_clear (struct end *e)
{
    const idt_msg_t *msg;

    while ((msg = fifo_pop (&e->wire)))
        idt_msg_unref (msg);
    fifo_fini (&e->wire);
    e->bytes = 0;
}

static void end_fini (struct end *e)
{
    wire_clear (e);
    channel_fini (&e->channel);
}

/* The end 'to' reads one message.  Returns whether there was one. */
static bool step (struct end *from, struct end *to)
{
    const idt_msg_t *msg = fifo_pop (&from->wire);

    if (!msg)
        return false;
    from->bytes -= idt_msg_encode_size (msg);
    channel_received (&to->channel, (idt_msg_t *)msg);
    return true;
}

static void settle (struct end *a, struct end *b)
{
    bool moved = true;

    a->room = b->room = -1;
    while (moved) {
        channel_retry (&a->channel);
        channel_retry (&b->channel);
        bool there = step (a, b), back = step (b, a);
        moved = there || back;
    }
}

static idt_msg_t *make (enum link_class c, uint32_t number, size_t size, int requester)
{
    static const enum idt_msgtype types[] = { IDT_MSGTYPE_CONTROL, IDT_MSGTYPE_RESPONSE, IDT_MSGTYPE_EVENT,
                                              IDT_MSGTYPE_REQUEST };
    idt_msg_t *msg = idt_msg_create (types[c]);
    uint32_t head[2] = { number, size };
    char *p;

    idt_msg_set_topic (msg, "x");
    idt_msg_route_clear (msg);
    if (c == CLASS_ASK)
        idt_msg_route_push (msg, requester_name (requester));
    p = idt_msg_alloc_payload (msg, size);
    memset (p, 'x', size);
    memcpy (p, head, sizeof (head));
    return msg;
}

static int put (struct end *e, enum link_class c, size_t size)
{
    int requester = rand_r (&e->seed) % REQUESTERS;
    uint32_t *number = c == CLASS_ASK ? &e->asked[requester] : &e->sent[c];
    idt_msg_t *msg = make (c, *number, size, requester);
    int rc = channel_send (&e->channel, msg);

    if (rc == 0) {
        (*number)++;
        if (c == CLASS_ASK)
            e->sent[c]++;
    }
    idt_msg_unref (msg);
    return rc;
}

static size_t draw_size (struct end *e)
{
    int what = rand_r (&e->seed) % 100;

    return 8 + rand_r (&e->seed) % (what < 90 ? 200 : what < 98 ? 50000 : 900000);
}

/* A random operation at one end. */
static void act (struct end *e, struct end *other)
{
    e->room = rand_r (&e->seed) % 20;
    channel_retry (&e->channel);
    put (e, CLASS_ANSWER + rand_r (&e->seed) % 3, draw_size (e));
    for (int n = rand_r (&e->seed) % 4; n > 0; n--)
        step (other, e);
}

static bool all_came (const struct end *from, const struct end *to)
{
    return to->wrong == 0 && to->errors == (int)channel_stats (&from->channel).failed
           && memcmp (from->sent + CLASS_EVENT, to->came + CLASS_EVENT, sizeof (uint32_t) * 2) == 0
           && from->sent[CLASS_ANSWER] == to->came[CLASS_ANSWER] + to->errors;
}

static void test_history (unsigned seed, bool credits)
{
    struct end a, b;

    end_init (&a, seed);
    end_init (&b, seed + 1000);
    channel_open (&a.channel, credits);
    channel_open (&b.channel, credits);
    for (int i = 0; i < MESSAGES; i++) {
        act (&a, &b);
        act (&b, &a);
    }
    settle (&a, &b);
    if (a.channel.broken || b.channel.broken || !all_came (&a, &b) || !all_came (&b, &a))
        ok (false, "history %u: both ends live and have all messages: a %s, b %s", seed,
            a.channel.broken ? a.channel.broken : "lives", b.channel.broken ? b.channel.broken : "lives");
    if (credits && (a.most > WINDOW + 4 * CHANNEL_PART || channel_stats (&a.channel).bytes > 0))
        ok (false, "history %u: at most %zu bytes were on the wire at a time", seed, a.most);
    end_fini (&a);
    end_fini (&b);
}

static idt_msg_t *answer_to (int requester, uint32_t number)
{
    idt_msg_t *msg = make (CLASS_ANSWER, number, 1000, 0);

    idt_msg_route_push (msg, requester_name (requester));
    return msg;
}

/* A response to one requester does not wait until all earlier responses to another requester were sent. */
static void test_answers_by_turns (void)
{
    struct end a, b;
    idt_msg_t *msg;

    end_init (&a, 1);
    end_init (&b, 2);
    channel_open (&a.channel, true);
    channel_open (&b.channel, true);
    step (&b, &a);
    a.room = 0;
    for (uint32_t i = 0; i < 100; i++) {
        channel_send (&a.channel, msg = answer_to (0, i));
        idt_msg_unref (msg);
    }
    channel_send (&a.channel, msg = answer_to (1, 4711));
    idt_msg_unref (msg);
    a.room = 12;
    channel_retry (&a.channel);
    int before = 0;
    bool found = false;
    for (const idt_msg_t *m; !found && (m = fifo_pop (&a.wire)); before++) {
        found = idt_msg_type (m) == IDT_MSGTYPE_RESPONSE && idt_msg_route_oldest (m)[35] == 'b';
        idt_msg_unref (m);
    }
    ok (found,
        "a channel sends a response before a hundred responses that wait for another requester (%d were sent first)",
        before - 1);
    end_fini (&a);
    end_fini (&b);
}

/* The other end reads nothing. */
static void test_deaf (void)
{
    struct end a, b;
    size_t asks = 0, bytes;

    end_init (&a, 1);
    end_init (&b, 2);
    channel_open (&a.channel, true);
    channel_open (&b.channel, true);
    step (&b, &a);
    while (put (&a, CLASS_ASK, 1000) == 0)
        asks++;
    ok (errno == EXFULL && channel_stats (&a.channel).refused == 1,
        "a channel refuses requests that exceed its queue (after %zu)", asks);
    for (int i = 0; i < 10000; i++)
        put (&a, CLASS_ANSWER, 1000);
    while (put (&a, CLASS_EVENT, 1000) == 0)
        ;
    bytes = channel_stats (&a.channel).bytes;
    ok (a.most <= WINDOW + 3 * 1500,
        "if a peer reads nothing, at most one window is on the way to that peer (%zu bytes)", a.most);
    ok (bytes <= 2 * MAX_QUEUE + CHANNEL_MAX_ASK_BYTES + 10000 * 400 && channel_stats (&a.channel).failed > 1000,
        "the queues of a channel whose peer reads nothing are limited (%zu bytes)", bytes);
    idt_msg_t *theirs = make (CLASS_ANSWER, 0, 8, 0), *other = make (CLASS_ASK, 0, 8, 1);
    ok (channel_is_slow (&a.channel, theirs) && !a.channel.broken,
        "a channel whose peer reads nothing is not disconnected for that reason");
    ok (!channel_is_slow (&a.channel, other),
        "if responses wait, a channel refuses only new requests of their requesters until later");
    idt_msg_unref (theirs);
    idt_msg_unref (other);
    settle (&a, &b);
    ok (channel_stats (&a.channel).bytes == 0 && b.errors == (int)channel_stats (&a.channel).failed
            && b.came[CLASS_ANSWER] + b.errors == 10000 && b.came[CLASS_ASK] == asks,
        "when the peer reads again, all messages arrive, and responses that exceeded the queue arrive as errors (%d)",
        b.errors);
    wire_clear (&b);
    for (int i = 0; i < 2000; i++)
        put (&a, CLASS_ASK, 1000);
    channel_close (&a.channel);
    ok (channel_stats (&a.channel).bytes == 0 && channel_stats (&a.channel).asks == 0 && put (&a, CLASS_ASK, 10) < 0
            && errno == EHOSTUNREACH,
        "destroying a channel frees the messages in its queues");
    end_fini (&a);
    end_fini (&b);
}

static void test_too_long (void)
{
    struct end a, b;

    end_init (&a, 1);
    end_init (&b, 2);
    channel_open (&a.channel, true);
    channel_open (&b.channel, true);
    put (&a, CLASS_ANSWER, CHANNEL_MAX_MESSAGE);
    settle (&a, &b);
    ok (b.errors == 1 && b.errnum == EMSGSIZE && b.came[CLASS_ANSWER] == 0,
        "a response longer than CHANNEL_MAX_MESSAGE arrives as an error, EMSGSIZE");
    ok (put (&a, CLASS_ASK, CHANNEL_MAX_MESSAGE) < 0 && errno == EMSGSIZE
            && put (&a, CLASS_EVENT, CHANNEL_MAX_MESSAGE) < 0 && errno == EMSGSIZE,
        "a channel refuses to send requests and events longer than CHANNEL_MAX_MESSAGE");
    put (&a, CLASS_EVENT, 8);
    settle (&a, &b);
    ok (b.came[CLASS_EVENT] == 1 && !a.channel.broken && !b.channel.broken,
        "a channel that refused too long messages still sends others");
    end_fini (&a);
    end_fini (&b);
}

/* Control messages are sent before all others, but the goodbye is sent after all others. */
static void test_order (void)
{
    struct end a, b;
    idt_msg_t *beat = control_heartbeat_up (0, 1);

    end_init (&a, 1);
    end_init (&b, 2);
    channel_open (&a.channel, true);
    channel_open (&b.channel, true);
    step (&b, &a);
    for (int i = 0; i < 1000; i++)
        put (&a, CLASS_ASK, 1000);
    channel_send (&a.channel, beat);
    channel_send_last (&a.channel, control_encode (CONTROL_GOODBYE, 0, NULL));
    while (b.controls == 0 && step (&a, &b))
        ;
    ok (b.came[CLASS_ASK] < 500, "control messages are sent before queued requests (%u requests arrived before one)",
        b.came[CLASS_ASK]);
    settle (&a, &b);
    ok (b.came[CLASS_ASK] == 1000 && b.controls == 2, "a goodbye that is sent after queued requests arrives, too");
    idt_msg_unref (beat);
    end_fini (&a);
    end_fini (&b);
}

static void give (struct end *e, idt_msg_t *msg)
{
    channel_received (&e->channel, msg);
}

static idt_msg_t *make_control (enum control_type type, uint32_t status, const void *data, size_t size)
{
    idt_msg_t *msg = control_encode (type, status, NULL);

    if (data)
        idt_msg_set_payload (msg, data, size);
    return msg;
}

static void test_liars (void)
{
    static const uint8_t more[WINDOW_RECORD] = { [0] = 3, [7] = 9, [15] = 9 };
    static const uint8_t less[WINDOW_RECORD] = { [0] = 3, [7] = 8, [15] = 9 };
    static const uint8_t newer[WINDOW_RECORD] = { [0] = 77 };
    struct end e;

    end_init (&e, 1);
    channel_open (&e.channel, true);
    give (&e, make_control (CONTROL_CREDIT, 0, newer, sizeof (newer)));
    give (&e, make_control (CONTROL_CREDIT, 0, more, sizeof (more)));
    give (&e, make_control (CONTROL_CREDIT, 0, more, sizeof (more)));
    give (&e, make_control (99, 0, NULL, 0));
    ok (!e.channel.broken,
        "a grant of the same total, an unknown class and an unknown type of control message have no effect");
    give (&e, make_control (CONTROL_CREDIT, 0, less, sizeof (less)));
    ok (e.channel.broken != NULL, "a peer that lowers the total of its grants breaks the link");
    channel_open (&e.channel, true);
    give (&e, make_control (CONTROL_CREDIT, 0, more, 5));
    ok (e.channel.broken != NULL, "a peer that sends a grant of a wrong length breaks the link");
    channel_open (&e.channel, true);
    give (&e, make_control (CONTROL_PART, CLASS_ASK | CONTROL_PART_LAST, "x", 1));
    ok (e.channel.broken != NULL, "a peer that sends a later part without the first part of a message breaks the link");
    channel_open (&e.channel, true);
    give (&e, make_control (CONTROL_PART, CLASS_ASK | CONTROL_PART_FIRST | CONTROL_PART_LAST, "x", 1));
    ok (e.channel.broken != NULL, "a peer that sends parts that do not form a message breaks the link");
    channel_open (&e.channel, true);
    give (&e, make_control (CONTROL_PART, CLASS_ASK | CONTROL_PART_FIRST | CONTROL_PART_LAST, "", 0));
    ok (e.channel.broken != NULL, "a peer that sends an empty part breaks the link");
    channel_open (&e.channel, true);
    give (&e, make_control (CONTROL_PART, 7 | CONTROL_PART_FIRST, "x", 1));
    ok (e.channel.broken != NULL, "a peer that sends a part of an unknown class breaks the link");
    end_fini (&e);
}

/* A peer sends before it has a grant.  The test makes this happen by taking back the grant. */
static void test_too_much (void)
{
    struct end e;

    end_init (&e, 1);
    e.room = 0;
    channel_open (&e.channel, true);
    for (int i = 0; i < 360 && !e.channel.broken; i++)
        e.channel.window.granted[CLASS_ASK] = e.channel.window.received[CLASS_ASK],
        give (&e, make (CLASS_ASK, i, 8, 0));
    ok (e.channel.broken && e.came[CLASS_ASK] == 0, "a peer that sends more bytes than it was granted breaks the link");
    end_fini (&e);
}

int main (void)
{
    int failed = tap_failed;

    for (unsigned seed = 1; seed <= 30; seed++)
        test_history (seed, true);
    ok (tap_failed == failed,
        "in 30 histories all messages arrive complete and in order, and never more than one window is on the way");
    for (unsigned seed = 1; seed <= 10; seed++)
        test_history (seed, false);
    ok (tap_failed == failed,
        "in 10 histories with a peer that knows no credit all messages arrive complete and in order, at the rate "
        "that the wire accepts");
    test_deaf ();
    test_too_long ();
    test_answers_by_turns ();
    test_order ();
    test_liars ();
    test_too_much ();
    return done_testing ();
}
