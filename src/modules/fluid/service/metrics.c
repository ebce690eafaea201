/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* metrics.c - what a rank tells of itself to be summed up: fluid.metrics (libmetrics/metrics.h) */
#include <stdio.h>

#include "libmetrics/metrics.h"
#include "modules/fluid/service/service.h"

/* Whose generator it borrows of is a state, too: a set for each lender. */
static void put_states (struct service *sv, const struct node_status *s, struct metrics *m)
{
    uint32_t rank = sv->options.node.rank;
    char lender[16];

    metrics_put_rank (m, "fluid_state", node_state_name (s->state), rank);
    if (s->state != NODE_BORROWING)
        return;
    snprintf (lender, sizeof (lender), "%u", (unsigned)s->area.generator);
    metrics_put_rank (m, "fluid_borrowed_of", lender, rank);
}

void service_metrics_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;
    struct metrics *m = metrics_create (sv->options.node.rank + 1);
    struct node_status s;

    node_status (sv->node, service_now_us (sv), &s);
    if (m)
        put_states (sv, &s, m);
    module_respond_object (sv->h, msg, m ? metrics_report_new (m) : NULL);
    metrics_destroy (m);
}
