/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* resolver_test.c - names are resolved in a thread, without blocking the caller */
#include "config.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/libzmqutil/resolver.h"
#include "test/tap.h"

#define WAIT_MS 60000

static bool is (const char *got, const char *want)
{
    return got && strcmp (got, want) == 0;
}

/* The name service decides which address comes first. */
static bool is_local (const char *got, const char *port)
{
    struct in6_addr number;
    const char *colon = got ? strrchr (got, ':') : NULL;

    return got && resolver_number (got, &number) && strcmp (colon + 1, port) == 0
           && (IN6_IS_ADDR_LOOPBACK (&number) || IN6_IS_ADDR_V4MAPPED (&number));
}

static struct resolver *make (void)
{
    struct resolver *a = resolver_create ();

    if (!a)
        bail_out ("out of memory");
    return a;
}

static void test_no_name (void)
{
    struct resolver *a = make ();

    ok (is (resolver_resolve (a, "tcp://127.0.0.1:80", NULL), "tcp://127.0.0.1:80"),
        "the resolver returns an endpoint with a numeric host unchanged");
    ok (is (resolver_resolve (a, "ipc:///tmp/x:1", NULL), "ipc:///tmp/x:1"),
        "the resolver returns an endpoint without a host unchanged");
    ok (is (resolver_resolve (a, "tcp://[::1]:80", NULL), "tcp://[::1]:80"),
        "the resolver returns an endpoint with a numeric host in brackets unchanged");
    resolver_destroy (a);
    resolver_destroy (NULL);
}

static void test_name (void)
{
    struct resolver *a = make (), *list[] = { NULL, a };
    idt_error_t error;

    const char *first = resolver_resolve (a, "tcp://localhost:80", &error);
    if (first)
        ok (is_local (first, "80"), "if the first call for a name returns an address, the name has this address");
    else
        ok (errno == EAGAIN && strstr (error.text, "asked for"),
            "resolving a name whose lookup is running fails with EAGAIN: %s", error.text);
    resolver_wait (list, 2, WAIT_MS);
    ok (is_local (resolver_resolve (a, "tcp://localhost:80", &error), "80"),
        "the address of a name is returned after the lookup");
    ok (is_local (resolver_resolve (a, "tcp://localhost:81", &error), "81"),
        "the address of a name is returned for another port, too");
    resolver_destroy (a);
}

static void test_no_such_name (void)
{
    struct resolver *a = make ();
    idt_error_t error;

    resolver_resolve (a, "tcp://no-such-host.invalid:80", &error);
    resolver_wait (&a, 1, WAIT_MS);
    errno = 0;
    ok (!resolver_resolve (a, "tcp://no-such-host.invalid:80", &error) && errno == EAGAIN
            && strstr (error.text, "no-such-host.invalid: "),
        "resolving a name that does not exist fails with the reason: %s", error.text);
    resolver_resolve (a, "tcp://localhost:80", &error);
    resolver_wait (&a, 1, WAIT_MS);
    ok (is_local (resolver_resolve (a, "tcp://localhost:80", &error), "80"),
        "after a name that does not exist another name is looked up");
    resolver_destroy (a);
}

/* --- a name service of our own, before that of libc -------------------------------------------------------------- */

static const char *const numbers[] = { "::1", "fe80::1", "192.0.2.7", "2001:db8::7" };
static int known; /* how many of them "many.test" has */

static struct addrinfo *make_number (const char *text, struct addrinfo *next)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST }, *ai;
    int (*libc) (const char *, const char *, const struct addrinfo *, struct addrinfo **) = dlsym (RTLD_NEXT,
                                                                                                   "getaddrinfo");

    if (libc (text, NULL, &hints, &ai) != 0)
        bail_out (text);
    ai->ai_next = next;
    return ai;
}

int getaddrinfo (const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **list)
{
    int (*libc) (const char *, const char *, const struct addrinfo *, struct addrinfo **) = dlsym (RTLD_NEXT,
                                                                                                   "getaddrinfo");

    if (strcmp (name, "many.test") != 0)
        return libc (name, service, hints, list);
    *list = NULL;
    for (int i = known; i-- > 0;)
        *list = make_number (numbers[i], *list);
    return 0;
}

static const char *ask (struct resolver *a)
{
    resolver_resolve (a, "tcp://many.test:80", NULL);
    resolver_wait (&a, 1, WAIT_MS);
    return resolver_resolve (a, "tcp://many.test:80", NULL);
}

static void test_many (void)
{
    struct resolver *a = make ();

    known = 1;
    ok (is (ask (a), "tcp://[::1]:80") && resolver_count (a) == 1, "a name may have only an IPv6 address");
    ok (!resolver_next (a) && is (ask (a), "tcp://[::1]:80"), "a name with a single address has no next address");
    resolver_destroy (a);
    a = make ();
    known = 4;
    ok (is (ask (a), "tcp://[::1]:80") && resolver_count (a) == 3,
        "of several addresses the first is returned, and link-local ones are skipped");
    ok (resolver_next (a) && is (ask (a), "tcp://192.0.2.7:80") && resolver_next (a)
            && is (ask (a), "tcp://[2001:db8::7]:80"),
        "resolver_next () selects the next address");
    ok (!resolver_next (a) && is (ask (a), "tcp://[::1]:80") && resolver_next (a),
        "after the last address of a name the first one is used again");
    resolver_destroy (a);
}

static const char *ask_list (struct resolver *a, const char *list)
{
    resolver_resolve (a, list, NULL);
    resolver_wait (&a, 1, WAIT_MS);
    return resolver_resolve (a, list, NULL);
}

static void test_list (void)
{
    const char *list = "tcp://192.0.2.1,no-such-host.invalid,[2001:db8::1],many.test,192.0.2.7:80";
    struct resolver *a = make ();
    idt_error_t error = { "" };

    known = 3;
    ok (is (ask_list (a, list), "tcp://192.0.2.1:80") && resolver_count (a) == 4,
        "a list has the addresses of all its names, each once; a name that cannot be resolved is left out");
    ok (resolver_next (a) && is (ask_list (a, list), "tcp://[2001:db8::1]:80") && resolver_next (a)
            && is (ask_list (a, list), "tcp://[::1]:80") && resolver_next (a)
            && is (ask_list (a, list), "tcp://192.0.2.7:80"),
        "they are used in the order of the list");
    ok (!resolver_next (a) && is (ask_list (a, list), "tcp://192.0.2.1:80"), "after the last one, the first is used");
    ok (is (ask_list (a, "tcp://[::1],127.0.0.1:81"), "tcp://[::1]:81") && resolver_count (a) == 2,
        "a list may begin with an address in brackets");
    resolver_destroy (a);
    a = make ();
    ask_list (a, "tcp://no-such-host.invalid,nor-this.invalid:80");
    ok (!resolver_resolve (a, "tcp://no-such-host.invalid,nor-this.invalid:80", &error)
            && strstr (error.text, "no-such-host.invalid: "),
        "if no name of a list has an address, the error is that of the first one: %s", error.text);
    resolver_destroy (a);
}

static void test_numbers (void)
{
    struct in6_addr a, b;
    char buf[32];

    ok (resolver_number ("tcp://[::1]:80", &a) && IN6_IS_ADDR_LOOPBACK (&a),
        "a numeric host in brackets is read as an address");
    ok (resolver_number ("tcp://127.0.0.1:80", &a) && resolver_number ("tcp://[::ffff:127.0.0.1]:80", &b)
            && memcmp (&a, &b, sizeof (a)) == 0,
        "an IPv4 address is read as a mapped IPv6 address");
    ok (!resolver_number ("tcp://localhost:80", &a) && !resolver_number ("tcp://[::x]:80", &a)
            && !resolver_number ("ipc:///tmp/x", &a) && !resolver_number ("tcp://[]:80", &a),
        "a host that is not numeric is refused as an address");
    ok (resolver_endpoint (buf, sizeof (buf), "::1", "80") == 0 && is (buf, "tcp://[::1]:80")
            && resolver_endpoint (buf, sizeof (buf), "[::1]", "80") == 0 && is (buf, "tcp://[::1]:80")
            && resolver_endpoint (buf, sizeof (buf), "n1", "*") == 0 && is (buf, "tcp://n1:*"),
        "an address with colons has brackets in an endpoint");
    ok (resolver_endpoint (buf, sizeof (buf), "n1,[::1]", "80") == 0 && is (buf, "tcp://n1,[::1]:80"),
        "a list of hosts has no brackets of its own in an endpoint");
    ok (resolver_endpoint (buf, 14, "::1", "80") < 0 && errno == ENAMETOOLONG,
        "a buffer that is too small for an endpoint fails with ENAMETOOLONG");
}

/* The resolver may be destroyed, or asked for another name, before a lookup ends: its thread then frees the lookup. */
static void test_gone (void)
{
    struct resolver *a = NULL;

    for (int i = 0; i < 50; i++) {
        resolver_destroy (a);
        a = make ();
        resolver_resolve (a, "tcp://no-such-host.invalid:80", NULL);
        resolver_resolve (a, "tcp://localhost:80", NULL);
    }
    resolver_wait (&a, 1, WAIT_MS);
    ok (is_local (resolver_resolve (a, "tcp://localhost:80", NULL), "80"),
        "the results of lookups that were abandoned are dropped");
    resolver_destroy (a);
}

int main (void)
{
    test_no_name ();
    test_name ();
    test_no_such_name ();
    test_gone ();
    test_many ();
    test_list ();
    test_numbers ();
    return done_testing ();
}
