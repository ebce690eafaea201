/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* space.c - sessions, clusters and runs in sorted arrays
 *
 * An operation that must happen completely or not at all is split into a reserve function, which may fail, and an add
 * function, which cannot fail.
 */
#define _GNU_SOURCE /* qsort_r */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "space.h"

/* --- search ---
 *
 * Clusters and runs are records of 16 bytes that begin with an int64_t, in ascending order. Most documents grow evenly,
 * so linear interpolation between the first and the last key gives the approximate position of a key. A window around
 * that position is enlarged until it contains the key. Then the window is halved until one record is left.
 */

#define IDSEARCH_RECORD 16 /* bytes */
#define IDSEARCH_WINDOW 4  /* records: the first window extends this far in both directions */
static_assert (sizeof (struct idblock) == IDSEARCH_RECORD && sizeof (struct idlink) == IDSEARCH_RECORD
                   && sizeof (struct idcomp_run) == IDSEARCH_RECORD,
               "idsearch () must be able to search blocks, links and runs");

static inline int64_t idsearch_key (const void *records, size_t i)
{
    return *(const int64_t *)((const char *)records + i * IDSEARCH_RECORD);
}

/* The index of the last of 'n' (>= 1) records whose key is not above 'key'. 'key' must not be below the first key. */
static inline size_t idsearch (const void *records, size_t n, int64_t key)
{
    int64_t first = idsearch_key (records, 0);
    int64_t last = idsearch_key (records, n - 1);
    size_t reach = IDSEARCH_WINDOW;
    size_t lo;
    size_t hi;

    if (key >= last)
        return n - 1;
    size_t guess = (int64_t)((double)(key - first) / (double)(last - first) * (double)(int64_t)(n - 1));
    for (;; reach *= 8) {
        lo = guess > reach ? guess - reach : 0;
        hi = guess + reach < n - 1 ? guess + reach : n - 1;
        if (idsearch_key (records, lo) <= key && key < idsearch_key (records, hi))
            break;
    }
    for (size_t len = hi - lo; len > 1;) { /* invariant: key of lo <= key < key of lo + len */
        size_t half = len / 2;
        lo += idsearch_key (records, lo + half) <= key ? half : 0;
        len -= half;
    }
    return lo;
}

/* --- space --- */

/* Make room for 'n' elements. Arrays grow by a quarter, so a cluster needs at most 40 bytes. */
static int grow (void *array, uint32_t *room, uint32_t n, size_t size)
{
    void **p = array;

    if (n <= *room)
        return 0;
    uint64_t want = (uint64_t)*room + *room / 4 + 2;
    if (want < n)
        want = n;
    if (want > IDSPACE_MAX)
        return errset (ENOMEM);
    void *v = realloc (*p, want * size);
    if (!v)
        return -1;
    *p = v;
    *room = want;
    return 0;
}

void idspace_fini (struct idspace *s)
{
    for (uint32_t i = 0; i < s->nsessions; i++) {
        free (s->sessions[i].alias);
        free (s->sessions[i].chain);
    }
    free (s->sessions);
    free (s->order);
    free (s->blocks);
    *s = (struct idspace){ 0 };
}

int idspace_reserve_clusters (struct idspace *s, uint32_t n)
{
    return grow (&s->blocks, &s->room_clusters, n, sizeof (*s->blocks));
}

int idspace_reserve_sessions (struct idspace *s, uint32_t n)
{
    uint32_t room = s->room_sessions;

    if (grow (&s->order, &room, n, sizeof (*s->order)) < 0)
        return -1;
    return grow (&s->sessions, &s->room_sessions, n, sizeof (*s->sessions));
}

int idspace_reserve_chain (struct idspace *s, uint32_t session, uint32_t n)
{
    struct idsession *owner = &s->sessions[session];
    uint32_t before = owner->room;
    int rc = grow (&owner->chain, &owner->room, n, sizeof (*owner->chain));

    s->room_links += owner->room - before;
    return rc;
}

uint32_t idspace_add_session_unsorted (struct idspace *s, const struct idspace_key *key)
{
    struct idsession session = { .base = key->base, .end = 1 };

    if (idspace_reserve_sessions (s, s->nsessions + 1) < 0)
        return IDSPACE_NONE;
    if (key->alias && !(session.alias = strdup (key->alias)))
        return IDSPACE_NONE;
    s->sessions[s->nsessions] = session;
    s->order[s->nsessions] = s->nsessions;
    return s->nsessions++;
}

static int compare_bases (const void *a, const void *b, void *arg)
{
    const struct idsession *sessions = arg;
    u128 x = sessions[*(const uint32_t *)a].base;
    u128 y = sessions[*(const uint32_t *)b].base;

    return (x > y) - (x < y);
}

int idspace_sort_sessions (struct idspace *s)
{
    if (s->nsessions < 2)
        return 0;
    qsort_r (s->order, s->nsessions, sizeof (*s->order), compare_bases, s->sessions);
    for (uint32_t i = 1; i < s->nsessions; i++) {
        if (s->sessions[s->order[i - 1]].base == s->sessions[s->order[i]].base)
            return errset (IDCOMP_ESESSION_EXISTS);
    }
    return 0;
}

/* The number of sessions whose base is not above 'num'. */
static uint32_t rank_of (const struct idspace *s, u128 num)
{
    const uint32_t *base = s->order;
    uint32_t n = s->nsessions;

    if (n == 0)
        return 0;
    while (n > 1) {
        uint32_t half = n / 2;
        base += s->sessions[base[half]].base <= num ? half : 0;
        n -= half;
    }
    return base - s->order + (s->sessions[*base].base <= num);
}

uint32_t idspace_add_session (struct idspace *s, const struct idspace_key *key)
{
    uint32_t place = rank_of (s, key->base);
    uint32_t i = idspace_add_session_unsorted (s, key);

    if (i == IDSPACE_NONE)
        return i;
    if (idspace_reserve_chain (s, i, 1) < 0) {
        free (s->sessions[i].alias);
        s->nsessions--;
        return IDSPACE_NONE;
    }
    memmove (s->order + place + 1, s->order + place, (i - place) * sizeof (*s->order));
    s->order[place] = i;
    return i;
}

/* The digest is a sum over all clusters. The term of a cluster is a hash of its place and owner, times a combination of
 * its capacity and reserve. So a change of a cluster needs one multiplication. Clusters that were added since the last
 * call of idspace_digest () are not included yet, because no digest is requested of most spaces that are loaded.
 */
#define CAPACITY_FACTOR UINT64_C (0xd6e8feb86659fd93)

static void add_to_digest (struct idspace *s, u128 base, int64_t final, int64_t capacity, int64_t reserve)
{
    uint64_t a = (uint64_t)base ^ ((uint64_t) final * UINT64_C (0x9e3779b97f4a7c15));
    uint64_t b = (uint64_t)(base >> 64) ^ ((uint64_t) final + UINT64_C (0xc2b2ae3d27d4eb4f));
    u128 product = (u128)(a ^ UINT64_C (0xa0761d6478bd642f)) * (b ^ UINT64_C (0xe7037ed1a0b428db));
    uint64_t own = (uint64_t)product ^ (uint64_t)(product >> 64) ^ a;

    s->digest += (own | 1) * ((uint64_t)capacity * CAPACITY_FACTOR - (uint64_t)reserve);
}

void idspace_add_cluster (struct idspace *s, uint32_t session, int64_t capacity, uint32_t reserve)
{
    struct idsession *owner = &s->sessions[session];
    struct idlink link = { owner->end, s->nclusters, reserve };
    struct idblock block = { s->limit, session, owner->nchain };

    assert (owner->nchain < owner->room && s->nclusters < s->room_clusters); /* the caller has reserved both */
    assert (capacity > 0 && reserve <= capacity);
    owner->chain[owner->nchain++] = link;
    s->blocks[s->nclusters++] = block;
    s->limit += capacity;
    owner->end += capacity;
}

void idspace_expand (struct idspace *s, int64_t more, uint32_t reserve)
{
    const struct idblock *block = &s->blocks[s->nclusters - 1];
    struct idsession *owner = &s->sessions[block->session];

    assert (s->nclusters > 0 && more >= 0);
    if (s->summed == s->nclusters)
        add_to_digest (s, owner->base, block->final, more, (int64_t)reserve - owner->chain[block->link].reserve);
    owner->chain[block->link].reserve = reserve;
    owner->end += more;
    s->limit += more;
}

void idspace_set_reserve (struct idspace *s, uint32_t session, uint32_t link, uint32_t reserve)
{
    struct idlink *l = &s->sessions[session].chain[link];

    assert (link < s->sessions[session].nchain);
    if (l->block < s->summed)
        add_to_digest (s, s->sessions[session].base, s->blocks[l->block].final, 0, (int64_t)reserve - l->reserve);
    l->reserve = reserve;
}

uint64_t idspace_digest (struct idspace *s)
{
    for (; s->summed < s->nclusters; s->summed++) {
        struct idcluster k = idspace_cluster (s, s->summed);

        add_to_digest (s, s->sessions[k.session].base, k.final, k.capacity, k.reserve);
    }
    return s->digest;
}

uint32_t idspace_nearest (const struct idspace *s, u128 num, uint32_t except)
{
    uint32_t rank = rank_of (s, num);

    if (rank > 0 && s->order[rank - 1] == except)
        rank--;
    return rank > 0 ? s->order[rank - 1] : IDSPACE_NONE;
}

static bool same_alias (const char *a, const char *b)
{
    return a && b ? strcmp (a, b) == 0 : a == b;
}

uint32_t idspace_find (const struct idspace *s, const struct idspace_key *key)
{
    uint32_t i = idspace_nearest (s, key->base, IDSPACE_NONE);

    if (i == IDSPACE_NONE || s->sessions[i].base != key->base) {
        errno = IDCOMP_EUNKNOWN_SESSION;
        return IDSPACE_NONE;
    }
    if (!same_alias (s->sessions[i].alias, key->alias)) {
        errno = IDCOMP_ESESSION_ALIAS;
        return IDSPACE_NONE;
    }
    return i;
}

struct idcluster idspace_cluster (const struct idspace *s, uint32_t i)
{
    const struct idblock *block = &s->blocks[i];
    const struct idlink *link = &s->sessions[block->session].chain[block->link];

    return (struct idcluster){
        .final = block->final,
        .gen = link->gen,
        .capacity = (i + 1 == s->nclusters ? s->limit : block[1].final) - block->final,
        .session = block->session,
        .reserve = link->reserve,
    };
}

bool idspace_find_final (const struct idspace *s, int64_t id, struct idcluster *k)
{
    if (id < 0 || id >= s->limit)
        return false;
    *k = idspace_cluster (s, idsearch (s->blocks, s->nclusters, id));
    return true;
}

bool idspace_find_gen (const struct idspace *s, uint32_t session, int64_t gen, struct idcluster *k)
{
    const struct idsession *owner = &s->sessions[session];

    if (gen < 1 || gen >= owner->end)
        return false;
    *k = idspace_cluster (s, owner->chain[idsearch (owner->chain, owner->nchain, gen)].block);
    return true;
}

bool idspace_last (const struct idspace *s, uint32_t session, struct idcluster *k)
{
    const struct idsession *owner = &s->sessions[session];

    if (owner->nchain == 0)
        return false;
    *k = idspace_cluster (s, owner->chain[owner->nchain - 1].block);
    return true;
}

int64_t idspace_next_gen (const struct idspace *s, uint32_t session)
{
    const struct idsession *owner = &s->sessions[session];

    return owner->end - (owner->nchain > 0 ? owner->chain[owner->nchain - 1].reserve : 0);
}

bool idspace_collides (const struct idspace *s, uint32_t session, u128 base, int64_t gen, int64_t capacity)
{
    u128 low = base + gen - 1;
    uint32_t other = idspace_nearest (s, low + capacity - 1, session);

    if (other == IDSPACE_NONE || s->sessions[other].nchain == 0)
        return false;
    return s->sessions[other].base + s->sessions[other].end - 1 > low;
}

size_t idspace_memory (const struct idspace *s)
{
    return s->room_clusters * sizeof (*s->blocks) + s->room_sessions * (sizeof (*s->sessions) + sizeof (*s->order))
           + s->room_links * sizeof (*s->sessions->chain);
}

static bool chains_equal (const struct idspace *a, uint32_t i, const struct idspace *b, uint32_t j)
{
    const struct idsession *x = &a->sessions[i];
    const struct idsession *y = &b->sessions[j];

    for (uint32_t n = 0; n < x->nchain && n < y->nchain; n++) {
        struct idcluster k = idspace_cluster (a, x->chain[n].block);
        struct idcluster l = idspace_cluster (b, y->chain[n].block);
        if (k.final != l.final || k.gen != l.gen || k.capacity != l.capacity || k.reserve != l.reserve)
            return false;
    }
    return x->nchain == y->nchain;
}

bool idspace_within (const struct idspace *a, const struct idspace *b, bool empty_too)
{
    for (uint32_t i = 0; i < a->nsessions; i++) {
        const struct idsession *session = &a->sessions[i];
        uint32_t j = idspace_find (b, &(struct idspace_key){ session->base, session->alias });
        if (j == IDSPACE_NONE ? empty_too || session->nchain > 0 : !chains_equal (a, i, b, j))
            return false;
    }
    return true;
}

/* --- runs --- */

static int64_t run_end (const struct idcomp_run *run)
{
    return run->first + run->count;
}

/* The number of runs that begin at or before 'gen'. */
static size_t count_up_to (const struct idruns *runs, int64_t gen)
{
    if (runs->n == 0 || gen < runs->v[0].first)
        return 0;
    return idsearch (runs->v, runs->n, gen) + 1;
}

void idruns_fini (struct idruns *runs)
{
    free (runs->v);
    *runs = (struct idruns){ 0 };
}

int idruns_reserve (struct idruns *runs, size_t n)
{
    if (n <= runs->room)
        return 0;
    size_t room = runs->room + runs->room / 4 + 4;
    if (room < n)
        room = n;
    struct idcomp_run *v = realloc (runs->v, room * sizeof (*v));
    if (!v)
        return -1;
    runs->v = v;
    runs->room = room;
    return 0;
}

int idruns_append (struct idruns *runs, int64_t first, int64_t count)
{
    if (runs->n > 0 && run_end (&runs->v[runs->n - 1]) == first) {
        runs->v[runs->n - 1].count += count;
        return 0;
    }
    assert (count > 0 && (runs->n == 0 || run_end (&runs->v[runs->n - 1]) < first));
    if (idruns_reserve (runs, runs->n + 1) < 0)
        return -1;
    runs->v[runs->n++] = (struct idcomp_run){ first, count };
    return 0;
}

bool idruns_contain (const struct idruns *runs, int64_t gen)
{
    size_t i = count_up_to (runs, gen);

    return i > 0 && gen < run_end (&runs->v[i - 1]);
}

/* The part of a run that lies within first ... last. Its count is below 1 if no number of the run lies there. */
static struct idcomp_run clip (struct idcomp_run run, int64_t first, int64_t last)
{
    int64_t end = run_end (&run) - 1 < last ? run_end (&run) : last + 1;
    int64_t start = run.first > first ? run.first : first;

    return (struct idcomp_run){ start, end - start };
}

int idruns_cut (const struct idruns *runs, int64_t first, int64_t last, struct idcomp_run **cut, size_t *n)
{
    size_t lo = count_up_to (runs, first);
    size_t hi = count_up_to (runs, last);
    struct idcomp_run *v = NULL;
    size_t used = 0;

    if (lo > 0)
        lo--; /* this run begins at or before 'first' and may extend into the range */
    if (hi > lo && !(v = malloc ((hi - lo) * sizeof (*v))))
        return -1;
    for (size_t i = lo; i < hi; i++) {
        v[used] = clip (runs->v[i], first, last);
        used += v[used].count > 0;
    }
    if (used == 0) {
        free (v);
        v = NULL;
    }
    *cut = v;
    *n = used;
    return 0;
}

bool idruns_equal (const struct idruns *a, const struct idruns *b)
{
    return a->n == b->n && (a->n == 0 || memcmp (a->v, b->v, a->n * sizeof (*a->v)) == 0);
}
