/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_topology.c - a size, two ranks and the text or the file of a topology: parents and children must agree with each
 * other
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "broker/base/topology.h"
#include "fuzz.h"

static void check_rank (const struct topo *t, uint32_t rank)
{
    uint32_t n = topo_child_count (t, rank), parent = topo_parent (t, rank);

    must ((parent == TOPO_NONE) == (rank == 0));
    must (rank == 0 || ((t->parents || parent < rank) && topo_child_toward (t, parent, rank) == rank));
    must (topo_level (t, rank) <= topo_maxlevel (t));
    must (rank == 0 || topo_level (t, rank) == topo_level (t, parent) + 1);
    must (n < t->size);
    if (n > 0) {
        must (topo_child (t, rank, n - 1) < t->size);
        must (topo_parent (t, topo_child (t, rank, 0)) == rank && topo_parent (t, topo_child (t, rank, n - 1)) == rank);
    }
}

/* Check that the way down from 'to' ends where the way up began. */
static void check_way (const struct topo *t, uint32_t from, uint32_t to)
{
    uint32_t step = topo_child_toward (t, from, to), up = to;

    while (up != TOPO_NONE && topo_parent (t, up) != from)
        up = topo_parent (t, up);
    must (step == up);
}

/* Make a topology of a text, or of a file whose text is the rest of the input. */
static struct topo *create (const char *text, struct input *in, uint32_t size, idt_error_t *errp)
{
    char uri[64];
    struct topo *t;
    int fd;

    if (strcmp (text, "custom") != 0)
        return strncmp (text, "custom:", 7) == 0 ? NULL : topo_create (text, size, errp);
    must ((fd = memfd_create ("topology", MFD_CLOEXEC)) >= 0 && write (fd, in->p, in->left) == (ssize_t)in->left);
    snprintf (uri, sizeof (uri), "custom:/proc/self/fd/%d", fd);
    if (!(t = topo_create (uri, size, errp)))
        must (errp->text[0] != '\0');
    close (fd);
    return t;
}

/* Check that the topology is a tree: each rank except 0 is the child of exactly one rank. */
static void check_all (const struct topo *t)
{
    uint32_t sum = 1;

    for (uint32_t rank = 0; rank < t->size; rank++) {
        check_rank (t, rank);
        sum += topo_child_count (t, rank);
    }
    must (sum == t->size);
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
    if (text && (t = create (text, &in, n, &err))) {
        must (t->size == n);
        if (n < 1000)
            check_all (t);
        /* checking a chain takes long, because it is as deep as it is long */
        if (topo_child_count (t, 0) > 1 || n < 100000) {
            check_rank (t, a % n);
            check_rank (t, b % n);
            check_way (t, a % n, b % n);
        }
    }
    else
        must (!text || strncmp (text, "custom", 6) == 0 || err.text[0] != '\0');
    topo_destroy (t);
    free (text);
    return 0;
}
