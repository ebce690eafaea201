/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* worker_test.c - a worker reports the result of its work, and can be left while the work blocks */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "libutil/errprintf.h"
#include "libutil/worker.h"
#include "test/tap.h"

/* Work that is as slow as a disk that hangs: it ends when a byte arrives. */
struct piece {
    int in[2];
    int out[2]; /* 'b': work has begun; 'o': work ended after worker_leave () */
    bool fails;
};

static int work (void *arg, idt_error_t *errp)
{
    struct piece *p = arg;
    char c;

    if (write (p->out[1], "b", 1) != 1 || read (p->in[0], &c, 1) != 1)
        return -1;
    return p->fails ? errsetf (errp, EIO, "the work was asked to fail") : 0;
}

static void over (void *arg)
{
    struct piece *p = arg;

    if (write (p->out[1], "o", 1) != 1)
        abort ();
}

static void go_on (struct piece *p)
{
    if (write (p->in[1], "x", 1) != 1)
        abort ();
}

static bool is_readable (int fd, int timeout_ms)
{
    struct pollfd pfd = { .fd = fd, .events = POLLIN };

    return poll (&pfd, 1, timeout_ms) == 1;
}

/* The next byte that the work writes; 0: none yet. */
static char next (struct piece *p, int timeout_ms)
{
    char c = 0;

    return is_readable (p->out[0], timeout_ms) && read (p->out[0], &c, 1) == 1 ? c : 0;
}

static void piece_init (struct piece *p, bool fails)
{
    *p = (struct piece){ .fails = fails };
    if (pipe (p->in) < 0 || pipe (p->out) < 0)
        abort ();
}

static void piece_fini (struct piece *p)
{
    close (p->in[0]);
    close (p->in[1]);
    close (p->out[0]);
    close (p->out[1]);
}

static void test_result (void)
{
    struct piece p;
    idt_error_t err;

    piece_init (&p, false);
    struct worker *w = worker_create (work, &p);
    worker_begin (w);
    ok (worker_result (w, &err) == 0, "a piece of work has no result until it has ended");
    go_on (&p);
    ok (is_readable (worker_fd (w), -1) && worker_result (w, &err) == 1,
        "the descriptor of a worker is readable when the piece of work has ended");
    p.fails = true;
    worker_begin (w);
    go_on (&p);
    ok (is_readable (worker_fd (w), -1) && worker_result (w, &err) == -1 && errno == EIO,
        "a failed piece of work reports its errno and text: %s", err.text);
    worker_destroy (w);
    piece_fini (&p);
}

static void test_leave (void)
{
    struct piece p;

    piece_init (&p, false);
    struct worker *w = worker_create (work, &p);
    ok (worker_leave (w, 60000, over) && next (&p, 0) == 0,
        "worker_leave () ends a worker without work within the given time");
    w = worker_create (work, &p);
    worker_begin (w);
    ok (next (&p, -1) == 'b', "a piece of work has begun");
    ok (!worker_leave (w, 10, over) && next (&p, 0) == 0,
        "worker_leave () does not wait longer than its caller asks for a piece of work");
    go_on (&p);
    ok (next (&p, -1) == 'o', "after worker_leave () the thread calls 'over' when the piece of work has ended");
    ok (worker_leave (NULL, 0, over), "worker_leave () accepts NULL");
    piece_fini (&p);
}

int main (void)
{
    test_result ();
    test_leave ();
    return done_testing ();
}
