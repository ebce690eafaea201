/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* twin.h - a second broker for a rank that has one
 *
 * A twin boots with the last messages of the launcher to the broker of that rank (host.so stores them), including keys,
 * so that the parent cannot distinguish the two by their keys. It serves clients in a directory of its own, and its
 * link is never cut. There is one twin at a time.
 */
#ifndef CHAOS_TWIN_H
#define CHAOS_TWIN_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/reactor.h>

#include "instance.h"

struct twin;

struct twin_config {
    const char *broker; /* path of the program */
    const char *pmidir; /* where host.so stores the messages of launchers */
    const char *rundir; /* its own */
    const char *socket; /* replaced by a link to the socket for its clients */
    const struct instance_config *instance;
};

/* The pointers in 'config' are borrowed. Ends the program if there is no memory. */
struct twin *twin_create (idt_reactor_t *r, const struct twin_config *config);
void twin_destroy (struct twin *t); /* kills it */

/* Start a twin of 'rank'. Returns false if there is one already, or no messages are stored for that rank. */
bool twin_start (struct twin *t, uint32_t rank);

/* Kill the twin if it has the rank 'rank'. */
void twin_kill (struct twin *t, uint32_t rank);

#endif /* CHAOS_TWIN_H */
