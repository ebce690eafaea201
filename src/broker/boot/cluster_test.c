/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* cluster_test.c - the hosts of a configured instance */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/boot/cluster.h"
#include "test/tap.h"

static struct cluster *make (const char *hosts, const char *address, idt_error_t *errp)
{
    struct attrs *a = attrs_create ();

    attr_give_at (a, "cluster.hosts", hosts, "file:3", NULL);
    attr_give (a, "cluster.certificate", "/nowhere", NULL);
    attr_give (a, "cluster.port", "7000", NULL);
    if (address)
        attr_give (a, "cluster.address", address, NULL);
    struct cluster *c = cluster_create (a, errp);
    attrs_destroy (a);
    return c;
}

static void test_places (void)
{
    idt_error_t err = { "" };
    struct cluster *c = make ("login:81, n[8-10,007].x,z", "%h-ib.net", &err);
    char text[300];

    ok (c && c->size == 6, "a list of hosts has as many ranks as hosts %s", err.text);
    ok (strcmp (c->hosts[1].name, "n8.x") == 0 && strcmp (c->hosts[3].name, "n10.x") == 0
            && strcmp (c->hosts[4].name, "n007.x") == 0,
        "ranks follow the order of the list of hosts");
    ok (cluster_endpoint (c, 0, text, sizeof (text)) == 0 && strcmp (text, "tcp://login-ib.net:81") == 0,
        "a host has the endpoint of its line or of cluster.address: %s", text);
    ok (cluster_endpoint (c, 5, text, sizeof (text)) == 0 && strcmp (text, "tcp://z-ib.net:7000") == 0,
        "a host has the endpoint of its line or of cluster.address: %s", text);
    ok (c->hosts[5].port == 7000 && c->hosts[0].port == 81 && strcmp (c->interface, "*") == 0,
        "a host listens at the port that the list has for it");
    ok (cluster_endpoint (c, 5, text, 5) < 0, "an endpoint that is too long is refused, not cut");
    cluster_destroy (c);
}

static void test_numbers (void)
{
    idt_error_t err = { "" };
    struct cluster *c = make ("[::1]:81,[FD00:0::7],fd00::[8-9],10.0.0.1:82", NULL, &err);
    char text[300];

    ok (c && c->size == 5 && strcmp (c->hosts[0].name, "::1") == 0 && c->hosts[0].port == 81
            && strcmp (c->hosts[4].name, "10.0.0.1") == 0 && c->hosts[4].port == 82,
        "a host in the list may be an address; an IPv6 address followed by a port is in brackets %s", err.text);
    ok (strcmp (c->hosts[1].name, "fd00::7") == 0 && strcmp (c->hosts[3].name, "fd00::9") == 0
            && c->hosts[3].port == 7000,
        "an IPv6 address is stored in its canonical form; without a port it needs no brackets");
    ok (cluster_endpoint (c, 0, text, sizeof (text)) == 0 && strcmp (text, "tcp://[::1]:81") == 0,
        "a host has the endpoint of its line or of cluster.address: %s", text);
    cluster_destroy (c);
}

static void finds (const struct cluster *c, const char *name, int want)
{
    idt_error_t err = { "" };
    uint32_t rank = 99;
    int rc = cluster_find (c, name, &rank, &err);

    ok (want < 0 ? rc < 0 && rank == 99 : rc == 0 && rank == (uint32_t)want, "the host named %s has rank %d %s", name,
        want, err.text);
}

static void test_find (void)
{
    idt_error_t err = { "" };
    struct cluster *c = make ("a,b.x,c.x,c.y,d:1,d:2,10.0.0.1", NULL, &err);

    finds (c, "a", 0);
    finds (c, "a.any", 0);
    finds (c, "b", 1);
    finds (c, "b.x", 1);
    finds (c, "b.y", -1);
    finds (c, "c.y", 3);
    finds (c, "c", -1);
    finds (c, "d", -1);
    finds (c, "10.0.0.1", 6);
    finds (c, "e", -1);
    finds (c, "A", 0);
    finds (c, "B.X", 1);
    finds (c, "b.Y", -1);
    ok (cluster_is_same_name ("Node7", "node7.cluster.org") && !cluster_is_same_name ("n7.a", "n7.b")
            && !cluster_is_same_name ("n7", "n70"),
        "two names are of the same host if they differ only in case or in a missing domain");
    finds (c, "", -1);
    cluster_destroy (c);
}

#define NAME_60 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
#define LONG_NAME NAME_60 NAME_60 NAME_60

static struct cluster *make_roots (const char *hosts, const char *roots, const char *address, idt_error_t *errp)
{
    struct attrs *a = attrs_create ();

    attr_give (a, "cluster.hosts", hosts, NULL);
    attr_give_at (a, "cluster.root", roots, "file:4", NULL);
    attr_give (a, "cluster.certificate", "/nowhere", NULL);
    if (address)
        attr_give (a, "cluster.address", address, NULL);
    struct cluster *c = cluster_create (a, errp);
    attrs_destroy (a);
    return c;
}

static void places (const struct cluster *c, const char *host, int own_rank, int want_rank, int want_candidate)
{
    uint32_t rank = 99, candidate = 99, given = own_rank;
    idt_error_t err = { "" };
    int rc = cluster_find_place (c, host, own_rank < 0 ? NULL : &given, &rank, &candidate, &err);

    ok (want_rank < 0 ? rc < 0 : rc == 0 && rank == (uint32_t)want_rank && candidate == (uint32_t)want_candidate,
        "--host=%s --rank=%d is rank %d, candidate %d of rank 0 %s", host, own_rank, want_rank, want_candidate,
        err.text);
}

static void test_roots (void)
{
    idt_error_t err = { "" };
    struct cluster *c = make_roots ("root,n[0-2]", "n[0-2],s:8061", "%h-ib", &err);
    char text[300];

    ok (c && c->nroots == 4 && c->hosts[0].port == 8061 && c->hosts[1].port == 8060,
        "a list of candidates has one port for rank 0 %s", err.text);
    ok (cluster_endpoint (c, 0, text, sizeof (text)) == 0 && strcmp (text, "tcp://n0-ib,n1-ib,n2-ib,s-ib:8061") == 0,
        "the endpoint of rank 0 has all candidates: %s", text);
    ok (cluster_root_endpoint (c, 3, text, sizeof (text)) == 0 && strcmp (text, "tcp://s-ib:8061") == 0,
        "each candidate has an endpoint of its own: %s", text);
    places (c, "n1", 0, 0, 1);
    places (c, "n1.x.org", 0, 0, 1);
    places (c, "n1", -1, 2, 0);
    places (c, "s", -1, 0, 3);
    places (c, "n9", 0, -1, 0);
    places (c, "n9", -1, -1, 0);
    places (c, "n1", 4, -1, 0);
    cluster_destroy (c);

    c = make_roots ("n[0-2]", "n0,[fd00::1]:8061", NULL, &err);
    ok (c && cluster_endpoint (c, 0, text, sizeof (text)) == 0 && strcmp (text, "tcp://n0,[fd00::1]:8061") == 0
            && cluster_root_endpoint (c, 1, text, sizeof (text)) == 0 && strcmp (text, "tcp://[fd00::1]:8061") == 0,
        "a candidate may be an address: %s %s", text, err.text);
    places (c, "n0", -1, 0, 0);
    places (c, "n2", 0, -1, 0);
    cluster_destroy (c);
    c = make_roots ("n[0-2]", "::1", NULL, &err);
    ok (c && cluster_endpoint (c, 0, text, sizeof (text)) == 0 && strcmp (text, "tcp://[::1]:8060") == 0,
        "there may be a single candidate: %s %s", text, err.text);
    cluster_destroy (c);
}

static void test_root_faults (void)
{
    static const struct {
        const char *roots, *fault;
    } cases[] = {
        { "", "file:4: attribute cluster.root=: '' is not a host name" },
        { "a,a", "a is in it twice" },
        { "a:1,b:2", "must have the same port" },
        { "a:x", "no port from 1 to 65535" },
        { "n[1-9]", "at most 8 hosts" },
        { "a,n2", "n2 listens at port 8060 as rank 2, too: give cluster.root a port of its own" },
    };
    idt_error_t err = { "" };

    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++)
        ok (!make_roots ("n[0-3]", cases[i].roots, NULL, &err) && strstr (err.text, cases[i].fault),
            "an invalid list of candidates is refused: %s", err.text);
    ok (!make_roots ("n0", "a" LONG_NAME ",b" LONG_NAME, NULL, &err) && strstr (err.text, "too long"),
        "a list of candidates that makes too long an endpoint is refused: %s", err.text);
}

static void test_faults (void)
{
    static const struct {
        const char *hosts, *address, *fault;
    } cases[] = {
        { "", NULL, "file:3: attribute cluster.hosts=: '' is not a host name" },
        { "a,,b", NULL, "'' is not a host name" },
        { "a b", NULL, "'a b' is not a host name" },
        { "a/b", NULL, "'a/b' is not a host name" },
        { "n[1-3", NULL, "must have one [ and one ]" },
        { "n1-3]", NULL, "must have one [ and one ]" },
        { "n[1]x[2]", NULL, "must have one [ and one ]" },
        { "n[]", NULL, "has no ranges" },
        { "n[1-]", NULL, "has no ranges" },
        { "n[3-1]", NULL, "has no ranges" },
        { "n[1,x]", NULL, "has no ranges" },
        { "n[1-9999999999]", NULL, "has no ranges" },
        { "n[0-1000000]", NULL, "at most 1000000 hosts" },
        { "n[1-3],n2", NULL, "n2 is in it twice" },
        { "n[1-3],N2", NULL, "is in it twice" },
        { "a:0", NULL, "no port from 1 to 65535" },
        { "a:x", NULL, "no port from 1 to 65535" },
        { "[::1]:x", NULL, "no port from 1 to 65535" },
        { "[::1]x", NULL, "has no ranges" },
        { "[::1", NULL, "must have one [ and one ]" },
        { "a:b:1", NULL, "neither a name with one port nor an IPv6 address" },
        { "::1,[0::1]", NULL, "::1 is in it twice" },
        { "a", "nothing", "cluster.address=nothing: must have %h" },
        { "a," LONG_NAME, "%h." LONG_NAME, "cluster.address makes too long a name of nnn" },
    };

    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        idt_error_t err = { "" };

        ok (!make (cases[i].hosts, cases[i].address, &err) && strstr (err.text, cases[i].fault),
            "an invalid list of hosts is refused: %s", err.text);
    }
}

static void test_many (void)
{
    idt_error_t err = { "" };
    struct cluster *c = make ("n[0-999999]", NULL, &err);

    ok (c && c->size == 1000000 && strcmp (c->hosts[999999].name, "n999999") == 0,
        "a list of hosts may have a million hosts %s", err.text);
    finds (c, "n500000", 500000);
    cluster_destroy (c);
}

int main (int argc, char *argv[])
{
    struct attrs *a = attrs_create ();
    idt_error_t err = { "" };

    ok (!cluster_is_given (a), "attributes without cluster.hosts describe no instance");
    attr_give (a, "cluster.hosts", "a", NULL);
    ok (cluster_is_given (a) && !cluster_create (a, &err) && strstr (err.text, "idtree keygen"),
        "an instance with a list of hosts needs a certificate: %s", err.text);
    attrs_destroy (a);
    test_places ();
    test_numbers ();
    test_find ();
    test_faults ();
    test_roots ();
    test_root_faults ();
    test_many ();
    return done_testing ();
}
