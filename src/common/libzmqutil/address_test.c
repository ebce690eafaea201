/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* address_test.c - names of hosts are found out beside whoever needs them */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/libzmqutil/address.h"
#include "test/tap.h"

#define WAIT_MS 60000

static bool is (const char *got, const char *want)
{
    return got && strcmp (got, want) == 0;
}

static struct address *make (void)
{
    struct address *a = address_create ();

    if (!a)
        bail_out ("out of memory");
    return a;
}

static void test_no_name (void)
{
    struct address *a = make ();

    ok (is (address_resolve (a, "tcp://127.0.0.1:80", NULL), "tcp://127.0.0.1:80"), "a number is returned as it is");
    ok (is (address_resolve (a, "ipc:///tmp/x:1", NULL), "ipc:///tmp/x:1"), "so is what has no host");
    ok (is (address_resolve (a, "tcp://[::1]:80", NULL), "tcp://[::1]:80"), "and a number in brackets");
    address_destroy (a);
    address_destroy (NULL);
}

static void test_name (void)
{
    struct address *a = make (), *list[] = { NULL, a };
    idt_error_t error;

    const char *first = address_resolve (a, "tcp://localhost:80", &error);
    if (first)
        ok (is (first, "tcp://127.0.0.1:80"), "the answer was there at once");
    else
        ok (errno == EAGAIN && strstr (error.text, "asked for"), "a name is being asked for: %s", error.text);
    address_wait (list, 2, WAIT_MS);
    ok (is (address_resolve (a, "tcp://localhost:80", &error), "tcp://127.0.0.1:80"), "then it is known");
    ok (is (address_resolve (a, "tcp://localhost:81", &error), "tcp://127.0.0.1:81"), "for another port, too");
    address_destroy (a);
}

static void test_no_such_name (void)
{
    struct address *a = make ();
    idt_error_t error;

    address_resolve (a, "tcp://no-such-host.invalid:80", &error);
    address_wait (&a, 1, WAIT_MS);
    errno = 0;
    ok (!address_resolve (a, "tcp://no-such-host.invalid:80", &error) && errno == EAGAIN
            && strstr (error.text, "no-such-host.invalid: "),
        "of a name that there is not, the reason is told: %s", error.text);
    address_resolve (a, "tcp://localhost:80", &error);
    address_wait (&a, 1, WAIT_MS);
    ok (is (address_resolve (a, "tcp://localhost:80", &error), "tcp://127.0.0.1:80"),
        "another name is asked for at once");
    address_destroy (a);
}

/* Whoever asked may be gone, or want another name, before the answer: threads end what is left. */
static void test_gone (void)
{
    struct address *a = NULL;

    for (int i = 0; i < 50; i++) {
        address_destroy (a);
        a = make ();
        address_resolve (a, "tcp://no-such-host.invalid:80", NULL);
        address_resolve (a, "tcp://localhost:80", NULL);
    }
    address_wait (&a, 1, WAIT_MS);
    ok (is (address_resolve (a, "tcp://localhost:80", NULL), "tcp://127.0.0.1:80"),
        "answers that nobody waits for are dropped");
    address_destroy (a);
}

int main (void)
{
    test_no_name ();
    test_name ();
    test_no_such_name ();
    test_gone ();
    return done_testing ();
}
