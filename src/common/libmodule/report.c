/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* report.c - answers NAME.metrics: a module's report about its rank */
#include <errno.h>

#include "libidtree/json_build.h"
#include "libmodule/report.h"
#include "libmodule/respond.h"

/* With nothing to report the answer is not {}, because {} means that the module never reports anything. */
static json_t *report_new (uint32_t rank, bool states, bool brief, module_report_f report, void *arg)
{
    struct metrics *m = metrics_create (rank + 1);

    if (!m)
        return NULL;
    report (arg, states, m);
    if (brief)
        metrics_leave_out_zeros (m);
    json_t *o = metrics_report_new (m);
    metrics_destroy (m);
    if (o && json_object_size (o) == 0)
        json_put_new (&o, "quiet", json_boolean (!states));
    return o;
}

void module_report (idt_t *h, const idt_msg_t *msg, uint32_t rank, module_report_f report, void *arg)
{
    int states = 0, brief = 0;
    idt_error_t err;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s?b s?b}", "states", &states, "brief", &brief) < 0) {
        module_respond_error (h, msg, EPROTO, err.text);
        return;
    }
    module_respond_object (h, msg, report_new (rank, states, brief, report, arg));
    json_decref (o);
}
