/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rewind.c - the final space as it was some ranges ago
 *
 * Ranges change a final space only in few ways: they add sessions and clusters at its ends, enlarge the last cluster,
 * and finalize more of the last cluster of their sessions (space.h). So the earlier form is the beginning of the
 * current form, with two differences: the capacity of the cluster that was the last one, and the finalized counts of
 * the sessions of the ranges, which are where the first range of each session begins.
 *
 * The cells are described in stored.c. A compressor that makes no ids has a session, too, which is not in the form.
 */
#include <stdlib.h>
#include <string.h>

#include "cells.h"
#include "compressor.h"
#include "rewind.h"

uint64_t compressor_digest (struct idcomp *c)
{
    return idspace_digest (&c->space);
}

/* The last cluster that a session had at that time; false: it had none. */
static bool last_then (const struct idspace *s, uint32_t session, const struct idcomp_stats *then, uint32_t *cluster)
{
    const struct idsession *owner = &s->sessions[session];

    for (uint32_t i = owner->nchain; i > 0; i--) {
        *cluster = owner->chain[i - 1].block;
        if (*cluster < (uint32_t)then->clusters)
            return true;
    }
    return false;
}

/* Undo a range: its session was finalized up to the range's beginning. */
static void rewind_range (unsigned char *clusters, const struct idcomp *c, const struct idcomp_stats *then,
                          const struct rewind_step *step)
{
    struct idspace_key key;
    uint32_t session, i;

    if (compressor_key (c->flags, step->session, &key) < 0 || (session = idspace_find (&c->space, &key)) == IDSPACE_NONE
        || !last_then (&c->space, session, then, &i))
        return;
    struct idcluster k = idspace_cluster (&c->space, i);
    put_number (clusters + (i * CLUSTER_CELLS + COUNT) * CELL, step->first - k.gen);
}

void *compressor_save_then (const struct idcomp *c, const struct idcomp_stats *then, rewind_step_f step,
                            const void *arg, size_t n, size_t *size)
{
    size_t now_size = idcomp_save_size (c, IDCOMP_WITHOUT_LOCAL), then_sessions = (size_t)then->sessions - 1;
    size_t then_clusters = (size_t)then->clusters, now_sessions = c->space.nsessions - 1;
    unsigned char *form = malloc (now_size);

    if (!form || idcomp_save (c, IDCOMP_WITHOUT_LOCAL, form, now_size) < 0) {
        free (form);
        return NULL;
    }
    unsigned char *clusters = form + (HEADER_CELLS + now_sessions * SESSION_CELLS) * CELL;
    if (then_clusters > 0) {
        struct idcluster k = idspace_cluster (&c->space, (uint32_t)then_clusters - 1);
        put_number (clusters + ((then_clusters - 1) * CLUSTER_CELLS + CAPACITY) * CELL,
                    then->allocated_finals - k.final);
    }
    while (n > 0) /* backwards, so that the first range of each session decides */
        rewind_range (clusters, c, then, step (arg, --n));
    put_number (form + NSESSIONS * CELL, then_sessions);
    put_number (form + NCLUSTERS * CELL, then_clusters);
    memmove (form + (HEADER_CELLS + then_sessions * SESSION_CELLS) * CELL, clusters,
             then_clusters * CLUSTER_CELLS * CELL);
    *size = (HEADER_CELLS + then_sessions * SESSION_CELLS + then_clusters * CLUSTER_CELLS) * CELL;
    return form;
}
