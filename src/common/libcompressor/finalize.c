/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* finalize.c - the allocation of final ids, to ranges in their total order and to ghost sessions
 *
 * Changes of the final space must depend only on the ranges and ghost sessions so far, so that all compressors that
 * process the same ones have the same final ids. All steps that can fail come before the first change.
 */

#include <errno.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "compressor.h"

/* Two sessions made the same UUIDs: no later range of the total order can be trusted. Only the orderer continues,
 * without this range, since nothing has been changed yet.
 */
static int break_down (struct idcomp *c)
{
    c->broken = !(c->flags & IDCOMP_ORDERER);
    return errset (IDCOMP_ECOLLISION);
}

/* Whether 'count' more final ids, from generation count 'gen' on, stay within IDCOMP_ID_MAX. */
static bool within_limits (const struct idcomp *c, int64_t gen, int64_t count)
{
    return count <= IDCOMP_ID_MAX - c->space.limit + 1 && count <= IDCOMP_ID_MAX - gen + 1;
}

/* Give a session a new cluster. '*session' is its index; if 'key' is new it is IDSPACE_NONE and is set. */
static int new_cluster (struct idcomp *c, uint32_t *session, const struct idspace_key *key, int64_t capacity,
                        uint32_t reserve)
{
    struct idspace *s = &c->space;
    uint32_t i = *session;
    int64_t gen = i == IDSPACE_NONE ? 1 : s->sessions[i].end;

    if (idspace_collides (s, i, key->base, gen, capacity))
        return break_down (c);
    if (idspace_reserve_clusters (s, s->nclusters + 1) < 0)
        return -1;
    if (i == IDSPACE_NONE) {
        if ((i = idspace_add_session (s, key)) == IDSPACE_NONE)
            return -1;
    }
    else if (idspace_reserve_chain (s, i, s->sessions[i].nchain + 1) < 0)
        return -1;
    idspace_add_cluster (s, i, capacity, reserve);
    *session = i;
    return 0;
}

/* --- ranges --- */

/* Refuse a range that does not continue its session. With IDCOMP_ORIGINAL the session is registered even then, as in
 * the original.
 */
static int check_order (struct idcomp *c, uint32_t session, const struct idspace_key *key, int64_t first)
{
    if (first == (session == IDSPACE_NONE ? 1 : idspace_next_gen (&c->space, session)))
        return 0;
    if (c->flags & IDCOMP_ORIGINAL && session == IDSPACE_NONE && idspace_add_session (&c->space, key) == IDSPACE_NONE)
        return -1;
    return errset (IDCOMP_ERANGE_ORDER);
}

/* Add 'over' ids and 'size' reserved ones to the last cluster, whose reserve is used up. */
static int expand (struct idcomp *c, const struct idcluster *k, int64_t over, int64_t size)
{
    struct idspace *s = &c->space;
    struct idcomp_event event = {
        .type = IDCOMP_CLUSTER_EXPANSION,
        .previous_capacity = k->capacity,
        .new_capacity = k->capacity + over + size,
        .overflow = over,
    };

    if (idspace_collides (s, k->session, s->sessions[k->session].base, k->gen, event.new_capacity))
        return break_down (c);
    idspace_expand (s, over + size, size);
    if (k->session == 0)
        compressor_emit (c, event);
    return 0;
}

/* Put 'over' ids and 'size' reserved ones into a new cluster; the session's cluster before it is used up. */
static int append (struct idcomp *c, uint32_t session, const struct idspace_key *key, int64_t over, int64_t size)
{
    struct idcomp_event event = { .type = IDCOMP_FIRST_CLUSTER };

    if (new_cluster (c, &session, key, over + size, size) < 0)
        return -1;
    uint32_t n = c->space.sessions[session].nchain;
    if (n > 1) {
        idspace_set_reserve (&c->space, session, n - 2, 0);
        event.type = IDCOMP_NEW_CLUSTER;
    }
    if (session == 0)
        compressor_emit (c, event);
    return 0;
}

/* Give the ids of a valid range their final ids. */
static int allocate (struct idcomp *c, uint32_t session, const struct idspace_key *key, int64_t count, int64_t size)
{
    struct idspace *s = &c->space;
    struct idcluster k = { .gen = 1 };
    bool known = session != IDSPACE_NONE && idspace_last (s, session, &k);
    int64_t over = count - k.reserve;

    if (over <= 0) {
        idspace_set_reserve (s, session, s->sessions[session].nchain - 1, k.reserve - count);
        return 0;
    }
    if (!within_limits (c, k.gen + k.capacity, over + size))
        return errset (IDCOMP_ELIMIT);
    if (known && k.final + k.capacity == s->limit)
        return expand (c, &k, over, size);
    return append (c, session, key, over, size);
}

/* Report what the local session made since the last report. */
static void report_status (struct idcomp *c)
{
    struct idcomp_event event = { .type = IDCOMP_STATUS, .eager = c->neager, .local = c->nlocal };

    c->neager = 0;
    c->nlocal = 0;
    compressor_emit (c, event);
}

int idcomp_finalize (struct idcomp *c, const struct idcomp_range *range)
{
    struct idspace_key key;

    if (compressor_check_no_ghost (c) < 0)
        return -1;
    if (!range->has_ids)
        return 0;
    if (compressor_check_range (range) < 0 || compressor_key (c->flags, range->session, &key) < 0)
        return -1;
    uint32_t session = idspace_find (&c->space, &key);
    if (session == IDSPACE_NONE && errno == IDCOMP_ESESSION_ALIAS)
        return -1;
    if (check_order (c, session, &key, range->first) < 0)
        return -1;
    if (range->count > IDCOMP_ID_MAX)
        return errset (IDCOMP_ELIMIT);
    if (session == 0 && !(c->flags & IDCOMP_ORIGINAL) && range->first + range->count - 1 > c->generated)
        return errset (IDCOMP_ERANGE_NOT_GENERATED);
    if (allocate (c, session, &key, range->count, range->cluster_size) < 0)
        return -1;
    if (session == 0) {
        compressor_set_eager (c);
        report_status (c);
    }
    return 0;
}

int64_t idcomp_expected (const struct idcomp *c, const char *session)
{
    struct idspace_key key;
    uint32_t i;

    if (compressor_key (c->flags, session, &key) < 0 || (i = idspace_find (&c->space, &key)) == IDSPACE_NONE)
        return 1;
    return idspace_next_gen (&c->space, i);
}

/* --- ghost sessions --- */

/* The ghost session must not be the session of a client, which would make the same ids. */
static int check_ghost (const struct idcomp *c, const struct idspace_key *key)
{
    uint32_t session = idspace_find (&c->space, key);

    if (session == IDSPACE_NONE)
        return 0;
    struct idcluster k;
    if (session == 0 || (idspace_last (&c->space, session, &k) && k.reserve > 0))
        return errset (IDCOMP_EGHOST_KNOWN);
    return 0;
}

int idcomp_ghost_begin (struct idcomp *c, const char *session)
{
    struct idspace_key key;

    if (compressor_check (c) < 0)
        return -1;
    if (c->ghost)
        return errset (IDCOMP_EGHOST_NESTED);
    if (compressor_key (c->flags, session, &key) < 0)
        return -1;
    if (!(c->flags & IDCOMP_ORIGINAL) && check_ghost (c, &key) < 0)
        return -1;
    c->ghost = true;
    c->ghost_made = false;
    memcpy (c->ghost_session, session, strlen (session) + 1);
    return 0;
}

void idcomp_ghost_end (struct idcomp *c)
{
    c->ghost = false;
}

/* Give the ghost session a cluster for exactly its first 'count' ids. */
static int ghost_start (struct idcomp *c, int64_t count)
{
    struct idspace_key key;

    compressor_key (c->flags, c->ghost_session, &key);
    uint32_t session = idspace_find (&c->space, &key);
    if (session == IDSPACE_NONE && errno == IDCOMP_ESESSION_ALIAS)
        return -1;
    int64_t gen = session == IDSPACE_NONE ? 1 : c->space.sessions[session].end;
    if (!within_limits (c, gen, count))
        return errset (IDCOMP_ELIMIT);
    /* Only the first id is checked for a collision, regardless of 'count'. */
    if (new_cluster (c, &session, &key, 1, 0) < 0)
        return -1;
    idspace_expand (&c->space, count - 1, 0);
    if (session == 0)
        compressor_set_eager (c);
    c->ghost_made = true;
    return 0;
}

int compressor_ghost_generate (struct idcomp *c, int64_t count, int64_t *first)
{
    int64_t limit = c->space.limit;

    if (!c->ghost_made) {
        if (ghost_start (c, count) < 0)
            return -1;
    }
    else {
        uint32_t session = c->space.blocks[c->space.nclusters - 1].session;
        if (!within_limits (c, c->space.sessions[session].end, count))
            return errset (IDCOMP_ELIMIT);
        idspace_expand (&c->space, count, 0);
        if (session == 0)
            compressor_set_eager (c);
    }
    *first = limit;
    return 0;
}
