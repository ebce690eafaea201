/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lessor.c - who gives a node leases and the time: its parent, or at rank 0 the authority beside it
 *
 * A parent is asked by a message and answers in its time; it is heard through what node.h lets come in.  The authority
 * answers at once; what happens to it otherwise is seen in node_tick ().
 */
#include "modules/fluid/node/private.h"

/* --- the parent -------------------------------------------------------------------------------- */

static bool parent_is_up (const struct node *n)
{
    return n->parent_up;
}

static int ask_parent (struct node *n, uint64_t now_us, uint32_t tag, const struct lease_request *req)
{
    if (tag != 0)
        n->stats.lease_messages++;
    return n->ops->lease_up (n->arg, tag, req);
}

static void hear_parent (struct node *n, uint64_t now_us)
{
}

static const char *parent_excuse (const struct node *n)
{
    return n->parent_up ? "no ancestor answered within fluid.forward-timeout"
                        : "no lease, and no parent broker within fluid.forward-timeout";
}

const struct lessor_ops node_lessor_parent = { parent_is_up, ask_parent, hear_parent, parent_excuse };

/* --- the authority ----------------------------------------------------------------------------- */

static bool authority_is_up (const struct node *n)
{
    return true;
}

static int ask_authority (struct node *n, uint64_t now_us, uint32_t tag, const struct lease_request *req)
{
    struct lease_answer answer;

    authority_answer (n->lessor.authority, now_us, req, &answer);
    if (tag != 0)
        node_lease_take (n, now_us, tag, &answer);
    return 0;
}

static void hear_authority (struct node *n, uint64_t now_us)
{
    struct authority_news news = authority_news (n->lessor.authority), *heard = &n->lessor.heard;

    if (news.steps != heard->steps)
        node_close_past (n, now_us);
    if (news.stored != heard->stored)
        lessee_hurry (&n->lessee, now_us);
    if (news.fenced_by_foreign && !heard->fenced_by_foreign)
        node_lease_fence (n);
    *heard = news;
}

static const char *excuse_of_authority (const struct node *n)
{
    return authority_excuse (n->lessor.authority);
}

static const struct lessor_ops local = { authority_is_up, ask_authority, hear_authority, excuse_of_authority };

/* What the root gave itself and did not use is its own again, also below loans that are out: those are of another kind of
 * ids, and the next one begins where they end.
 */
void node_beside (struct node *n, uint64_t now_us, struct authority *a)
{
    struct authority_status status;

    authority_status (a, now_us, &status);
    n->lessor = (struct lessor){ .ops = &local, .authority = a, .heard = authority_news (a) };
    n->clock = authority_clock (a);
    n->doubt = false;
    n->has_epoch = true;
    n->epoch_ms = status.epoch_ms;
    if (!authority_reopen (a, n->lessee.generator, n->cursor_ms + 1))
        n->lent.range = (struct range){ 0, 0 };
}
