/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* inspect.c - read access to a node's state for the simulators */
#include "modules/fluid/node/inspect.h"
#include "modules/fluid/node/private.h"

const struct node_config *node_config (const struct node *n)
{
    return &n->config;
}

enum node_state node_state (const struct node *n)
{
    return n->state;
}

bool node_is_stopped (const struct node *n)
{
    return n->stopped;
}

bool node_owns_generator (const struct node *n)
{
    return n->owner;
}

const struct lessee *node_lessee (const struct node *n)
{
    return &n->lessee;
}

const struct lanes *node_lanes (const struct node *n)
{
    return &n->more;
}

const struct borrower *node_borrower (const struct node *n)
{
    return &n->sharing.borrower;
}

uint64_t node_lent_end_ms (const struct node *n)
{
    return lender_end (&n->sharing.lender);
}

const struct clock *node_instance_clock (const struct node *n)
{
    return n->clock;
}

bool node_is_sure_of_time (const struct node *n)
{
    return n->clock->known && !n->doubt.now;
}

uint64_t node_newest_ms (const struct node *n)
{
    return n->cursor_ms;
}

void node_forward_tags (const struct node *n, uint32_t tag[NODE_FORWARDS_MAX])
{
    const struct forward *f[NODE_FORWARDS_MAX] = { &n->up.all, &n->up.newcomers, &n->up.spilled };

    for (int i = 0; i < NODE_FORWARDS_MAX; i++)
        tag[i] = f[i]->busy ? f[i]->tag : 0;
}
