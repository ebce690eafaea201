/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* plan.h - which process hosts which rank, and how many open files a process needs
 *
 * Whole subtrees go to one process, so that few links lead to other processes. Subtrees that are too large for a
 * process are divided at their root. The launcher and each process compute the same plan from the same numbers, so no
 * message carries the plan. Rank 0 is in process 0.
 *
 * If each process has one rank, or one process has all ranks, no table is needed. Any other plan needs 9 bytes for each
 * rank.
 */
#ifndef BROKER_PLAN_H
#define BROKER_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/error.h>

#include "broker/base/topology.h"

struct plan;

/* Plan 'size' ranks (>= 1) in at most 'processes' (1 to 'size'). 't' is a topology of that size. 't' is borrowed during
 * the call only, and may be NULL if each process has one rank or one process has all ranks. NULL with errno ENOMEM and
 * 'errp' filled.
 */
struct plan *plan_create (uint32_t size, uint32_t processes, const struct topo *t, idt_error_t *errp);
void plan_destroy (struct plan *p); /* NULL is fine */

uint32_t plan_processes (const struct plan *p);               /* processes in use; each hosts at least one rank */
uint32_t plan_process (const struct plan *p, uint32_t rank);  /* the process that hosts the rank */
uint32_t plan_count (const struct plan *p, uint32_t process); /* ranks of the process, at least 1 */
uint32_t plan_rank (const struct plan *p, uint32_t process, uint32_t i); /* number 'i' < plan_count (), ascending */

/* Whether other processes must know a rank, because its parent or one of its descendants is in another process. */
bool plan_is_known (const struct plan *p, uint32_t rank);

/* --- open files ---------------------------------------------------------------------------------
 *
 * If no descriptor is free, libzmq aborts the process, and a module cannot be loaded for the rest of the process's
 * life. So the number of files is checked before anything is started.
 */

/* The number of open files whose descriptor is 'first' or higher. At the start of a process, descriptors from 3 on are
 * inherited.
 */
uint64_t plan_files_open (int first);

/* Check that the hard limit of open files allows plan_files_need () files and the inherited ones. Returns 0, or -1 with
 * errno EMFILE and 'errp' filled with the limit and the number needed.
 */
int plan_files_check (uint64_t children, uint64_t inherited, idt_error_t *errp);

/* For tests: the number of open files that a process with one broker needs, if 'children' of the broker's children are
 * in other processes. Half of the files are for clients (usock.c).
 */
uint64_t plan_files_need (uint64_t children);

#endif /* BROKER_PLAN_H */
