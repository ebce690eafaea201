/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* range.c - creation ranges and ghost sessions. A session takes a range of ids. On its way the range is JSON text. In
 * the total order the ids of ranges and of ghost sessions become final.
 *
 * Changes of the final space must depend only on the earlier ranges and ghost sessions of the order. So all compressors
 * that process the same order have the same final ids. All steps that can fail come before the first change.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compressor.h"
#include "libutil/errprintf.h"

/* --- taking --- */

void idcomp_range_fini (struct idcomp_range *range)
{
    int saved = errno;

    free (range->runs);
    range->runs = NULL;
    range->nruns = 0;
    range->has_ids = false;
    errno = saved;
}

/* Returns 0, or -1 with errno set as for idcomp_finalize (). */
static int check_range (const struct idcomp_range *range)
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
        /* A bad size is possible only with IDCOMP_ORIGINAL, because idcomp_set_cluster_size () does not check it then.
         * Like the original, advance 'next_first' although the check fails.
         */
        if (check_range (&r) < 0) {
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

/* --- ranges as JSON text ---
 *
 *   {"sessionId":TEXT}
 *   {"sessionId":TEXT,"ids":{"firstGenCount":N,"count":N,"requestedClusterSize":N,
 *                            "localIdRanges":[[N,N],...]}}
 *
 * Any other text is refused. An object has all of its members, once each, in any order. Texts have no escapes. Integers
 * have no fraction or exponent, and are exact in a double.
 */

struct writer {
    char *buf;
    size_t size;
    size_t len; /* bytes of the whole text, including those that do not fit */
};

__attribute__ ((format (printf, 2, 3))) static void put (struct writer *w, const char *fmt, ...)
{
    bool full = w->len >= w->size;
    va_list ap;

    va_start (ap, fmt);
    w->len += vsnprintf (full ? NULL : w->buf + w->len, full ? 0 : w->size - w->len, fmt, ap);
    va_end (ap);
}

static size_t write_range (const struct idcomp_range *range, char *buf, size_t size)
{
    struct writer w = { buf, size, 0 };

    put (&w, "{\"sessionId\":\"%s\"", range->session);
    if (range->has_ids) {
        put (&w,
             ",\"ids\":{\"firstGenCount\":%" PRId64 ",\"count\":%" PRId64 ",\"requestedClusterSize\":%" PRId64
             ",\"localIdRanges\":[",
             range->first, range->count, range->cluster_size);
        for (size_t i = 0; i < range->nruns; i++)
            put (&w, "%s[%" PRId64 ",%" PRId64 "]", i > 0 ? "," : "", range->runs[i].first, range->runs[i].count);
        put (&w, "]}");
    }
    put (&w, "}");
    return w.len;
}

size_t idcomp_range_format_size (const struct idcomp_range *range)
{
    return write_range (range, NULL, 0) + 1;
}

ssize_t idcomp_range_format (const struct idcomp_range *range, char *buf, size_t size)
{
    size_t len = write_range (range, buf, size);

    if (len >= size)
        return errset (ENOSPC);
    return (ssize_t)len;
}

/* Functions that read. Each returns true and advances, or returns false and stays at the error. */

struct range_reader {
    const char *p;
    const char *end;
    bool nomem;
};

static void skip_blanks (struct range_reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
        r->p++;
}

/* Read the character 'mark', with blanks around it. */
static bool get_mark (struct range_reader *r, char mark)
{
    skip_blanks (r);
    if (r->p == r->end || *r->p != mark)
        return false;
    r->p++;
    skip_blanks (r);
    return true;
}

static bool get_text (struct range_reader *r, char *text, size_t size)
{
    size_t n = 0;

    if (r->p == r->end || *r->p != '"')
        return false;
    r->p++;
    while (r->p < r->end && *r->p != '"') {
        if (*r->p == '\\' || (unsigned char)*r->p < 0x20 || n + 1 >= size)
            return false;
        text[n++] = *r->p++;
    }
    text[n] = '\0';
    if (r->p == r->end)
        return false;
    r->p++;
    return true;
}

static bool get_integer (struct range_reader *r, int64_t *number)
{
    bool negative = r->p < r->end && *r->p == '-';
    int64_t x = 0;

    r->p += negative;
    const char *start = r->p;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9') {
        x = x * 10 + (*r->p - '0');
        if (x > IDCOMP_ID_MAX || (*start == '0' && r->p > start))
            return false;
        r->p++;
    }
    if (r->p == start)
        return false;
    *number = negative ? -x : x;
    return true;
}

/* Read an element of "localIdRanges" and append it to 'range'. */
static bool get_run (struct range_reader *r, struct idcomp_range *range, size_t *room)
{
    struct idcomp_run run;

    if (!get_mark (r, '[') || !get_integer (r, &run.first) || !get_mark (r, ',') || !get_integer (r, &run.count)
        || !get_mark (r, ']') || range->nruns == IDCOMP_RANGE_RUNS_MAX)
        return false;
    if (range->nruns == *room) {
        size_t more = *room * 2 + 4;
        struct idcomp_run *v = realloc (range->runs, more * sizeof (*v));
        if (!v) {
            r->nomem = true;
            return false;
        }
        range->runs = v;
        *room = more;
    }
    range->runs[range->nruns++] = run;
    return true;
}

static bool get_runs (struct range_reader *r, struct idcomp_range *range)
{
    size_t room = 0;

    if (!get_mark (r, '['))
        return false;
    if (get_mark (r, ']'))
        return true;
    do {
        if (!get_run (r, range, &room))
            return false;
    } while (get_mark (r, ','));
    return get_mark (r, ']');
}

typedef bool (*member_f) (struct range_reader *r, int member, struct idcomp_range *range);

/* Read an object whose members are among 'names'; 'value' reads the value of a member. Bit i of '*seen' is set if
 * member i is present.
 */
static bool get_object (struct range_reader *r, const char *const names[], int n, member_f value,
                        struct idcomp_range *range, unsigned int *seen)
{
    char name[24];
    int i;

    *seen = 0;
    if (!get_mark (r, '{'))
        return false;
    do {
        const char *start = r->p;
        if (!get_text (r, name, sizeof (name)))
            return false;
        for (i = 0; i < n && strcmp (name, names[i]) != 0; i++)
            ;
        if (i == n || *seen & 1U << i) {
            r->p = start;
            return false;
        }
        if (!get_mark (r, ':') || !value (r, i, range))
            return false;
        *seen |= 1U << i;
    } while (get_mark (r, ','));
    return get_mark (r, '}');
}

enum { FIRST, COUNT, CLUSTER_SIZE, RUNS, IDS_MEMBERS };
enum { SESSION, IDS, RANGE_MEMBERS };

static const char *const ids_members[] = {
    [FIRST] = "firstGenCount",
    [COUNT] = "count",
    [CLUSTER_SIZE] = "requestedClusterSize",
    [RUNS] = "localIdRanges",
};
static const char *const range_members[] = { [SESSION] = "sessionId", [IDS] = "ids" };

static bool get_ids_member (struct range_reader *r, int member, struct idcomp_range *range)
{
    switch (member) {
    case FIRST:
        return get_integer (r, &range->first);
    case COUNT:
        return get_integer (r, &range->count);
    case CLUSTER_SIZE:
        return get_integer (r, &range->cluster_size);
    default:
        return get_runs (r, range);
    }
}

static bool get_range_member (struct range_reader *r, int member, struct idcomp_range *range)
{
    unsigned int seen;

    if (member == SESSION)
        return get_text (r, range->session, sizeof (range->session));
    range->has_ids = true;
    return get_object (r, ids_members, IDS_MEMBERS, get_ids_member, range, &seen) && seen == (1U << IDS_MEMBERS) - 1;
}

int idcomp_range_parse (const char *text, size_t len, struct idcomp_range *range, size_t *errpos)
{
    struct range_reader r = { .p = text, .end = text + len };
    struct idcomp_range x = { .has_ids = false };
    unsigned int seen;

    if (!get_object (&r, range_members, RANGE_MEMBERS, get_range_member, &x, &seen) || !(seen & 1U << SESSION)
        || r.p != r.end) {
        idcomp_range_fini (&x);
        if (errpos)
            *errpos = r.p - text;
        return errset (r.nomem ? ENOMEM : IDCOMP_ERANGE_FORM);
    }
    *range = x;
    return 0;
}

/* --- clusters --- */

/* Two sessions made the same UUIDs, so no later range of the total order can be trusted: the compressor is broken. Only
 * the compressor of the orderer is not. It continues without this range, since nothing has been changed yet.
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

/* Give a session a new cluster. '*session' is the index of the session. If it is IDSPACE_NONE, the session 'key' is
 * registered and '*session' is set.
 */
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

/* --- finalizing --- */

/* Refuse a range that does not begin where its session was finalized last. With IDCOMP_ORIGINAL an unknown session is
 * registered nevertheless, as the original does.
 */
static int check_order (struct idcomp *c, uint32_t session, const struct idspace_key *key, int64_t first)
{
    if (first == (session == IDSPACE_NONE ? 1 : idspace_next_gen (&c->space, session)))
        return 0;
    if (c->flags & IDCOMP_ORIGINAL && session == IDSPACE_NONE && idspace_add_session (&c->space, key) == IDSPACE_NONE)
        return -1;
    return errset (IDCOMP_ERANGE_ORDER);
}

/* Add 'over' finalized ids and 'size' reserved ones to the last cluster of the space, whose reserve is used up. */
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

/* Put 'over' finalized ids and 'size' reserved ones into a new cluster. The reserve of the session's cluster before it
 * is used up.
 */
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

/* Allocate final ids for the ids of a valid range. */
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

/* Report the ids that the local session made since the last report. */
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
    if (check_range (range) < 0 || compressor_key (c->flags, range->session, &key) < 0)
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

/* Check that the ghost session is not the session of a client, which would make the same ids. */
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
    /* Only the first id is checked for a collision, for every 'count'. */
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

    assert (c->ghost && count > 0);
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
