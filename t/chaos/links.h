/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* links.h - the links between brokers, forwarded by this program so that it can cut them
 *
 * host.so redirects a connection of rank C to its ancestor P to the socket DIR/C-P; this program forwards it to the
 * broker's own socket RUNDIR/tbon-P.
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
    LINK_RESET,   /* connections are closed, new ones too */
    LINK_CORRUPT, /* one buffer in 'amount' has a flipped bit */
    LINK_SLOW,    /* at most 'amount' bytes at a time, with pauses */
};

struct links;

/* Listen for a tree kary:fanout of 'size' ranks. Ends the program on failure. */
struct links *links_create (idt_reactor_t *r, const char *dir, const char *rundir, uint32_t size, uint32_t fanout,
                            uint64_t seed);
void links_destroy (struct links *l);

/* Change the links from a rank to all its ancestors. */
void links_set (struct links *l, uint32_t rank, enum link_mode mode, uint32_t amount);

/* Numbers of forwarded connections, of flipped bits, and of pauses of slow links. */
uint64_t links_connections (const struct links *l);
uint64_t links_corrupted (const struct links *l);
uint64_t links_pauses (const struct links *l);

#endif /* CHAOS_LINKS_H */
