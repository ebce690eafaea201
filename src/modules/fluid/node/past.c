/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* past.c - what a node leaves to the next one on its broker
 *
 * Ids stay in order on this rank by 'last_id' and the clock.  At rank 0 the table of leases makes the difference: without it
 * all ranges that others hold must be thought of as used to their end, and the next root begins there, a lease ahead of
 * everyone.  The table is as good as new where nothing was given since: no root gives anything before it stores a horizon
 * above it (B_HAFTER), so the record that we stored last, found unchanged, says that there was none.
 */
#include <stdlib.h>
#include <string.h>

#include "modules/fluid/node/private.h"

static const char magic[8] = "fluid/1";

struct past {
    char magic[8];
    size_t size; /* of this, for another version may be loaded next */
    fluid_t last_id;
    struct clock clock;
    bool has_epoch;
    int64_t epoch_ms;
    bool has_table;
    struct ahead ahead;
    uint64_t end_ms;   /* no id was made here or above it */
    struct range lent; /* the last loan */
    struct lease_record stored;
    uint32_t generators;
    uint64_t lease_ms;
    /* lease_save () follows */
};

void *node_leave (const struct node *n, const struct lease_record *stored, size_t *size)
{
    bool has_table = n->table && stored && !lease_is_distrusted (n->table);
    size_t table_size = has_table ? lease_save_size (n->table) : 0;
    struct past *p = calloc (1, sizeof (*p) + table_size);

    if (!p)
        return NULL;
    *p = (struct past){ .size = sizeof (*p),
                        .last_id = n->last_id,
                        .clock = n->clock,
                        .has_epoch = n->has_epoch,
                        .epoch_ms = n->epoch_ms,
                        .has_table = has_table,
                        .ahead = n->ahead,
                        .end_ms = n->cursor_ms + 1,
                        .lent = n->lent,
                        .generators = n->config.max_generators,
                        .lease_ms = n->config.lease_ms };
    memcpy (p->magic, magic, sizeof (magic));
    if (has_table) {
        p->stored = *stored;
        lease_save (n->table, p + 1);
    }
    *size = sizeof (*p) + table_size;
    return p;
}

static bool is_ours (const struct past *p, size_t size)
{
    return size >= sizeof (*p) && memcmp (p->magic, magic, sizeof (magic)) == 0 && p->size == sizeof (*p);
}

void node_remember (struct node *n, const void *data, size_t size)
{
    const struct past *p = data;

    if (!p || !is_ours (p, size))
        return;
    n->past = p;
    n->past_size = size;
    n->last_id = p->last_id;
    n->cursor_ms = p->end_ms - 1; /* also for the one after the next, if this one makes no id */
    if (n->owner)
        fluid_gen_advance (&n->gen, fluid_split (p->last_id).timestamp_ms + 1);
    if (n->config.rank == 0)
        return;
    n->clock = p->clock;
    n->has_epoch = p->has_epoch;
    n->epoch_ms = p->epoch_ms;
}

static bool same_record (const struct lease_record *a, const struct lease_record *b)
{
    return a->horizon_ms == b->horizon_ms && a->watermark_ms == b->watermark_ms && a->settle_ms == b->settle_ms
           && a->ahead_ms == b->ahead_ms;
}

/* The clock goes on, above what was told.  What the root gave itself and did not use is its own again, also below loans
 * that are out: those are of another kind of ids, and the next one begins where they end.
 */
bool node_past_root (struct node *n, uint64_t now_us, int64_t epoch_ms, const struct lease_record *stored)
{
    const struct past *p = n->past;

    n->past = NULL;
    if (!p || !p->has_table || !p->clock.known || p->epoch_ms != epoch_ms || !same_record (&p->stored, stored)
        || p->generators != n->config.max_generators || p->lease_ms != n->config.lease_ms
        || lease_load (n->table, p + 1, n->past_size - sizeof (*p)) < 0)
        return false;
    lease_raise (n->table, stored->watermark_ms);
    n->clock = p->clock;
    clock_forward (&n->clock, now_us, stored->watermark_ms * 1000);
    lease_reopen (n->table, n->lessee.generator, p->end_ms);
    n->lent = p->lent;
    n->ahead = p->ahead;
    return true;
}
