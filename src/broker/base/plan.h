/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* plan.h - which process hosts which rank
 *
 * Whole subtrees go to one process, so that few links leave it; those that are too large for one are divided at their
 * root.  The launcher and each process make the same plan from the same numbers: nobody sends it.  Rank 0 is in process
 * 0.
 *
 * One rank in each process, or all in one, is arithmetic.  Else a plan takes 9 bytes a rank.
 */
#ifndef BROKER_PLAN_H
#define BROKER_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/error.h>

#include "broker/base/topology.h"

struct plan;

/* 'size' ranks (>= 1) in at most 'processes' (1 to 'size').  't' has that size; it is not kept, and may be NULL where
 * each process hosts one rank, or one all.  NULL with errno ENOMEM and 'errp' filled.
 */
struct plan *plan_create (uint32_t size, uint32_t processes, const struct topo *t, idt_error_t *errp);
void plan_destroy (struct plan *p); /* NULL is fine */

uint32_t plan_processes (const struct plan *p);                          /* none hosts nobody */
uint32_t plan_process (const struct plan *p, uint32_t rank);             /* that hosts it */
uint32_t plan_count (const struct plan *p, uint32_t process);            /* ranks that it hosts, at least 1 */
uint32_t plan_rank (const struct plan *p, uint32_t process, uint32_t i); /* i < plan_count (); ascending */

/* Whether other processes must know of a rank: its parent, or one below it, is in another. */
bool plan_is_known (const struct plan *p, uint32_t rank);

#endif /* BROKER_PLAN_H */
