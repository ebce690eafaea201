/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* epoch.h - from when the timestamps of ids count */
#ifndef CMD_EPOCH_H
#define CMD_EPOCH_H

#include <stdint.h>

#include <idtree/fluid.h>
#include <idtree/handle.h>

#include "cmd/base/cmd.h"

struct id_epoch {
    int64_t ms;      /* since 1970; -1: unknown */
    idt_error_t why; /* it is unknown */
    idt_t *h;        /* the instance that can be asked, of 'cmd'; NULL: none */
    /* Whose generators these are, modulo this (fluid.lanes); 0: they have one each, or it is not known. */
    uint32_t ranks;
    double ahead_ms; /* how far rank 0 is off its wall clock */
    /* How far a rank that owns a generator is off rank 0; 0: not asked, -1: unknown. */
    double skew_ms[FLUID_GENERATOR_MAX + 1];
    /* Of a rank that lends, as a set ("": none now); NULL: it does not, or is not known. */
    char *borrowers[FLUID_GENERATOR_MAX + 1];
};

/* Find the epoch that '--epoch' gave ('s'), else the one of the instance, where one is reachable; 'cmd' is then
 * connected to it.  Ends the program where 's' is no date.
 */
void epoch_find (struct id_epoch *epoch, struct cmd *cmd, const char *s);

void epoch_fini (struct id_epoch *epoch);

/* The rank that owns a generator, as far as is known. */
uint32_t epoch_rank (const struct id_epoch *epoch, uint32_t generator);

/* How far the date of an id of 'generator' may be off the true time: what the instance knows of its clocks now, rank
 * 0's wall clock being right.  Returns -1 where nobody can be asked.
 */
double epoch_error_ms (struct id_epoch *epoch, uint32_t generator);

/* Whether an id of 'generator' may have been made by a rank that borrowed of it (fluid.share), as that generator's rank
 * says now.  Returns the ranks that it has lent to, as a set that may be empty: others below may have some of theirs.
 * NULL: it lends nothing, or cannot be asked.  Borrowed from 'epoch'.
 */
const char *epoch_borrowers (struct id_epoch *epoch, uint32_t generator);

#endif /* CMD_EPOCH_H */
