/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* epoch.h - the epoch of an instance and the errors of its clocks */
#ifndef CMD_EPOCH_H
#define CMD_EPOCH_H

#include <idtree/fluid.h>

#include "cmd/base/cmd.h"

struct id_epoch {
    int64_t ms;      /* since 1970; -1: unknown */
    idt_error_t why; /* why it is unknown */
    idt_t *h;        /* connection of 'cmd' to the instance; NULL: not connected */
    /* A generator belongs to the rank that is its number modulo 'ranks' (fluid.lanes); 0: each rank has one generator,
     * or unknown.
     */
    uint32_t ranks;
    double ahead_ms; /* difference between rank 0's time and its wall clock */
    /* Largest difference between a rank's time and rank 0's, by the number of the rank; 0: not asked yet, -1: unknown.
     */
    double skew_ms[FLUID_GENERATOR_MAX + 1];
    /* The ranks to which a rank grants subleases, as a set ("": none now); NULL: it does not grant any, or unknown. */
    char *borrowers[FLUID_GENERATOR_MAX + 1];
};

/* Take the epoch of --epoch ('s'); if 's' is NULL connect 'cmd' and take the epoch of the instance, if it can be
 * reached.  Ends the program if 's' is not a date.
 */
void epoch_find (struct id_epoch *epoch, struct cmd *cmd, const char *s);

void epoch_fini (struct id_epoch *epoch);

/* The rank that owns a generator, as far as known. */
uint32_t epoch_rank (const struct id_epoch *epoch, uint32_t generator);

/* The largest error of the date of an id of 'generator': the current errors of the instance's clocks, assuming that
 * rank 0's wall clock is right.  Returns -1 if the instance or the rank does not answer.
 */
double epoch_error_ms (struct id_epoch *epoch, uint32_t generator);

/* Whether a borrower of 'generator' may have made an id of it (fluid.share), as its owner reports now.  Returns the
 * ranks with a sublease, as a set that may be empty; ranks below these may have a part of it.  NULL: the owner grants
 * no subleases, or does not answer.  Borrowed from 'epoch'.
 */
const char *epoch_borrowers (struct id_epoch *epoch, uint32_t generator);

#endif /* CMD_EPOCH_H */
