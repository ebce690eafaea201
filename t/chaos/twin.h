/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* twin.h - a second broker for a rank that has one
 *
 * A twin boots with what the launcher said to the broker of that rank last (host.so keeps it), keys included, so that
 * the parent cannot tell the two by their keys.  It serves clients in a directory of its own, and nobody cuts
 * its link.  There is one twin at a time.
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
    const char *pmidir; /* where host.so keeps what launchers say */
    const char *rundir; /* its own */
    const char *socket; /* made a link to the socket for its clients */
    const struct instance_config *instance;
};

/* What 'config' points to is borrowed.  Ends the program where there is no memory. */
struct twin *twin_create (idt_reactor_t *r, const struct twin_config *config);
void twin_destroy (struct twin *t); /* kills it */

/* Start a twin of 'rank'.  Returns false where there is one already, or nothing is kept of that rank. */
bool twin_start (struct twin *t, uint32_t rank);

/* Kill the twin if it is one of 'rank'. */
void twin_kill (struct twin *t, uint32_t rank);

#endif /* CHAOS_TWIN_H */
