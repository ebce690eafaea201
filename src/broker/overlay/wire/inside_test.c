/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* inside_test.c - lines inside a process: order, limits, ends of lines, and random sequences of all operations */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker/overlay/wire/inside.h"
#include "test/tap.h"

#define A "aaaaaaaa-0000-4000-8000-000000000000"
#define B "bbbbbbbb-0000-4000-8000-000000000000"

static void touched (void *arg)
{
    ++*(int *)arg;
}

static struct inside_end end_of (int *count, size_t messages, size_t bytes)
{
    return (struct inside_end){ .messages = messages, .bytes = bytes, .touched = touched, .arg = count };
}

/* Make a message that contains a number. */
static idt_msg_t *make (uint32_t n)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_EVENT);

    idt_msg_set_seq (msg, n);
    return msg;
}

static int put_up (struct inside_line *line, uint32_t n)
{
    idt_msg_t *msg = make (n);
    int rc = inside_line_send (line, msg);

    idt_msg_unref (msg);
    return rc;
}

static int put_down (struct inside_port *port, const char *identity, uint32_t n)
{
    idt_msg_t *msg = make (n);
    int rc = inside_port_send (port, identity, msg);

    idt_msg_unref (msg);
    return rc;
}

/* Read the next input of a port.  Returns the number of the message; 0: there is no input; -1: the end of a line. */
static int next_up (struct inside_port *port, struct inside_item *item)
{
    int n;

    if (!inside_port_next (port, item))
        return 0;
    if (!item->msg)
        return -1;
    n = (int)idt_msg_seq (item->msg);
    idt_msg_unref (item->msg);
    return n;
}

static int next_down (struct inside_line *line)
{
    idt_msg_t *msg = inside_line_next (line);
    int n;

    if (!msg)
        return errno == EPIPE ? -1 : 0;
    n = (int)idt_msg_seq (msg);
    idt_msg_unref (msg);
    return n;
}

static void test_line (void)
{
    struct inside *in = inside_create ();
    int up = 0, down = 0, number;
    struct inside_end above = end_of (&up, 100, 1 << 20), below = end_of (&down, 100, 1 << 20);
    struct inside_port *port = inside_port_create (in, 7, 42, &above);
    struct inside_line *line = inside_line_open (port, 9, A, &below);
    struct inside_item item;
    uint32_t rank;

    ok (inside_find (in, 7) == port && inside_port_tag (port) == 42 && !inside_find (in, 8),
        "a port is found by its rank");
    ok (!inside_port_create (in, 7, 1, &above) && errno == EEXIST, "a rank has only one port");
    ok (!inside_line_open (port, 9, A, &below) && errno == EEXIST, "an identity has only one line");
    ok (inside_port_who (port, A, &rank, &number) && rank == 9 && !inside_port_who (port, B, &rank, &number),
        "a port reports which port opened a line");
    ok (next_up (port, &item) == 0 && next_down (line) == 0, "a new line has no messages");
    put_up (line, 1);
    put_up (line, 2);
    put_down (port, A, 3);
    ok (up > 0 && down > 0, "both ends of a line are notified of input");
    ok (next_up (port, &item) == 1 && item.rank == 9 && strcmp (item.identity, A) == 0 && item.line == number
            && next_up (port, &item) == 2 && next_up (port, &item) == 0,
        "messages sent up a line arrive in order, with their sender");
    ok (next_down (line) == 3 && next_down (line) == 0, "messages sent down a line arrive in order, with their sender");
    ok (put_down (port, B, 1) < 0 && errno == EHOSTUNREACH, "a message to an unknown identity fails with EHOSTUNREACH");
    inside_line_close (line);
    inside_port_destroy (port);
    ok (!inside_find (in, 7), "a port that was destroyed is not found");
    inside_destroy (in);
}

static void test_end_below (void)
{
    struct inside *in = inside_create ();
    int up = 0, down = 0, number;
    struct inside_end above = end_of (&up, 100, 1 << 20), below = end_of (&down, 100, 1 << 20);
    struct inside_port *port = inside_port_create (in, 0, 0, &above);
    struct inside_line *line = inside_line_open (port, 1, A, &below);
    struct inside_item item;

    inside_port_who (port, A, &item.rank, &number);
    put_up (line, 1);
    put_down (port, A, 2);
    inside_line_close (line);
    ok (put_down (port, A, 3) < 0 && errno == EHOSTUNREACH, "a message to a closed line fails with EHOSTUNREACH");
    ok (next_up (port, &item) == 1 && next_up (port, &item) == -1 && item.line == number && next_up (port, &item) == 0,
        "after a close the receiver reads the messages sent before, then the end once");
    line = inside_line_open (port, 1, A, &below);
    ok (line && inside_port_who (port, A, &item.rank, &item.line) && item.line != number,
        "a new line of the same opener has another number");
    up = 0;
    inside_line_close (line);
    ok (up == 1 && next_up (port, &item) == -1, "an end of a line that has sent no message is reported immediately");
    inside_port_destroy (port);
    inside_destroy (in);
}

/* A broker opens and closes lines again and again, at a port that reads nothing. */
static void test_unheard (void)
{
    struct inside *in = inside_create ();
    int up = 0, down = 0;
    struct inside_end above = end_of (&up, 100, 1 << 20), below = end_of (&down, 100, 1 << 20);
    struct inside_port *port = inside_port_create (in, 0, 0, &above);
    struct inside_item item;
    struct inside_line *line = NULL;

    for (int i = 0; i < 3 && (line = inside_line_open (port, 1, A, &below)); i++) {
        put_up (line, 1);
        inside_line_close (line);
    }
    ok (line && next_up (port, &item) == 0,
        "a port reads nothing from a line that was closed before the port first read from it");
    line = inside_line_open (port, 1, B, &below);
    put_up (line, 1);
    put_up (line, 2);
    next_up (port, &item);
    inside_line_close (line);
    ok (next_up (port, &item) == 2 && next_up (port, &item) == -1,
        "a port that has read from a line gets all messages that were sent before the close");
    inside_port_destroy (port);
    inside_destroy (in);
}

static void test_end_above (void)
{
    struct inside *in = inside_create ();
    int up = 0, down = 0;
    struct inside_end above = end_of (&up, 100, 1 << 20), below = end_of (&down, 100, 1 << 20);
    struct inside_port *port = inside_port_create (in, 0, 0, &above);
    struct inside_line *line = inside_line_open (port, 1, A, &below);
    struct inside_line *left = inside_line_open (port, 2, B, &below);
    char name[64];

    snprintf (name, sizeof (name), "%s", inside_port_name (port));
    put_down (port, A, 1);
    put_up (line, 2);
    inside_line_close (left);
    down = 0;
    inside_port_destroy (port);
    ok (down == 1, "the end of a port is reported immediately to the other end of an open line");
    ok (put_up (line, 3) < 0 && errno == EHOSTUNREACH, "a message to a destroyed port fails with EHOSTUNREACH");
    ok (next_down (line) == 1 && next_down (line) == -1 && next_down (line) == -1,
        "messages that a port sent before it was destroyed are read, then the end");
    inside_line_close (line);
    port = inside_port_create (in, 0, 0, &above);
    ok (port && strcmp (name, inside_port_name (port)) != 0, "another port of the same rank has another name");
    inside_port_destroy (port);
    inside_destroy (in);
}

static void test_bounds (void)
{
    struct inside *in = inside_create ();
    int up = 0, down = 0, n = 0;
    struct inside_end above = end_of (&up, 1000, 3000), below = end_of (&down, 10, 1 << 20);
    struct inside_port *port = inside_port_create (in, 0, 0, &above);
    struct inside_line *line = inside_line_open (port, 1, A, &below), *other = inside_line_open (port, 2, B, &below);
    struct inside_item item;
    idt_msg_t *large = make (99);

    while (put_up (line, 1) == 0)
        n++;
    ok (n == 10 && errno == EAGAIN, "a line accepts as many messages as its limit");
    ok (put_up (other, 2) == 0,
        "a line accepts as many messages as its limit even if the other lines of the port are full");
    ok (next_up (port, &item) == 1 && next_up (port, &item) == 2, "a port reads from its lines in turn");
    ok (put_up (line, 1) == 0, "a full line accepts a message after one was read");
    for (n = 0; put_down (port, A, 1) == 0;)
        n++;
    ok (n > 5 && n < 12 && errno == EAGAIN, "a line accepts as many bytes as its limit (%d messages)", n);
    idt_msg_alloc_payload (large, 100000);
    ok (inside_port_send (port, A, large) < 0 && inside_port_send (port, B, large) == 0,
        "an empty line accepts one message of any size");
    idt_msg_unref (large);
    ok (next_down (other) == 99, "a message larger than the limit of a line arrives");
    inside_line_close (other);
    inside_line_close (line);
    inside_port_destroy (port);
    inside_destroy (in);
}

/* The receiver may change a message that it gets, without changing it for others. */
static void test_copies (void)
{
    struct inside *in = inside_create ();
    int up = 0, down = 0;
    struct inside_end above = end_of (&up, 100, 1 << 20), below = end_of (&down, 100, 1 << 20);
    struct inside_port *port = inside_port_create (in, 0, 0, &above);
    struct inside_line *line = inside_line_open (port, 1, A, &below);
    struct inside_item item;
    idt_msg_t *msg = make (1), *kept = make (2);

    idt_msg_set_cred (kept, (struct idt_cred){ 1, IDT_ROLE_OWNER });
    inside_line_send (line, msg);
    inside_line_send (line, kept);
    idt_msg_unref (msg);
    inside_port_next (port, &item);
    ok (item.msg == msg, "a message that its sender has released is not copied");
    idt_msg_unref (item.msg);
    inside_port_next (port, &item);
    idt_msg_set_cred (item.msg, (struct idt_cred){ 1, 0 });
    ok (item.msg != kept && idt_msg_seq (item.msg) == 2 && idt_msg_cred (kept).rolemask == IDT_ROLE_OWNER,
        "a message that its sender keeps is copied");
    idt_msg_unref (item.msg);
    idt_msg_unref (kept);
    inside_line_close (line);
    inside_port_destroy (port);
    inside_destroy (in);
}

/* --- random histories --------------------------------------------------------------------------------- */

#define LINES 4

struct history {
    struct inside *in;
    struct inside_port *port;
    int up;          /* notifications of the port since it was last read */
    int down[LINES]; /* notifications of each line since it was last read */
    struct inside_line *line[LINES];
    char identity[LINES][IDT_MSG_UUID_LEN + 1];
    int number[LINES];
    uint32_t sent_up[LINES], got_up[LINES], sent_down[LINES], got_down[LINES];
    int opened;
    int bad;
};

static void h_port (struct history *h)
{
    struct inside_end above = end_of (&h->up, 5, 4000);

    h->port = inside_port_create (h->in, 0, 0, &above);
}

static void h_open (struct history *h, int i)
{
    struct inside_end below = end_of (&h->down[i], 5, 4000);
    bool asks = rand () % 2 == 0;
    uint32_t rank;

    snprintf (h->identity[i], sizeof (h->identity[i]), "%08x-0000-4000-8000-000000000000", (unsigned)++h->opened);
    h->line[i] = inside_line_open (h->port, i, h->identity[i], &below);
    h->sent_up[i] = h->got_up[i] = h->sent_down[i] = h->got_down[i] = 0;
    h->bad += asks && !inside_port_who (h->port, h->identity[i], &rank, &h->number[i]);
}

/* Read one message of the port.  It must be the next one that its sender has sent. */
static void h_read_up (struct history *h)
{
    struct inside_item item = { .rank = 0 };
    int n = next_up (h->port, &item), i = (int)item.rank;

    if (n > 0 && strcmp (item.identity, h->identity[i]) == 0)
        h->bad += n != (int)++h->got_up[i];
}

static void h_read_down (struct history *h, int i)
{
    int n = next_down (h->line[i]);

    if (n > 0)
        h->bad += n != (int)++h->got_down[i];
    else if (n < 0)
        h->bad += h->got_down[i] != h->sent_down[i];
}

static void h_step (struct history *h)
{
    int i = rand () % LINES;

    switch (rand () % 12) {
    case 0:
        if (h->port && rand () % 8 == 0) {
            inside_port_destroy (h->port);
            h->port = NULL;
        }
        else if (!h->port)
            h_port (h);
        break;
    case 1:
    case 2:
        if (!h->line[i] && h->port)
            h_open (h, i);
        else if (h->line[i] && rand () % 4 == 0) {
            inside_line_close (h->line[i]);
            h->line[i] = NULL;
        }
        break;
    case 3:
    case 4:
    case 5:
        if (h->line[i] && put_up (h->line[i], h->sent_up[i] + 1) == 0)
            h->sent_up[i]++;
        break;
    case 6:
    case 7:
        if (h->line[i] && h->port && put_down (h->port, h->identity[i], h->sent_down[i] + 1) == 0)
            h->sent_down[i]++;
        break;
    case 8:
    case 9:
        if (h->line[i])
            h_read_down (h, i);
        break;
    default:
        if (h->port)
            h_read_up (h);
    }
}

static void test_histories (void)
{
    struct history h;
    int bad = 0;

    for (int seed = 1; seed <= 300; seed++) {
        memset (&h, 0, sizeof (h));
        srand (seed);
        h.in = inside_create ();
        h_port (&h);
        for (int i = 0; i < 1000; i++)
            h_step (&h);
        for (int i = 0; i < LINES; i++)
            inside_line_close (h.line[i]);
        inside_port_destroy (h.port);
        inside_destroy (h.in);
        bad += h.bad;
    }
    ok (bad == 0, "in 300 random histories all messages arrive once, in order, and before the end (%d do not)", bad);
}

int main (void)
{
    test_line ();
    test_end_below ();
    test_unheard ();
    test_end_above ();
    test_bounds ();
    test_copies ();
    test_histories ();
    return done_testing ();
}
