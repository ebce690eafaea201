/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_topology.c - a size, two ranks and the text of a topology: parents and children agree with each other */
#include "broker/base/topology.h"
#include "fuzz.h"

static void check_rank (const struct topo *t, uint32_t rank)
{
    uint32_t n = topo_child_count (t, rank), parent = topo_parent (t, rank);

    must ((parent == TOPO_NONE) == (rank == 0));
    must (rank == 0 || (parent < rank && topo_child_toward (t, parent, rank) == rank));
    must (topo_level (t, rank) <= topo_level (t, t->size - 1));
    must (rank == 0 || topo_level (t, rank) == topo_level (t, parent) + 1);
    must (n < t->size);
    if (n > 0) {
        must (topo_child (t, rank, n - 1) < t->size);
        must (topo_parent (t, topo_child (t, rank, 0)) == rank && topo_parent (t, topo_child (t, rank, n - 1)) == rank);
    }
}

/* The way down leads to where the way up came from. */
static void check_way (const struct topo *t, uint32_t from, uint32_t to)
{
    uint32_t step = topo_child_toward (t, from, to), up = to;

    while (up > from && topo_parent (t, up) != from)
        up = topo_parent (t, up);
    must (step == (to > from && up > from ? up : TOPO_NONE));
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct input in = { data, size };
    uint32_t n = input_u32 (&in), a = input_u32 (&in), b = input_u32 (&in);
    idt_error_t err = { "" };
    struct topo *t = NULL;
    size_t len;
    char *text = input_line (&in, &len);

    if (n == 0)
        n = 1;
    if (text && (t = topo_create (text, n, &err))) {
        must (t->size == n);
        if (topo_child_count (t, 0) > 1 || n < 100000) { /* a chain is as deep as it is long */
            check_rank (t, a % n);
            check_rank (t, b % n);
            check_way (t, a % n, b % n);
        }
    }
    else
        must (!text || err.text[0] != '\0');
    topo_destroy (t);
    free (text);
    return 0;
}
