/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* past.c - the handover from a node to the next one on its broker
 *
 * 'last_id' and the clock keep the ids of this rank in order across a reload.
 */
#include <stdlib.h>
#include <string.h>

#include "modules/fluid/node/private.h"

static const char magic[8] = "fluid/7";

struct node_handover {
    char magic[8];
    size_t size; /* of this struct: the next load may have another version */
    fluid_t last_id;
    struct clock clock;
    bool has_epoch;
    int64_t epoch_ms;
    uint64_t end_ms;    /* the node made no id at or above it, but clients of a spoilt page may have, */
    uint64_t spoilt_ms; /* below this time */
    struct range lent;  /* the last sublease of time */
    uint64_t floor_ms;  /* the lender's */
    size_t table_size;
    /* followed by the lender's table, then by the owner's data */
};

void *node_leave (const struct node *n, const void *more, size_t more_size, size_t *size)
{
    size_t table_size;
    const void *table = lender_table (&n->sharing.lender, &table_size);
    struct node_handover *p = calloc (1, sizeof (*p) + table_size + more_size);

    if (!p)
        return NULL;
    *p = (struct node_handover){ .size = sizeof (*p),
                                 .last_id = n->last_id,
                                 .clock = *n->clock,
                                 .has_epoch = n->epoch.known,
                                 .epoch_ms = n->epoch.ms,
                                 .end_ms = n->cursor_ms + 1,
                                 .spoilt_ms = n->spoilt.end_ms,
                                 .lent = n->lent.range,
                                 .floor_ms = n->sharing.lender.floor_ms,
                                 .table_size = table_size };
    memcpy (p->magic, magic, sizeof (magic));
    if (table_size > 0)
        memcpy (p + 1, table, table_size);
    if (more_size > 0)
        memcpy ((char *)(p + 1) + table_size, more, more_size);
    *size = sizeof (*p) + table_size + more_size;
    return p;
}

static bool is_ours (const struct node_handover *p, size_t size)
{
    return size >= sizeof (*p) && memcmp (p->magic, magic, sizeof (magic)) == 0 && p->size == sizeof (*p)
           && p->table_size <= size - sizeof (*p);
}

/* At rank 0, node_start_root () replaces the clock and the epoch by the authority's. */
const void *node_remember (struct node *n, const void *data, size_t size, size_t *more_size)
{
    const struct node_handover *p = data;

    *more_size = 0;
    if (!p || !is_ours (p, size))
        return NULL;
    n->last_id = p->last_id;
    n->cursor_ms = p->end_ms - 1; /* handed over again if this node makes no id */
    page_gen_advance (&n->gen, fluid_split (p->last_id).timestamp_ms + 1);
    lanes_advance (&n->more, fluid_split (p->last_id).timestamp_ms + 1);
    n->spoilt.end_ms = p->spoilt_ms;
    n->own_clock = p->clock;
    n->epoch.known = p->has_epoch;
    n->epoch.ms = p->epoch_ms;
    n->lent.range = p->lent;
    if (!lender_restore (&n->sharing.lender, p->floor_ms, p + 1, p->table_size))
        return NULL; /* without the table of subleases, the old lease must not be used */
    *more_size = size - sizeof (*p) - p->table_size;
    return *more_size > 0 ? (const char *)(p + 1) + p->table_size : NULL;
}
