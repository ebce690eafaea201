/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sim_check.h - the judge of a simulated history: who may issue what, and what was issued
 *
 * 'life' names one incarnation of a broker.  The first thing that is wrong is kept as a sentence.
 */
#ifndef SIM_SIM_CHECK_H
#define SIM_SIM_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <idtree/fluid.h>

#include "modules/fluid/lease/area.h"
#include "modules/fluid/node/waiting.h"

struct sim_check;

/* Where there is no memory, a simulation aborts. */
static inline void *must (void *p)
{
    if (!p)
        abort ();
    return p;
}

struct sim_check *sim_check_create (void);
void sim_check_destroy (struct sim_check *c);

/* A life holds a range of a generator: no other life may, at any time. */
void sim_check_hold (struct sim_check *c, uint32_t generator, uint32_t life, uint64_t lo_ms, uint64_t hi_ms);

/* A life closed for good: of what it held nothing from 'end_ms' on was or will be used. */
void sim_check_close (struct sim_check *c, uint32_t generator, uint32_t life, uint64_t end_ms);

/* A life was lent some granules of a generator (doc/design/shares.md), by the life 'from': no other life may hold any
 * of them in that time, but those that it lends on to. / It promised that it uses nothing from 'end_ms' on of all that
 * it was lent.
 */
void sim_check_borrow (struct sim_check *c, uint32_t life, uint32_t from, const struct area *area);
void sim_check_return (struct sim_check *c, uint32_t life, uint64_t end_ms);

/* Ids were handed to a client: none may have been before, each must lie in what someone holds. */
void sim_check_issue (struct sim_check *c, const struct run *run);

/* Something else is wrong. */
void sim_check_fail (struct sim_check *c, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

const char *sim_check_violation (const struct sim_check *c); /* NULL: none */
uint64_t sim_check_ids (const struct sim_check *c);          /* ids judged */

#endif /* SIM_SIM_CHECK_H */
