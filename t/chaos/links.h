/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* links.h - the links between brokers, which this program forwards so that it can cut them
 *
 * host.so redirects a connection of rank C to its ancestor P to the socket DIR/C-P. This program forwards the
 * connection to the broker's own socket RUNDIR/tbon-P.
 */
#ifndef CHAOS_LINKS_H
#define CHAOS_LINKS_H

#include <stdint.h>

#include <idtree/reactor.h>

enum link_mode {
    LINK_GOOD = 0,
    LINK_CUT_UP = 1,   /* bytes from the child wait */
    LINK_CUT_DOWN = 2, /* bytes from the ancestor wait */
    LINK_CUT = 3,
    LINK_RESET,   /* connections are closed, and so are new connections */
    LINK_CORRUPT, /* one of 'amount' buffers gets a flipped bit */
    LINK_SLOW,    /* at most 'amount' bytes pass at a time, then a pause follows */
};

struct links;

/* Listen for the links of a tree kary:fanout of 'size' ranks. Ends the program on failure. */
struct links *links_create (idt_reactor_t *r, const char *dir, const char *rundir, uint32_t size, uint32_t fanout,
                            uint64_t seed);
void links_destroy (struct links *l);

/* Set the mode of the links from a rank to all its ancestors. */
void links_set (struct links *l, uint32_t rank, enum link_mode mode, uint32_t amount);

/* The number of connections that were forwarded, of bits that were flipped, and of pauses of slow links. */
uint64_t links_connections (const struct links *l);
uint64_t links_corrupted (const struct links *l);
uint64_t links_pauses (const struct links *l);

#endif /* CHAOS_LINKS_H */
