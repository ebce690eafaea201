/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* report.h - NAME.metrics: the report of a module about its rank, to be summed up (libmetrics/metrics.h)
 *
 * {"states": b} asks for sets of ranks only, {"brief": b} leaves out all numbers that are 0. If nothing
 * remains, the answer is {"quiet": true} (false for sets of ranks), so it changes with messages only, not with time.
 */
#ifndef LIBMODULE_REPORT_H
#define LIBMODULE_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/idtree.h>

#include "libmetrics/metrics.h"

/* Add the module's values to 'm'; with 'states' only sets of ranks. */
typedef void (*module_report_f) (void *arg, bool states, struct metrics *m);

/* Answer a request for NAME.metrics. */
void module_report (idt_t *h, const idt_msg_t *msg, uint32_t rank, module_report_f report, void *arg);

#endif /* LIBMODULE_REPORT_H */
