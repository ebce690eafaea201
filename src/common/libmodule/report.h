/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* report.h - NAME.metrics: what a module tells of its rank to be summed up (libmetrics/metrics.h)
 *
 * {"states": b} asks for sets of ranks only, {"brief": b} for nothing that is 0.  Where that leaves nothing the answer
 * is {"quiet": true}: so what is told changes with messages alone, and not with time.
 */
#ifndef LIBMODULE_REPORT_H
#define LIBMODULE_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/idtree.h>

#include "libmetrics/metrics.h"

/* Add what there is to tell; 'states': sets of ranks only. */
typedef void (*module_report_f) (void *arg, bool states, struct metrics *m);

/* Answer a request for it. */
void module_report (idt_t *h, const idt_msg_t *msg, uint32_t rank, module_report_f report, void *arg);

#endif /* LIBMODULE_REPORT_H */
