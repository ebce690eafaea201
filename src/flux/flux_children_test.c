/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flux_children_test.c - which ranks are below a broker in Flux's tree, and which UUIDs its children have */
#include <errno.h>
#include <string.h>

#include "flux/sender.h"
#include "test/tap.h"

#define NAME(n) "0000000" n "-0000-4000-8000-000000000000"

/* The subtree of rank 1 in a tree of 8 ranks: the children of rank 1 are 3 and 4, and 7 is a child of 3. */
static const char tree[] = "{\"rank\":1,\"size\":4,\"children\":["
                           "{\"rank\":3,\"size\":2,\"children\":[{\"rank\":7,\"size\":1,\"children\":[]}]},"
                           "{\"rank\":4,\"size\":1,\"children\":[]}]}";

static struct flux_children *make (const char *text, uint32_t size, idt_error_t *errp)
{
    json_t *o = json_loads (text, JSON_DECODE_ANY, NULL);
    struct flux_children *c = flux_children_create (o, size, errp);

    json_decref (o);
    return c;
}

static bool refuses (const char *text)
{
    idt_error_t error = { "" };

    errno = 0;
    struct flux_children *c = make (text, 8, &error);
    bool good = !c && errno == EPROTO && strstr (error.text, "not a tree of 8 ranks");
    flux_children_destroy (c);
    return good;
}

static void check_names (void)
{
    struct flux_children *c = make (tree, 8, NULL);
    uint32_t rank = 77;

    ok (flux_children_has (c, 3) && flux_children_has (c, 4), "ranks directly below this rank are children");
    ok (!flux_children_has (c, 1) && !flux_children_has (c, 7) && !flux_children_has (c, 0)
            && !flux_children_has (c, 8),
        "ranks that are not directly below this rank are not children");
    ok (!flux_children_find (c, NAME ("a"), &rank) && !flux_children_find (c, NULL, &rank) && rank == 77,
        "no child has a UUID before one was added");
    ok (flux_children_add (c, 3, NAME ("a")) == 0 && flux_children_add (c, 4, NAME ("b")) == 0
            && flux_children_find (c, NAME ("a"), &rank) && rank == 3 && flux_children_find (c, NAME ("b"), &rank)
            && rank == 4,
        "each child has the UUID that was added");
    ok (flux_children_add (c, 3, NAME ("c")) == 0 && flux_children_find (c, NAME ("c"), &rank) && rank == 3
            && !flux_children_find (c, NAME ("a"), &rank),
        "a child that was restarted gets the new UUID, and the old one is forgotten");
    ok (flux_children_add (c, 3, NAME ("c")) == 0 && flux_children_find (c, NAME ("c"), &rank),
        "the UUID of a child may be added a second time");
    errno = 0;
    ok (flux_children_add (c, 7, NAME ("d")) < 0 && errno == EINVAL && !flux_children_find (c, NAME ("d"), &rank),
        "a UUID cannot be added for a grandchild");
    flux_children_destroy (c);
}

static void check_covers (void)
{
    struct flux_children *c = make (tree, 8, NULL);

    if (flux_children_add (c, 3, NAME ("a")) < 0 || flux_children_add (c, 4, NAME ("b")) < 0)
        bail_out ("no memory");
    ok (flux_children_covers (c, NAME ("a"), 3) && flux_children_covers (c, NAME ("a"), 7),
        "the UUID of a child covers the child and its descendants");
    ok (!flux_children_covers (c, NAME ("a"), 4) && !flux_children_covers (c, NAME ("b"), 7),
        "the UUID of a child does not cover the descendants of another child");
    ok (!flux_children_covers (c, NAME ("a"), 1) && !flux_children_covers (c, NAME ("a"), 0)
            && !flux_children_covers (c, NAME ("a"), 2) && !flux_children_covers (c, NAME ("a"), 8)
            && !flux_children_covers (c, NAME ("a"), UINT32_MAX),
        "the UUID of a child covers neither this rank, nor ranks outside the subtree, nor ranks that do not exist");
    ok (!flux_children_covers (c, NAME ("e"), 3) && !flux_children_covers (c, NULL, 3),
        "an unknown UUID covers no rank");
    flux_children_destroy (c);
}

static void check_trees (void)
{
    idt_error_t error;
    struct flux_children *c = make ("{\"rank\":0,\"size\":1,\"children\":[]}", 1, &error);

    ok (c && !flux_children_has (c, 0), "an instance of one rank has no children");
    flux_children_destroy (c);
    ok (refuses ("[]") && refuses ("{}") && refuses ("{\"rank\":8}") && refuses ("{\"rank\":-1}"),
        "a list of children without a valid rank of this broker is refused");
    ok (refuses ("{\"rank\":1,\"children\":[{\"rank\":8}]}") && refuses ("{\"rank\":1,\"children\":[{}]}")
            && refuses ("{\"rank\":1,\"children\":[3]}"),
        "a list of children with an invalid rank of a child is refused");
    ok (refuses ("{\"rank\":1,\"children\":[{\"rank\":2},{\"rank\":2}]}")
            && refuses ("{\"rank\":1,\"children\":[{\"rank\":2,\"children\":[{\"rank\":1}]}]}"),
        "a list of children in which a rank occurs twice is refused");
    flux_children_destroy (NULL);
}

int main (void)
{
    check_names ();
    check_covers ();
    check_trees ();
    return done_testing ();
}
