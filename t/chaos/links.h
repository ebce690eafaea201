/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* links.h - the links between brokers, passed on by us so that they can be cut
 *
 * host.so leads what rank C opens to its ancestor P to the socket DIR/C-P; from there each connection is passed on to
 * the broker's own socket RUNDIR/tbon-P.
 */
#ifndef CHAOS_LINKS_H
#define CHAOS_LINKS_H

#include <stdint.h>

#include <idtree/reactor.h>

enum link_mode {
    LINK_GOOD = 0,
    LINK_CUT_UP = 1,   /* what the child sends waits */
    LINK_CUT_DOWN = 2, /* what the ancestor sends waits */
    LINK_CUT = 3,
    LINK_RESET,   /* connections end, new ones too */
    LINK_CORRUPT, /* one buffer in 'amount' has a bit turned over */
    LINK_SLOW,    /* at most 'amount' bytes at a time, with a pause behind */
};

struct links;

/* Listen for a tree kary:fanout of 'size' ranks.  Ends the program where that fails. */
struct links *links_create (idt_reactor_t *r, const char *dir, const char *rundir, uint32_t size, uint32_t fanout,
                            uint64_t seed);
void links_destroy (struct links *l);

/* Change the links from a rank to all its ancestors. */
void links_set (struct links *l, uint32_t rank, enum link_mode mode, uint32_t amount);

/* Connections that were passed on, bits that were turned over, and pauses that slow links made. */
uint64_t links_connections (const struct links *l);
uint64_t links_corrupted (const struct links *l);
uint64_t links_pauses (const struct links *l);

#endif /* CHAOS_LINKS_H */
