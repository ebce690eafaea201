/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lessor.c - the source of a node's leases and time: its parent, or at rank 0 the authority beside it
 *
 * A parent is asked with a message, and answers later through the functions of node.h. The authority answers
 * immediately; node_tick () notices its other changes.
 */
#include "modules/fluid/node/private.h"

bool node_lessor_is_up (const struct node *n)
{
    return n->lessor.authority || n->parent_up;
}

static int ask_authority (struct node *n, uint64_t now_us, uint32_t tag, const struct lease_request *req)
{
    struct lease_answer answer;

    authority_answer (n->lessor.authority, now_us, req, &answer);
    if (tag != 0)
        node_lease_take (n, now_us, tag, &answer);
    return 0;
}

int node_lessor_ask (struct node *n, uint64_t now_us, uint32_t tag, const struct lease_request *req)
{
    if (n->lessor.authority)
        return ask_authority (n, now_us, tag, req);
    if (tag != 0)
        n->stats.lease_messages++;
    return n->ops->lease_up (n->arg, tag, req);
}

void node_lessor_hear_jumps (struct node *n)
{
    if (!n->lessor.authority)
        return;
    uint64_t jumped_us = authority_news (n->lessor.authority).jumped_us;

    if (jumped_us != n->lessor.heard.jumped_us)
        node_share_jumped (n, jumped_us - n->lessor.heard.jumped_us);
    n->lessor.heard.jumped_us = jumped_us;
}

void node_lessor_hear (struct node *n, uint64_t now_us)
{
    if (!n->lessor.authority)
        return;
    struct authority_news news = authority_news (n->lessor.authority), *heard = &n->lessor.heard;

    node_lessor_hear_jumps (n);
    if (news.steps != heard->steps)
        node_close_past (n, now_us);
    if (news.stored != heard->stored)
        lessee_hurry (&n->lessee, now_us);
    if (news.fenced_by_foreign && !heard->fenced_by_foreign)
        node_lease_fence (n);
    *heard = news;
}

const char *node_lessor_excuse (const struct node *n)
{
    if (n->lessor.authority)
        return authority_excuse (n->lessor.authority);
    return n->parent_up ? "no ancestor answered within fluid.forward-timeout"
                        : "no lease, and no parent broker within fluid.forward-timeout";
}
