/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* params_test.c - parameters have PostgreSQL's binary form */
#include <stdlib.h>
#include <string.h>

#include "libpg/params.h"
#include "test/failing_alloc.h"
#include "test/tap.h"

static bool is (const struct pg_params *p, int i, unsigned type, const char *bytes, int size)
{
    return p->type[i] == type && p->size[i] == size && p->binary[i] && memcmp (p->value[i], bytes, (size_t)size) == 0;
}

static void test_values (void)
{
    struct pg_params p = { 0 };

    pg_put_int (&p, 258);
    pg_put_int (&p, -2);
    pg_put_text (&p, "abc");
    pg_put_text (&p, NULL);
    pg_put_bytes (&p, "\0x", 2);
    pg_put_bytes (&p, NULL, 0);
    ok (is (&p, 0, PG_INT8, "\0\0\0\0\0\0\1\2", 8), "an integer has 8 bytes, big-endian");
    ok (is (&p, 1, PG_INT8, "\377\377\377\377\377\377\377\376", 8), "a negative integer is a two's complement");
    ok (is (&p, 2, PG_TEXT, "abc", 3), "a text has no NUL");
    ok (p.type[3] == PG_TEXT && !p.value[3], "no text is NULL");
    ok (is (&p, 4, PG_BYTEA, "\0x", 2), "bytes may contain NULs");
    ok (p.value[5] && p.size[5] == 0, "no bytes are not NULL, but empty");
    ok (p.count == 6 && !p.failed, "all six are there");
}

static void test_limits (void)
{
    struct pg_params p = { 0 }, large = { 0 };

    for (int i = 0; i < PG_PARAMS_MAX; i++)
        pg_put_int (&p, i);
    ok (!p.failed && p.count == PG_PARAMS_MAX, "%d parameters fit", PG_PARAMS_MAX);
    pg_put_int (&p, 1);
    ok (p.failed && p.count == PG_PARAMS_MAX && is (&p, 0, PG_INT8, "\0\0\0\0\0\0\0\0", 8),
        "one more is noted, and harms no other");
    pg_put_bytes (&large, "", (size_t)INT32_MAX + 1);
    ok (large.failed, "2 GiB are too many bytes");
}

static void test_arrays (void)
{
    struct pg_params p = { 0 };
    struct pg_array ints, bools, bytes, none;

    pg_array_init (&ints, PG_INT8);
    pg_array_init (&bools, PG_BOOL);
    pg_array_init (&bytes, PG_BYTEA);
    pg_array_init (&none, PG_TEXT);
    pg_array_int (&ints, 1);
    pg_array_int (&ints, -1);
    pg_array_int (&bools, 7);
    pg_array_bytes (&bytes, "xy", 2);
    pg_array_null (&bytes);
    pg_array_bytes (&bytes, NULL, 0);
    pg_put_array (&p, &ints);
    pg_put_array (&p, &bools);
    pg_put_array (&p, &bytes);
    pg_put_array (&p, &none);
    ok (is (&p, 0, 1016,
            "\0\0\0\1\0\0\0\1\0\0\0\24\0\0\0\2\0\0\0\1\0\0\0\10\0\0\0\0\0\0\0\1\0\0\0\10\377\377\377\377\377\377\377\377",
            44),
        "an array of integers has a header, and a size before each");
    ok (is (&p, 1, 1000, "\0\0\0\1\0\0\0\1\0\0\0\20\0\0\0\1\0\0\0\1\0\0\0\1\1", 25), "true has one byte, 1");
    ok (is (&p, 2, 1001, "\0\0\0\1\0\0\0\1\0\0\0\21\0\0\0\3\0\0\0\1\0\0\0\2xy\377\377\377\377\0\0\0\0", 34),
        "NULL has the size -1, empty bytes 0");
    ok (is (&p, 3, 1009, "\0\0\0\0\0\0\0\1\0\0\0\31", 12), "an empty array has no dimension");
    pg_array_fini (&ints);
    pg_array_fini (&bools);
    pg_array_fini (&bytes);
    pg_array_fini (&none);
}

/* Make a large array while the allocation 'nth' (from 0) fails. Returns whether all went well. */
static bool make_large (int nth)
{
    struct pg_params p = { 0 };
    struct pg_array a;

    countdown = nth;
    pg_array_init (&a, PG_INT8);
    for (int i = 0; i < 1000; i++)
        pg_array_int (&a, i);
    pg_put_array (&p, &a);
    countdown = -1;
    bool good = !p.failed && p.count == 1 && p.size[0] == 20 + 1000 * 12;
    pg_array_fini (&a);
    return good;
}

static void test_memory (void)
{
    int n = 0;

    while (n < 100 && !make_large (n))
        n++;
    ok (n > 3 && n < 100 && failures == n, "memory that is short is noted, whichever allocation fails");
}

int main (void)
{
    test_values ();
    test_limits ();
    test_arrays ();
    test_memory ();
    return done_testing ();
}
