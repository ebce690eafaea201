/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* root_attrs_test.c - attributes that differ between two candidates of rank 0 are found and named */
#include <stdio.h>
#include <string.h>

#include "broker/root/root_attrs.h"
#include "test/tap.h"

/* Describe attributes, given as NAME, VALUE, ..., NULL. */
static void describe (char text[ROOT_ATTRS_SIZE], const char *const *list)
{
    struct attrs *attrs = attrs_create ();
    idt_error_t err;

    for (; attrs && *list; list += 2)
        if (attr_give (attrs, list[0], list[1], &err) < 0)
            bail_out (err.text);
    root_attrs_describe (attrs, text);
    attrs_destroy (attrs);
}

static void test_differ (void)
{
    static char a[ROOT_ATTRS_SIZE], b[ROOT_ATTRS_SIZE];
    char buf[400];

    describe (a, (const char *[]){ "fluid.lease", "20s", "fluid.lanes", "2", "root.takeover", "3s", NULL });
    describe (b, (const char *[]){ "root.takeover", "3s", "fluid.lanes", "2", "fluid.lease", "20s", "rundir", "/x",
                                   "uid.node", "n1", "fluid.recover-horizon", "2026-01-01", NULL });
    ok (!root_attrs_differ (a, b) && !*root_attrs_list (a, b, buf, sizeof (buf)),
        "the order of attributes, and attributes of a host, make no difference");
    ok (!root_attrs_differ (a, ""), "before the first root nothing differs");
    describe (b, (const char *[]){ "fluid.lease", "60s", "ingest.max", "a b=c", "root.takeover", "3s", NULL });
    ok (root_attrs_differ (a, b)
            && strcmp (root_attrs_list (a, b, buf, sizeof (buf)),
                       "fluid.lanes (2 here, not set there), fluid.lease (20s here, 60s there), ingest.max (not set "
                       "here, a b=c there)")
                   == 0,
        "attributes that differ are named, with both values: %s", buf);
    ok (strcmp (root_attrs_list (a, b, buf, 12), "fluid.lanes") == 0, "as many as fit");
    describe (b, (const char *[]){ NULL });
    ok (root_attrs_differ (a, b) && strstr (root_attrs_list (b, a, buf, sizeof (buf)), "root.takeover (not set here"),
        "a candidate without attributes differs, too");
    ok (root_attrs_differ (a, "0123456789abcdef") && strstr (root_attrs_list (a, "0123", buf, sizeof (buf)), "3s here"),
        "a description that was cut or has only a hash is read");
}

static void test_long (void)
{
    static char a[ROOT_ATTRS_SIZE], b[ROOT_ATTRS_SIZE], value[ROOT_ATTRS_SIZE], buf[400];

    memset (value, 'x', sizeof (value) - 1);
    describe (a, (const char *[]){ "fluid.a", value, "fluid.b", "1", NULL });
    describe (b, (const char *[]){ "fluid.a", value, "fluid.b", "2", NULL });
    ok (strlen (a) < ROOT_ATTRS_SIZE && root_attrs_differ (a, b)
            && strcmp (root_attrs_list (a, b, buf, sizeof (buf)), "fluid.b (1 here, 2 there)") == 0,
        "an attribute that does not fit is left out: %s", buf);
    value[3000] = '\0';
    describe (a, (const char *[]){ "fluid.a", value, NULL });
    describe (b, (const char *[]){ "fluid.a", "y", NULL });
    ok (strlen (root_attrs_list (a, b, buf, sizeof (buf))) < 120, "a long value is shortened");
}

int main (void)
{
    test_differ ();
    test_long ();
    return done_testing ();
}
