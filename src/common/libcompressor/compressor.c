/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* compressor.c - a session: its life, the ids it makes, the ranges it announces
 *
 * Ids are made in order of generation count. If a final id is reserved for the next count, the id is that final id
 * ("eager"); otherwise it is a local id, and the count is added to the local runs. The id never changes afterwards.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "compressor.h"

/* Session ids above this could make ids beyond the largest UUID. */
#define SESSION_END (UUIDNUM_END - ((u128)1 << 53))

int compressor_key (int flags, const char *text, struct idspace_key *key)
{
    bool original = flags & IDCOMP_ORIGINAL;
    char canonical[IDCOMP_UUID_TEXT_MAX];
    u128 base;

    if (original && strnlen (text, IDCOMP_UUID_TEXT_MAX) == IDCOMP_UUID_TEXT_MAX)
        return errset (IDCOMP_EBAD_UUID);
    if (uuidnum_of_text (text, original, &base) < 0)
        return -1;
    if (!original && base >= SESSION_END)
        return errset (IDCOMP_EBAD_UUID);
    *key = (struct idspace_key){ base, NULL };
    if (original) {
        struct idcomp_uuid uuid = uuidnum_to_uuid (base);
        idcomp_uuid_format (&uuid, canonical, sizeof (canonical));
        key->alias = strcmp (text, canonical) == 0 ? NULL : text;
    }
    return 0;
}

void compressor_set_session (struct idcomp *c, const char *text)
{
    struct idcomp_uuid uuid = uuidnum_to_uuid (c->space.sessions[0].base);

    idcomp_uuid_format (&uuid, c->session, sizeof (c->session));
    if (text)
        memcpy (c->session, text, strlen (text) + 1);
}

void compressor_set_eager (struct idcomp *c)
{
    struct idcluster k;

    if (!idspace_last (&c->space, 0, &k))
        return;
    c->eager_end = k.gen + k.capacity;
    c->eager_shift = k.final - k.gen;
}

int compressor_check (const struct idcomp *c)
{
    if (c->broken)
        return errset (IDCOMP_EBROKEN);
    return 0;
}

int compressor_check_no_ghost (const struct idcomp *c)
{
    if (compressor_check (c) < 0)
        return -1;
    if (c->ghost)
        return errset (IDCOMP_EGHOST_ACTIVE);
    return 0;
}

void compressor_emit (const struct idcomp *c, struct idcomp_event event)
{
    event.session = c->session;
    if (c->event_cb)
        c->event_cb (&event, c->event_arg);
}

/* --- life --- */

void idcomp_destroy (struct idcomp *c)
{
    if (!c)
        return;
    int saved = errno;
    idspace_fini (&c->space);
    idruns_fini (&c->runs);
    fork_guard_destroy (c->guard);
    free (c);
    errno = saved;
}

struct idcomp *compressor_new (int flags)
{
    struct idcomp *c = calloc (1, sizeof (*c));

    if (!c || !(c->guard = fork_guard_create (sizeof (*c->guard)))) {
        free (c);
        return NULL;
    }
    c->flags = flags;
    c->next_first = 1;
    c->eager_end = 1;
    c->cluster_size = IDCOMP_CLUSTER_SIZE_DEFAULT;
    return c;
}

struct idcomp *idcomp_create (const char *session, int flags)
{
    struct idspace_key key;
    struct idcomp *c;

    if (compressor_key (flags, session, &key) < 0 || !(c = compressor_new (flags)))
        return NULL;
    if (idspace_add_session (&c->space, &key) == IDSPACE_NONE) {
        idcomp_destroy (c);
        return NULL;
    }
    compressor_set_session (c, key.alias);
    return c;
}

const char *idcomp_session (const struct idcomp *c)
{
    return c->session;
}

int idcomp_set_cluster_size (struct idcomp *c, int64_t size)
{
    if (!(c->flags & IDCOMP_ORIGINAL) && (size < 1 || size > IDCOMP_CLUSTER_SIZE_MAX))
        return errset (size < 1 ? IDCOMP_ECLUSTER_SIZE_LOW : IDCOMP_ECLUSTER_SIZE_HIGH);
    c->cluster_size = size;
    return 0;
}

/* --- making ids --- */

int idcomp_generate_runs (struct idcomp *c, int64_t count, struct idcomp_run runs[2])
{
    int64_t first = c->generated + 1;
    int64_t eager = first < c->eager_end ? min_i64 (c->eager_end - first, count) : 0;
    int n = 0;

    if (count < 1)
        return errset (EINVAL);
    if (fork_guard_is_child (c->guard))
        return errset (EPERM);
    if (compressor_check (c) < 0)
        return -1;
    if (c->ghost) {
        runs[0].count = count;
        return compressor_ghost_generate (c, count, &runs[0].first) < 0 ? -1 : 1;
    }
    if (count > IDCOMP_ID_MAX - c->generated)
        return errset (IDCOMP_ELIMIT);
    if (count > eager && idruns_append (&c->runs, first + eager, count - eager) < 0)
        return -1;
    if (eager > 0)
        runs[n++] = (struct idcomp_run){ first + c->eager_shift, eager };
    if (count > eager)
        runs[n++] = (struct idcomp_run){ -(first + eager), count - eager };
    c->generated += count;
    c->neager += eager;
    c->nlocal += count - eager;
    return n;
}

int idcomp_generate (struct idcomp *c, int64_t *id)
{
    int64_t gen = c->generated + 1;
    struct idcomp_run runs[2];

    if (c->ghost || c->broken || gen > IDCOMP_ID_MAX || fork_guard_is_child (c->guard)) {
        if (idcomp_generate_runs (c, 1, runs) < 0)
            return -1;
        *id = runs[0].first;
        return 0;
    }
    if (gen < c->eager_end) {
        c->neager++;
        *id = gen + c->eager_shift;
    }
    else {
        if (idruns_append (&c->runs, gen, 1) < 0)
            return -1;
        c->nlocal++;
        *id = -gen;
    }
    c->generated = gen;
    return 0;
}

int idcomp_generate_unique (struct idcomp *c, int64_t *id, struct idcomp_uuid *uuid)
{
    if (idcomp_generate (c, id) < 0)
        return -1;
    return *id < 0 ? idcomp_decompress (c, *id, uuid) : 0;
}

/* --- creation ranges --- */

void idcomp_range_fini (struct idcomp_range *range)
{
    int saved = errno;

    free (range->runs);
    range->runs = NULL;
    range->nruns = 0;
    range->has_ids = false;
    errno = saved;
}

int compressor_check_range (const struct idcomp_range *range)
{
    int error = range->count < 1                                ? IDCOMP_ERANGE_COUNT
                : range->cluster_size < 1                       ? IDCOMP_ECLUSTER_SIZE_LOW
                : range->cluster_size > IDCOMP_CLUSTER_SIZE_MAX ? IDCOMP_ECLUSTER_SIZE_HIGH
                                                                : 0;
    if (error)
        return errset (error);
    return 0;
}

/* Take the ids from generation count 'first' on as a range. */
static int take_from (struct idcomp *c, int64_t first, struct idcomp_range *range)
{
    struct idcomp_range r = {
        .has_ids = first != c->generated + 1,
        .first = first,
        .count = c->generated - (first - 1),
        .cluster_size = c->cluster_size,
    };

    memcpy (r.session, c->session, sizeof (r.session));
    if (r.has_ids) {
        /* A bad size is possible only with IDCOMP_ORIGINAL, whose setter does not check it; like the original, advance
         * 'next_first' before the check.
         */
        if (compressor_check_range (&r) < 0) {
            c->next_first = c->generated + 1;
            return -1;
        }
        if (idruns_cut (&c->runs, first, c->generated, &r.runs, &r.nruns) < 0)
            return -1;
    }
    c->next_first = c->generated + 1;
    *range = r;
    return 0;
}

int idcomp_take (struct idcomp *c, struct idcomp_range *range)
{
    if (compressor_check_no_ghost (c) < 0)
        return -1;
    return take_from (c, c->next_first, range);
}

int idcomp_take_unfinalized (struct idcomp *c, struct idcomp_range *range)
{
    if (compressor_check_no_ghost (c) < 0)
        return -1;
    return take_from (c, idspace_next_gen (&c->space, 0), range);
}

int idcomp_reset_ranges (struct idcomp *c)
{
    if (compressor_check_no_ghost (c) < 0)
        return -1;
    c->next_first = idspace_next_gen (&c->space, 0);
    return 0;
}

/* --- inspection --- */

bool idcomp_equal (const struct idcomp *a, const struct idcomp *b, enum idcomp_state state)
{
    bool local = state == IDCOMP_WITH_LOCAL;

    if (a->space.nclusters != b->space.nclusters || !idspace_within (&a->space, &b->space, local)
        || !idspace_within (&b->space, &a->space, local))
        return false;
    return !local
           || (strcmp (a->session, b->session) == 0 && idruns_equal (&a->runs, &b->runs) && a->generated == b->generated
               && a->next_first == b->next_first);
}

struct idcomp_stats idcomp_stats (const struct idcomp *c)
{
    return (struct idcomp_stats){
        .generated = c->generated,
        .finalized = idspace_next_gen (&c->space, 0) - 1,
        .next_range_first = c->next_first,
        .allocated_finals = c->space.limit,
        .eager = c->neager,
        .local = c->nlocal,
        .sessions = c->space.nsessions,
        .clusters = c->space.nclusters,
        .local_runs = c->runs.n,
        .memory = idspace_memory (&c->space) + c->runs.room * sizeof (*c->runs.v),
        .ghost = c->ghost,
        .broken = c->broken,
    };
}

void idcomp_set_event_cb (struct idcomp *c, idcomp_event_f cb, void *arg)
{
    c->event_cb = cb;
    c->event_arg = arg;
}
