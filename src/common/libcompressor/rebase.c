/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rebase.c - a session loads the final space of a newer stored form
 *
 * Sessions and clusters come from the newer form, which is read with the local session before the others, and the local
 * state comes from the older compressor. Together they must be valid according to the rules of stored forms.
 *
 * Final ids must not change: the clusters of 'mine' must be the first ones of the newer form, with the same sessions
 * and capacities, and with at least as many finalized ids. Only the last cluster may have grown. So eager ids, which
 * lie in these clusters, do not change either.
 */
#include <errno.h>

#include "libutil/errprintf.h"
#include "compressor.h"
#include "rebase.h"

/* Whether cluster 'i' of 'mine' may have become cluster 'i' of 'newer'. */
static bool cluster_continues (const struct idspace *mine, const struct idspace *newer, uint32_t i)
{
    struct idcluster old = idspace_cluster (mine, i), now = idspace_cluster (newer, i);
    bool last = i + 1 == mine->nclusters;

    return mine->sessions[old.session].base == newer->sessions[now.session].base
           && (last ? now.capacity >= old.capacity : now.capacity == old.capacity)
           && now.capacity - now.reserve >= old.capacity - old.reserve;
}

static bool continues (const struct idspace *mine, const struct idspace *newer)
{
    if (newer->nclusters < mine->nclusters)
        return false;
    for (uint32_t i = 0; i < mine->nclusters; i++)
        if (!cluster_continues (mine, newer, i))
            return false;
    return true;
}

/* Continue with the ids that 'mine' made. */
static int take_local_state (struct idcomp *c, const struct idcomp *mine)
{
    if (!continues (&mine->space, &c->space))
        return errset (ESTALE);
    if (idruns_cut (&mine->runs, 1, mine->generated, &c->runs.v, &c->runs.n) < 0)
        return -1;
    c->runs.room = c->runs.n;
    c->generated = mine->generated;
    c->next_first = mine->next_first;
    return compressor_local_state_fits (c) ? 0 : errset (IDCOMP_ECORRUPT_VALUE);
}

struct idcomp *compressor_rebase (const struct idcomp *mine, const void *form, size_t size)
{
    struct idcomp *c = compressor_load_again (form, size, mine->session);

    if (c && take_local_state (c, mine) < 0) {
        idcomp_destroy (c);
        return NULL;
    }
    return c;
}
