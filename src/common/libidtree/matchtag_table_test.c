/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* matchtag_table_test.c - the table of matchtags is compared with a plain list, in random histories */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libidtree/handle.h"
#include "test/tap.h"

#define WORLD 300 /* maximum of tags in use */

struct item {
    uint32_t tag; /* 0: not in the table */
};

static struct item items[WORLD];

/* Whether the table holds exactly the items that have a tag. */
static bool agrees (const struct matchtag_table *t)
{
    size_t count = 0, seen = 0, cursor = 0;
    struct item *item;

    for (int i = 0; i < WORLD; i++) {
        count += items[i].tag != 0;
        if (items[i].tag != 0 && matchtag_table_find (t, items[i].tag) != &items[i])
            return false;
    }
    while ((item = matchtag_table_next (t, &cursor))) {
        if (item->tag == 0)
            return false;
        seen++;
    }
    return count == seen && t->count == count && !matchtag_table_find (t, 0);
}

/* Add and remove at random. Tags collide if 'last' jumps by multiples of the table's size. */
static bool history (unsigned seed, bool jumps)
{
    struct matchtag_table t = { 0 };
    bool good = true;

    memset (items, 0, sizeof (items));
    srand (seed);
    for (int step = 0; step < 2000 && good; step++) {
        struct item *item = &items[rand () % WORLD];
        if (jumps && rand () % 4 == 0)
            t.last += 1024U * (rand () % 8) - 3;
        if (item->tag == 0) {
            item->tag = matchtag_table_add (&t, item);
            good = item->tag != 0;
        }
        else {
            uint32_t tag = item->tag;
            matchtag_table_remove (&t, tag);
            item->tag = 0;
            good = !matchtag_table_find (&t, tag);
        }
        good = good && (step % 16 != 0 || agrees (&t));
    }
    matchtag_table_fini (&t);
    return good;
}

static void test_wrap (void)
{
    struct matchtag_table t = { 0 };
    int a, b, c, d;

    ok (!matchtag_table_find (&t, 1) && !matchtag_table_find (&t, 0), "an empty table has no items");
    t.last = UINT32_MAX - 1;
    ok (matchtag_table_add (&t, &a) == UINT32_MAX && matchtag_table_add (&t, &b) == 1,
        "matchtag 0 is never given to a request");
    t.last = UINT32_MAX - 1;
    ok (matchtag_table_add (&t, &c) == 2, "a matchtag in use is never given to another request");
    matchtag_table_remove (&t, 1);
    t.last = 0;
    ok (matchtag_table_add (&t, &d) == 1 && matchtag_table_find (&t, 1) == &d,
        "a matchtag that was removed can be given again");
    matchtag_table_fini (&t);
}

static void test_limit (void)
{
    struct matchtag_table t = { 0 };
    int item;
    bool good = true;

    for (uint32_t i = 0; i < MATCHTAG_TABLE_MAX; i++)
        good = good && matchtag_table_add (&t, &item) == i + 1;
    ok (good, "%u matchtags can be in use at a time", MATCHTAG_TABLE_MAX);
    ok (matchtag_table_add (&t, &item) == 0 && errno == ENOBUFS, "a matchtag above the limit fails with ENOBUFS");
    matchtag_table_remove (&t, 77);
    ok (matchtag_table_add (&t, &item) != 0, "after a removal from a full table, a matchtag can be given");
    matchtag_table_fini (&t);
}

int main (int argc, char *argv[])
{
    int good = 0;

    test_wrap ();
    test_limit ();
    for (unsigned seed = 1; seed <= 100; seed++)
        good += history (seed, false) + history (seed, true);
    ok (good == 200, "in 200 random histories the table of matchtags agrees with a plain list");
    return done_testing ();
}
