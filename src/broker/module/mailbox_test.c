/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* mailbox_test.c - the order of messages, the limit, closing, and when the descriptor is readable
 *
 * A mailbox does not look into messages, so the test uses addresses of array elements as messages.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <unistd.h>

#include "broker/module/mailbox.h"
#include "test/tap.h"

#define MANY 20000
#define WRITERS 3

static char letters[WRITERS * MANY]; /* the address of letters[i] is message i */
static int dropped;

static void drop (const idt_msg_t *msg)
{
    dropped++;
}

static const idt_msg_t *message (int i)
{
    return (const idt_msg_t *)&letters[i];
}

static int number (const idt_msg_t *msg)
{
    return (int)((const char *)msg - letters);
}

static bool readable (const struct mailbox *mb)
{
    struct pollfd pfd = { .fd = mailbox_pollfd (mb), .events = POLLIN };

    return poll (&pfd, 1, 0) == 1;
}

/* If a reader takes each message when it arrives, the descriptor wakes the reader no further time. */
static void test_one_write (void)
{
    struct mailbox *mb = mailbox_create (3, drop);
    uint64_t writes = 0;

    for (int i = 0; i < 100; i++)
        if (mailbox_push_new (mb, message (i), true) < 0 || mailbox_pop (mb) != message (i))
            bail_out ("mailbox");
    ok (read (mailbox_pollfd (mb), &writes, sizeof (writes)) == sizeof (writes) && writes == 1,
        "a reader that reads each message before the next is sent is woken once");
    mailbox_destroy (mb);
}

static void test_one_thread (void)
{
    struct mailbox *mb = mailbox_create (3, drop);

    ok (mb && !readable (mb) && !mailbox_pop (mb) && errno == EAGAIN, "a pop from a new mailbox fails with EAGAIN");
    ok (mailbox_push_new (mb, message (0), true) == 0 && readable (mb), "a mailbox with a message is readable");
    ok (mailbox_push_new (mb, message (1), true) == 0 && mailbox_push_new (mb, message (2), true) == 0
            && mailbox_count (mb) == 3,
        "a mailbox accepts as many messages as its limit");
    ok (mailbox_push_new (mb, message (3), true) < 0 && errno == ENOBUFS,
        "a mailbox at its limit refuses messages with ENOBUFS");
    ok (mailbox_pop (mb) == message (0) && mailbox_pop (mb) == message (1),
        "messages come out in the order in which they "
        "went in");
    ok (readable (mb) && mailbox_pop (mb) == message (2) && !mailbox_pop (mb) && !readable (mb),
        "a mailbox is readable until a pop finds it empty");
    ok (mailbox_push_new (mb, message (4), true) == 0 && readable (mb), "a mailbox is readable again with the next "
                                                                        "message");
    mailbox_close (mb);
    mailbox_close (mb);
    ok (mailbox_push_new (mb, message (5), true) < 0 && errno == EPIPE, "a closed mailbox refuses messages with EPIPE");
    ok (mailbox_pop (mb) == message (4) && readable (mb), "messages in a closed mailbox are still popped");
    ok (!mailbox_pop (mb) && errno == EPIPE && readable (mb),
        "a pop from a closed and empty mailbox fails with EPIPE, and the mailbox stays readable");
    mailbox_destroy (mb);

    mb = mailbox_create (3, drop);
    mailbox_close (mb);
    ok (readable (mb) && !mailbox_pop (mb) && errno == EPIPE, "closing an empty mailbox wakes the reader");
    mailbox_destroy (mb);
    mb = mailbox_create (3, drop);
    mailbox_push_new (mb, message (0), true);
    mailbox_push_new (mb, message (1), true);
    errno = 77;
    mailbox_destroy (mb);
    mailbox_destroy (NULL);
    ok (dropped == 2 && errno == 77, "destroying a mailbox drops the messages left in it, and keeps errno");
}

/* --- bells ----------------------------------------------------------------------------------- */

static bool rings (const struct bell *b)
{
    struct pollfd pfd = { .fd = bell_fd (b), .events = POLLIN };

    return poll (&pfd, 1, 0) == 1;
}

static void test_bell (void)
{
    struct bell *b = bell_create ();
    int a[2] = { 0, 1 };
    struct mailbox *mb[2] = { mailbox_create_at (b, &a[0], 9, drop), mailbox_create_at (b, &a[1], 9, drop) };

    ok (b && mb[0] && mb[1] && !rings (b) && !bell_next (b), "a new bell is silent");
    for (int i = 0; i < 3; i++)
        mailbox_push_new (mb[0], message (i), true);
    mailbox_push_new (mb[1], message (3), true);
    ok (rings (b) && bell_next (b) == &a[0] && mailbox_pop (mb[0]) == message (0),
        "a bell rings for a mailbox with a message");
    ok (bell_next (b) == &a[1] && mailbox_pop (mb[1]) == message (3) && bell_next (b) == &a[0]
            && mailbox_pop (mb[0]) == message (1) && rings (b),
        "mailboxes that have more than one message are popped in turn");
    mailbox_close (mb[0]);
    ok (bell_next (b) == &a[0] && mailbox_pop (mb[0]) == message (2) && bell_next (b) == &a[0] && !mailbox_pop (mb[0])
            && errno == EPIPE && !bell_next (b) && !rings (b),
        "the close of a mailbox is returned once, after all messages of the mailbox");
    mailbox_push_new (mb[1], message (4), true);
    ok (mailbox_pop (mb[1]) == message (4) && bell_next (b) == &a[1] && !mailbox_pop (mb[1]) && errno == EAGAIN
            && !bell_next (b) && !rings (b),
        "a reader that is popping does not miss a message that is sent meanwhile");
    mailbox_push_new (mb[1], message (5), true);
    mailbox_mute (mb[1]);
    ok (!bell_next (b) && !rings (b) && mailbox_pop (mb[1]) == message (5), "a muted mailbox does not ring");
    ok (!mailbox_wait (mb[1], 0) && !mailbox_wait (mb[1], 0.001),
        "a wait for a mailbox without messages ends after its timeout");
    mailbox_push_new (mb[1], message (6), true);
    ok (mailbox_wait (mb[1], 0) && mailbox_wait (mb[0], -1),
        "a wait for a mailbox ends with a message, or when the mailbox is closed");
    mailbox_destroy (mb[0]);
    mailbox_destroy (mb[1]);
    mb[0] = mailbox_create_at (b, &a[0], 9, drop);
    mailbox_push_new (mb[0], message (7), true);
    mailbox_destroy (mb[0]);
    ok (!bell_next (b) && !rings (b), "a destroyed mailbox stops ringing");
    bell_destroy (b);
}

struct bell_writer {
    struct mailbox *mb;
    int first;
};

static void *write_at (void *arg)
{
    struct bell_writer *w = arg;

    for (int i = 0; i < MANY; i++)
        mailbox_push_new (w->mb, message (w->first + i), false);
    mailbox_close (w->mb);
    return NULL;
}

/* One reader, and several writers that have a mailbox each. The reader gets all messages, no matter when it sleeps. */
static void test_bell_threads (void)
{
    struct bell *b = bell_create ();
    struct bell_writer w[WRITERS];
    pthread_t threads[WRITERS];
    int next[WRITERS] = { 0 }, ends = 0;
    bool good = true;

    for (int i = 0; i < WRITERS; i++) {
        w[i] = (struct bell_writer){ mailbox_create_at (b, &w[i], 1, drop), i * MANY };
        if (pthread_create (&threads[i], NULL, write_at, &w[i]) != 0)
            bail_out ("pthread_create");
    }
    while (ends < WRITERS && good) {
        struct pollfd pfd = { .fd = bell_fd (b), .events = POLLIN };
        struct bell_writer *from;

        good = poll (&pfd, 1, TAP_WAIT_S * 1000) == 1;
        while (good && (from = bell_next (b))) {
            const idt_msg_t *msg = mailbox_pop (from->mb);

            if (msg)
                good = number (msg) == from->first + next[from - w]++;
            else
                ends += errno == EPIPE;
        }
    }
    for (int i = 0; i < WRITERS; i++) {
        pthread_join (threads[i], NULL);
        good = good && next[i] == MANY;
        mailbox_destroy (w[i].mb);
    }
    ok (good && ends == WRITERS, "a reader of many mailboxes misses no message and no close");
    bell_destroy (b);
}

/* --- several writers, one reader ------------------------------------------------------------ */

struct writer {
    struct mailbox *mb;
    int first;
    int refused;
};

static void *write_all (void *arg)
{
    struct writer *w = arg;

    for (int i = 0; i < MANY; i++) {
        wait_until (mailbox_push_new (w->mb, message (w->first + i), true) == 0)
        {
            w->refused++;
            sched_yield (); /* the mailbox is full: let the reader run */
        }
    }
    return NULL;
}

static void test_threads (void)
{
    struct mailbox *mb = mailbox_create (1000, drop);
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];
    int next[WRITERS] = { 0 };
    bool good = true;

    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){ .mb = mb, .first = i * MANY };
        if (pthread_create (&threads[i], NULL, write_all, &writers[i]) != 0)
            bail_out ("pthread_create");
    }
    for (int left = WRITERS * MANY; left > 0;) {
        struct pollfd pfd = { .fd = mailbox_pollfd (mb), .events = POLLIN };
        const idt_msg_t *msg;

        wait_until ((msg = mailbox_pop (mb))) poll (&pfd, 1, TAP_WAIT_S * 1000);
        int n = number (msg);
        good = good && n % MANY == next[n / MANY]++;
        left--;
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join (threads[i], NULL);
    ok (good, "the messages of each writer come out once and in order");
    ok (!mailbox_pop (mb) && !readable (mb), "a reader gets only the messages that the writers sent");
    mailbox_destroy (mb);
}

int main (int argc, char *argv[])
{
    test_one_thread ();
    test_one_write ();
    test_threads ();
    test_bell ();
    test_bell_threads ();
    return done_testing ();
}
