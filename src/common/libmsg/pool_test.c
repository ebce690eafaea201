/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pool_test.c - blocks for messages are reused, limited, used by several threads, and valid until the last message ends
 */
#include <pthread.h>
#include <string.h>

#include "libmsg/message.h"
#include "test/tap.h"

#define THREADS 4
#define ROUNDS 20000
#define HELD 32
#define MANY (2 * MSG_POOL_BYTES / MSG_POOL_BLOCK)

static idt_msg_t *make (struct msg_pool *pool, size_t payload_size)
{
    static const char payload[2 * MSG_POOL_BLOCK] = "payload";
    idt_msg_t *msg = msg_create (pool, IDT_MSGTYPE_REQUEST);

    if (!msg || idt_msg_set_topic (msg, "a.b") < 0 || idt_msg_set_payload (msg, payload, payload_size) < 0)
        bail_out ("cannot make a message");
    return msg;
}

static void test_reuse (void)
{
    struct msg_pool *pool = msg_pool_create ();
    idt_msg_t *msg = make (pool, 8), *answer, *large = make (pool, 2 * MSG_POOL_BLOCK), *again;

    idt_msg_set_matchtag (msg, 7);
    ok ((char *)msg->payload > (char *)msg && (char *)msg->payload < (char *)msg + MSG_POOL_BLOCK && !msg->topic_alloc,
        "a small message has its topic and its payload in its block");
    ok (large->payload_alloc && large->payload_size == 2 * MSG_POOL_BLOCK, "a large payload has its own allocation");
    answer = idt_msg_respond (msg, 0);
    ok (answer->pool == pool && idt_msg_set_payload (answer, "x", 2) == 0 && !answer->payload_alloc,
        "a response uses the pool of its request");
    idt_msg_unref (msg);
    again = make (pool, 8);
    ok (again == msg && idt_msg_matchtag (again) == 0 && idt_msg_nodeid (again) == IDT_NODEID_ANY,
        "a new message reuses the block of a freed one, and contains none of its data");
    msg_pool_let_go (pool);
    ok (strcmp (idt_msg_topic (answer), "a.b") == 0 && strcmp (idt_msg_string (answer), "x") == 0,
        "messages outlive the owner of the pool");
    idt_msg_unref (again);
    idt_msg_unref (large);
    idt_msg_unref (answer);
}

/* A payload that is set repeatedly finds no space in the message in the end; it may be a part of the one before. */
static void test_space (void)
{
    idt_msg_t *msg = make (NULL, 8);
    bool good = true;

    for (int i = 0; i < 100; i++) {
        good = good && idt_msg_set_payload (msg, i % 2 ? "0123456789" : "abcdefghij", 11) == 0;
        good = good && idt_msg_set_payload (msg, (const char *)msg->payload + 3, 8) == 0;
        good = good && strcmp (idt_msg_string (msg), i % 2 ? "3456789" : "defghij") == 0;
        good = good && idt_msg_set_topic (msg, i % 2 ? "one" : "another") == 0;
        good = good && strcmp (idt_msg_topic (msg), i % 2 ? "one" : "another") == 0;
    }
    ok (good && msg->payload_alloc && msg->topic_alloc,
        "topic and payload of a message in a pool can be set any number of times");
    idt_msg_unref (msg);
}

static void test_bound (void)
{
    static idt_msg_t *msg[MANY];
    struct msg_pool *pool = msg_pool_create ();

    for (size_t i = 0; i < MANY; i++)
        msg[i] = make (pool, 8);
    for (size_t i = 0; i < MANY; i++)
        idt_msg_unref (msg[i]);
    idt_msg_t *last = make (pool, 8);
    ok (last == msg[MANY / 2 - 1], "a pool keeps at most MSG_POOL_BYTES of freed blocks");
    idt_msg_unref (last);
    msg_pool_let_go (pool);
}

/* Each thread makes messages, and frees the messages of the thread before it. */
struct seat {
    struct msg_pool *pool;
    idt_msg_t *box[HELD]; /* atomic: messages from the other thread */
    struct seat *next;
    int wrong;
};

static void *sit (void *arg)
{
    struct seat *seat = arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        idt_msg_t *msg = make (seat->pool, 8), *old;

        idt_msg_set_matchtag (msg, 0xabcd);
        old = __atomic_exchange_n (&seat->next->box[i % HELD], msg, __ATOMIC_ACQ_REL);
        if (!old)
            continue;
        seat->wrong += idt_msg_matchtag (old) != 0xabcd || strcmp (idt_msg_topic (old), "a.b") != 0;
        idt_msg_unref (old);
    }
    return NULL;
}

static void test_threads (void)
{
    static struct seat seats[THREADS];
    struct msg_pool *pool = msg_pool_create ();
    pthread_t threads[THREADS];
    int wrong = 0;

    for (int i = 0; i < THREADS; i++)
        seats[i] = (struct seat){ .pool = pool, .next = &seats[(i + 1) % THREADS] };
    for (int i = 0; i < THREADS; i++)
        pthread_create (&threads[i], NULL, sit, &seats[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join (threads[i], NULL);
    msg_pool_let_go (pool);
    for (int i = 0; i < THREADS; i++) {
        wrong += seats[i].wrong;
        for (int k = 0; k < HELD; k++)
            idt_msg_unref (seats[i].box[k]);
    }
    ok (wrong == 0, "no block is used by two messages of %d threads at the same time", THREADS);
}

int main (void)
{
    test_reuse ();
    test_space ();
    test_bound ();
    test_threads ();
    return done_testing ();
}
