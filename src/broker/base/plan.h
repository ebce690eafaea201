/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* plan.h - which process hosts which rank, and how many open files that takes
 *
 * Whole subtrees go to one process, so that few links leave it. Subtrees that are too large for a process are divided
 * at their root. The launcher and each process compute the same plan from the same numbers, so no message carries it.
 * Rank 0 is in process 0.
 *
 * One rank in each process, or all ranks in one, need no table. Any other plan needs 9 bytes a rank.
 */
#ifndef BROKER_PLAN_H
#define BROKER_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/error.h>

#include "broker/base/topology.h"

struct plan;

/* Plan 'size' ranks (>= 1) in at most 'processes' (1 to 'size'). 't' has that size; it is borrowed during the call
 * only, and may be NULL with one rank in each process or all ranks in one. NULL with errno ENOMEM and 'errp' filled.
 */
struct plan *plan_create (uint32_t size, uint32_t processes, const struct topo *t, idt_error_t *errp);
void plan_destroy (struct plan *p); /* NULL is fine */

uint32_t plan_processes (const struct plan *p);               /* processes in use; each hosts at least one rank */
uint32_t plan_process (const struct plan *p, uint32_t rank);  /* the process that hosts the rank */
uint32_t plan_count (const struct plan *p, uint32_t process); /* ranks that it hosts, at least 1 */
uint32_t plan_rank (const struct plan *p, uint32_t process, uint32_t i); /* i < plan_count (); ascending */

/* Whether other processes must know a rank: its parent or one of its descendants is in another process. */
bool plan_is_known (const struct plan *p, uint32_t rank);

/* --- open files ---------------------------------------------------------------------------------
 *
 * Without a free descriptor libzmq aborts the process, and a module fails for the rest of the process. So the number is
 * checked before anything is started.
 */

/* The number of open files from the descriptor 'first' on. At the start of a process those from 3 on are inherited. */
uint64_t plan_files_open (int first);

/* Check that the hard limit of open files allows plan_files_need () plus the inherited ones. Returns 0, or -1 with
 * errno EMFILE and 'errp' filled with the limit and the number needed.
 */
int plan_files_check (uint64_t children, uint64_t inherited, idt_error_t *errp);

/* For tests: the number of open files for a process with one broker and 'children' in other processes. Half of them are
 * for clients (usock.c).
 */
uint64_t plan_files_need (uint64_t children);

#endif /* BROKER_PLAN_H */
