/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* twin.h - a second broker for a rank that has a broker already
 *
 * A twin boots with the last messages of the launcher to the broker of that rank, which host.so has stored. These
 * include keys, so the parent cannot distinguish the two brokers by their keys. The twin serves clients in a directory
 * of its own, and its link is never cut. There is one twin at a time.
 */
#ifndef CHAOS_TWIN_H
#define CHAOS_TWIN_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/reactor.h>

#include "instance.h"

struct twin;

struct twin_config {
    const char *broker; /* path of the broker's program */
    const char *pmidir; /* where host.so stores the messages of launchers */
    const char *rundir; /* the directory of twins */
    const char *socket; /* is replaced by a link to the socket of the present twin */
    const struct instance_config *instance;
};

/* Make an object for twins. The pointers in 'config' are borrowed. Ends the program if memory is short. */
struct twin *twin_create (idt_reactor_t *r, const struct twin_config *config);
void twin_destroy (struct twin *t); /* kills the twin */

/* Start a twin of 'rank'. Returns false if there is a twin already, or if no messages are stored for this rank. */
bool twin_start (struct twin *t, uint32_t rank);

/* If there is a twin of the rank 'rank', kill it. */
void twin_kill (struct twin *t, uint32_t rank);

#endif /* CHAOS_TWIN_H */
