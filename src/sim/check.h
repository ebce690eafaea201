/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* check.h - the judge of a simulated history: who may issue what, and what was issued
 *
 * 'life' names one incarnation of a broker.  The first thing that is wrong is kept as a sentence.
 */
#ifndef SIM_CHECK_H
#define SIM_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <idtree/fluid.h>

#include "modules/fluid/lease/area.h"
#include "modules/fluid/node/waiting.h"

struct check;

/* Where there is no memory, a simulation aborts. */
static inline void *must (void *p)
{
    if (!p)
        abort ();
    return p;
}

struct check *check_create (void);
void check_destroy (struct check *c);

/* A life holds a range of a generator: no other life may, at any time. */
void check_hold (struct check *c, uint32_t generator, uint32_t life, uint64_t lo_ms, uint64_t hi_ms);

/* A life closed for good: of what it held nothing from 'end_ms' on was or will be used. */
void check_close (struct check *c, uint32_t generator, uint32_t life, uint64_t end_ms);

/* A life was lent some granules of a generator (doc/design/shares.md), by the life 'from': no other life may hold any
 * of them in that time, but those that it lends on to. / It promised that it uses nothing from 'end_ms' on of all that
 * it was lent.
 */
void check_borrow (struct check *c, uint32_t life, uint32_t from, const struct area *area);
void check_return (struct check *c, uint32_t life, uint64_t end_ms);

/* Ids were handed to a client: none may have been before, each must lie in what someone holds. */
void check_issue (struct check *c, const struct run *run);

/* Something else is wrong. */
void check_fail (struct check *c, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

const char *check_violation (const struct check *c); /* NULL: none */
uint64_t check_ids (const struct check *c);          /* ids judged */

#endif /* SIM_CHECK_H */
