/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* stored.c - the stored form of a compressor, version 2
 *
 * A form consists of cells of 8 bytes, little endian. A number is an IEEE 754 double. A UUID needs two cells, the lower
 * and the upper 64 bits of its numeric form.
 *
 *   version (2), local state (0 or 1), number of sessions nS, number of clusters nC
 *   nS UUIDs: sessions in order of registration; without local state only those with clusters
 *   nC times: index of the cluster's session among these UUIDs, capacity, finalized ids
 *   with local state: ids generated, first generation count of the next range, number of runs nR
 *   nR times: first generation count, length
 *
 * A form is valid if and only if
 *   (1) it has exactly these cells, and all numbers are integers from 0 to 2^53;
 *   (2) sessions are different and below 2^122 - 2^53; with local state there is at least one session;
 *       without local state each session has a cluster;
 *   (3) each cluster belongs to a session, has at least one id and at most 2^20 ids in reserve, and
 *       only the last cluster of a session has a reserve;
 *   (4) runs are ascending and not adjacent, and end at or below the ids generated;
 *   (5) finalized ids of the local session were generated, generated ids beyond its clusters are
 *       in runs, and the next range begins at 1 ... generated + 1.
 * So a compressor that was read from a form is written as the same bytes.
 *
 * The original checks less. Like the original, IDCOMP_ORIGINAL accepts other values of the local state flag, counts
 * that are not integers, the new session as the owner of clusters (index -1), sessions without clusters, reserves
 * before the last cluster, adjacent runs, and violations of (5).
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "compressor.h"
#include "libutil/base64.h"
#include "libutil/errprintf.h"

#define CELL 8 /* bytes */
#define HEADER_CELLS 4
#define SESSION_CELLS 2
#define CLUSTER_CELLS 3
#define LOCAL_CELLS 3
#define RUN_CELLS 2
#define VERSION 2
#define NUMBER_MAX (IDCOMP_ID_MAX + 1) /* the largest number, and the largest generation count */

enum header { NSESSIONS = 2, NCLUSTERS };
enum cluster { SESSION, CAPACITY, COUNT };

/* put_word () and put_number () write a cell. Both return the address after the cell. */
static inline unsigned char *put_word (unsigned char *cell, uint64_t word)
{
    word = htole64 (word);
    memcpy (cell, &word, CELL);
    return cell + CELL;
}

static inline unsigned char *put_number (unsigned char *cell, int64_t number)
{
    double d = number;
    uint64_t word;

    memcpy (&word, &d, sizeof (word));
    return put_word (cell, word);
}

/* --- writing --- */

static bool is_written (const struct idcomp *c, enum idcomp_state state, uint32_t session)
{
    return state == IDCOMP_WITH_LOCAL || c->space.sessions[session].nchain > 0;
}

static uint32_t count_sessions (const struct idcomp *c, enum idcomp_state state)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->space.nsessions; i++)
        n += is_written (c, state, i);
    return n;
}

static size_t stored_size (const struct idcomp *c, enum idcomp_state state, uint32_t nsessions)
{
    size_t cells = HEADER_CELLS + SESSION_CELLS * (size_t)nsessions + CLUSTER_CELLS * (size_t)c->space.nclusters;

    if (state == IDCOMP_WITH_LOCAL)
        cells += LOCAL_CELLS + RUN_CELLS * c->runs.n;
    return cells * CELL;
}

size_t idcomp_save_size (const struct idcomp *c, enum idcomp_state state)
{
    return stored_size (c, state, count_sessions (c, state));
}

/* Write the sessions, and store each session's index in the form in 'index'. */
static unsigned char *put_sessions (unsigned char *p, const struct idcomp *c, enum idcomp_state state, uint32_t *index)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->space.nsessions; i++) {
        u128 base = c->space.sessions[i].base;
        index[i] = n;
        if (!is_written (c, state, i))
            continue;
        p = put_word (p, base);
        p = put_word (p, base >> 64);
        n++;
    }
    return p;
}

static unsigned char *put_clusters (unsigned char *p, const struct idspace *s, const uint32_t *index)
{
    for (uint32_t i = 0; i < s->nclusters; i++) {
        const struct idblock *block = &s->blocks[i];
        int64_t limit = i + 1 < s->nclusters ? block[1].final : s->limit;
        int64_t capacity = limit - block->final;
        p = put_number (p, index[block->session]);
        p = put_number (p, capacity);
        p = put_number (p, capacity - s->sessions[block->session].chain[block->link].reserve);
    }
    return p;
}

static void put_local_state (unsigned char *p, const struct idcomp *c)
{
    p = put_number (p, c->generated);
    p = put_number (p, c->next_first);
    p = put_number (p, c->runs.n);
    for (size_t i = 0; i < c->runs.n; i++) {
        p = put_number (p, c->runs.v[i].first);
        p = put_number (p, c->runs.v[i].count);
    }
}

ssize_t idcomp_save (const struct idcomp *c, enum idcomp_state state, void *buf, size_t size)
{
    uint32_t nsessions = count_sessions (c, state);
    size_t need = stored_size (c, state, nsessions);
    unsigned char *p = buf;

    if (compressor_check_no_ghost (c) < 0)
        return -1;
    if (size < need)
        return errset (ENOSPC);
    uint32_t *index = malloc (c->space.nsessions * sizeof (*index));
    if (!index)
        return -1;
    p = put_number (p, VERSION);
    p = put_number (p, state == IDCOMP_WITH_LOCAL);
    p = put_number (p, nsessions);
    p = put_number (p, c->space.nclusters);
    p = put_sessions (p, c, state, index);
    p = put_clusters (p, &c->space, index);
    if (state == IDCOMP_WITH_LOCAL)
        put_local_state (p, c);
    free (index);
    compressor_emit (c, (struct idcomp_event){
                            .type = IDCOMP_SAVED,
                            .size = need,
                            .clusters = c->space.nclusters,
                            .sessions = nsessions,
                        });
    return need;
}

/* --- reading --- */

struct stored_reader {
    const unsigned char *p;
    size_t cells; /* cells left to read */
    bool lenient;
    bool local_state;
    bool again;        /* a summary that contains the session that loads it: this session is continued */
    int64_t nsessions; /* number of sessions in the form */
    int64_t nclusters;
    int64_t own; /* index of the local session in the form; nsessions: it is not in the form */
};

static uint64_t get_word (struct stored_reader *r)
{
    uint64_t word;

    memcpy (&word, r->p, CELL);
    r->p += CELL;
    r->cells--;
    return le64toh (word);
}

static double get_double (struct stored_reader *r)
{
    uint64_t word = get_word (r);
    double d;

    memcpy (&d, &word, sizeof (d));
    return d;
}

/* Read a number. Returns -1 if the cell is not an integer of 0 ... NUMBER_MAX. */
static inline int64_t get_number (struct stored_reader *r)
{
    double d = get_double (r);

    if (!(d >= 0 && d <= NUMBER_MAX)) /* written so that NaN is refused, too */
        return -1;
    int64_t number = d;
    return d == (double)number ? number : -1;
}

/* Read how many elements follow; -1 if the number is not valid. With IDCOMP_ORIGINAL any number is used as a loop of
 * the original would use it: as a limit that is not checked.
 */
static int64_t get_count (struct stored_reader *r)
{
    double d = get_double (r);

    if (r->lenient && !(d > 0)) /* also true for NaN */
        return 0;
    if (!(d >= 0 && d <= NUMBER_MAX))
        return -1;
    int64_t number = d;
    if (d != (double)number)
        return r->lenient ? number + 1 : -1;
    return number;
}

/* Fail if fewer than 'n' times 'cells' cells are left to read. */
static int need (const struct stored_reader *r, int64_t n, size_t cells)
{
    if ((uint64_t)n > r->cells / cells)
        return errset (IDCOMP_ECORRUPT_TRUNCATED);
    return 0;
}

static int read_header (struct stored_reader *r, size_t size)
{
    if (size % CELL != 0)
        return errset (IDCOMP_ECORRUPT_LENGTH);
    if (need (r, 1, 1) < 0)
        return -1;
    double version = get_double (r);
    if (version != VERSION)
        return errset (version == 1 ? IDCOMP_EVERSION_OLD : IDCOMP_EVERSION_UNKNOWN);
    if (need (r, HEADER_CELLS - 1, 1) < 0)
        return -1;
    double flag = get_double (r);
    r->local_state = flag == 1;
    r->nsessions = get_count (r);
    r->nclusters = get_count (r);
    if ((flag != 0 && flag != 1 && !r->lenient) || r->nsessions < 0 || r->nclusters < 0)
        return errset (IDCOMP_ECORRUPT_VALUE);
    r->own = r->local_state ? 0 : r->nsessions;
    return 0;
}

static int read_session (struct stored_reader *r, struct idcomp *c, int64_t i)
{
    uint64_t low = get_word (r);
    u128 base = uuidnum_join (get_word (r), low);

    if (base >= UUIDNUM_END - (r->lenient ? 0 : NUMBER_MAX))
        return errset (IDCOMP_ECORRUPT_VALUE);
    if (r->again && r->own == r->nsessions && base == c->space.sessions[0].base) {
        r->own = i;
        return 0;
    }
    if (idspace_add_session_unsorted (&c->space, &(struct idspace_key){ base, NULL }) == IDSPACE_NONE)
        return -1;
    return 0;
}

/* Add the session that loads a summary, before the sessions of the summary. Its name is always the lower case form. */
static int add_new_session (struct idcomp *c, const char *text)
{
    struct idspace_key key;

    if (compressor_key (c->flags, text, &key) < 0)
        return -1;
    key.alias = NULL;
    return idspace_add_session_unsorted (&c->space, &key) == IDSPACE_NONE ? -1 : 0;
}

static int read_sessions (struct stored_reader *r, struct idcomp *c, const char *session)
{
    if (need (r, r->nsessions, SESSION_CELLS) < 0)
        return -1;
    if (r->nsessions >= IDSPACE_MAX)
        return errset (ENOMEM);
    if (idspace_reserve_sessions (&c->space, r->nsessions + 1) < 0)
        return -1;
    if (session && add_new_session (c, session) < 0)
        return -1;
    for (int64_t i = 0; i < r->nsessions; i++)
        if (read_session (r, c, i) < 0)
            return -1;
    if (c->space.nsessions == 0)
        return errset (IDCOMP_ECORRUPT_NO_SESSION);
    return idspace_sort_sessions (&c->space);
}

/* Read which session a cluster belongs to. In the space the sessions have the order of the form, but the local session
 * comes first.
 */
static int get_owner (struct stored_reader *r, uint32_t *session)
{
    double d = get_double (r);

    if (!(d >= 0 || (r->lenient && d == -1 && r->own == r->nsessions)) || d >= r->nsessions || d != (double)(int64_t)d)
        return errset (IDCOMP_ECORRUPT_SESSION_INDEX);
    int64_t i = d;
    if (i < r->own)
        *session = i + 1;
    else
        *session = i > r->own ? i : 0;
    return 0;
}

/* Allocate exactly the memory that the clusters of each session need. */
static int reserve_clusters (struct stored_reader r, struct idspace *s)
{
    uint32_t session;

    for (uint32_t i = 0; i < s->nsessions; i++)
        s->sessions[i].nchain = 0;
    for (int64_t i = 0; i < r.nclusters; i++) {
        if (get_owner (&r, &session) < 0)
            return -1;
        s->sessions[session].nchain++;
        r.p += (CLUSTER_CELLS - 1) * CELL;
    }
    for (uint32_t i = 0; i < s->nsessions; i++) {
        uint32_t n = s->sessions[i].nchain;
        s->sessions[i].nchain = 0;
        if (idspace_reserve_chain (s, i, n) < 0)
            return -1;
    }
    return idspace_reserve_clusters (s, r.nclusters);
}

static int read_cluster (struct stored_reader *r, struct idspace *s)
{
    uint32_t session;

    if (get_owner (r, &session) < 0)
        return -1;
    int64_t capacity = get_number (r);
    int64_t finalized = get_number (r);
    int64_t reserve = capacity - finalized;
    uint32_t previous = s->sessions[session].end - idspace_next_gen (s, session);
    if (capacity < 1 || finalized < 0 || reserve < 0 || reserve > UINT32_MAX || capacity > NUMBER_MAX - s->limit)
        return errset (IDCOMP_ECORRUPT_VALUE);
    if (!r->lenient && (reserve > IDCOMP_CLUSTER_SIZE_MAX || previous > 0))
        return errset (IDCOMP_ECORRUPT_VALUE);
    idspace_add_cluster (s, session, capacity, reserve);
    return 0;
}

static int read_clusters (struct stored_reader *r, struct idspace *s)
{
    if (need (r, r->nclusters, CLUSTER_CELLS) < 0)
        return -1;
    if (r->nclusters >= IDSPACE_MAX)
        return errset (ENOMEM);
    if (reserve_clusters (*r, s) < 0)
        return -1;
    for (int64_t i = 0; i < r->nclusters; i++)
        if (read_cluster (r, s) < 0)
            return -1;
    return 0;
}

static int read_run (struct stored_reader *r, struct idruns *runs)
{
    int64_t first = get_number (r);
    int64_t count = get_number (r);
    const struct idcomp_run *last = runs->n > 0 ? &runs->v[runs->n - 1] : NULL;

    if (first < 1 || count < 1 || count > NUMBER_MAX - first)
        return errset (IDCOMP_ECORRUPT_VALUE);
    if (last && first <= last->first)
        return errset (IDCOMP_ECORRUPT_LOCAL_RANGES);
    if (last && first < last->first + last->count + !r->lenient)
        return errset (IDCOMP_ECORRUPT_VALUE);
    return idruns_append (runs, first, count);
}

static int read_local_state (struct stored_reader *r, struct idcomp *c)
{
    if (need (r, LOCAL_CELLS, 1) < 0)
        return -1;
    c->generated = get_number (r);
    c->next_first = get_number (r);
    int64_t n = get_count (r);
    if (c->generated < 0 || c->next_first < 0 || n < 0)
        return errset (IDCOMP_ECORRUPT_VALUE);
    if (need (r, n, RUN_CELLS) < 0 || idruns_reserve (&c->runs, n) < 0)
        return -1;
    for (int64_t i = 0; i < n; i++)
        if (read_run (r, &c->runs) < 0)
            return -1;
    return 0;
}

/* Rules (4) and (5): whether the local state is consistent with the final space. */
static bool local_state_fits (const struct idcomp *c)
{
    int64_t end = c->space.sessions[0].end;
    const struct idcomp_run *last = c->runs.n > 0 ? &c->runs.v[c->runs.n - 1] : NULL;
    int64_t runs_end = last ? last->first + last->count : 1;

    if (c->next_first < 1 || c->next_first > c->generated + 1)
        return false;
    if (runs_end > c->generated + 1 || idspace_next_gen (&c->space, 0) > c->generated + 1)
        return false;
    return c->generated < end || (last && last->first <= end && runs_end == c->generated + 1);
}

/* Rule (2) for a form without local state: whether each session except the new one has clusters. */
static bool all_have_clusters (const struct idspace *s)
{
    for (uint32_t i = 1; i < s->nsessions; i++)
        if (s->sessions[i].nchain == 0)
            return false;
    return true;
}

static int read_form (struct stored_reader *r, size_t size, struct idcomp *c, const char *session)
{
    r->cells = size / CELL;
    r->lenient = c->flags & IDCOMP_ORIGINAL;
    if (read_header (r, size) < 0)
        return -1;
    if (r->local_state != !session)
        return errset (session ? IDCOMP_EHAS_LOCAL_STATE : IDCOMP_ENO_SESSION_ID);
    if (read_sessions (r, c, session) < 0 || read_clusters (r, &c->space) < 0)
        return -1;
    if (r->local_state && read_local_state (r, c) < 0)
        return -1;
    if (r->cells > 0)
        return errset (IDCOMP_ECORRUPT_TRAILING);
    if (!r->lenient && !(r->local_state ? local_state_fits (c) : all_have_clusters (&c->space)))
        return errset (IDCOMP_ECORRUPT_VALUE);
    compressor_set_session (c, NULL);
    compressor_set_eager (c);
    return 0;
}

static struct idcomp *load (struct stored_reader *r, size_t size, const char *session, int flags)
{
    struct idcomp *c = compressor_new (flags);

    if (c && read_form (r, size, c, session) < 0) {
        idcomp_destroy (c);
        return NULL;
    }
    return c;
}

struct idcomp *idcomp_load (const void *data, size_t size, const char *session, int flags)
{
    return load (&(struct stored_reader){ .p = data }, size, session, flags);
}

/* --- the final space as it was some ranges ago ---
 *
 * Ranges change a final space only in few ways: they add sessions and clusters at its ends, enlarge the last cluster,
 * and finalize more ids of the last cluster of their sessions (space.h). So the earlier form is the beginning of the
 * current form, with two differences. First, the cluster that was the last one had a smaller capacity. Second, the
 * sessions of the ranges had fewer finalized ids: a session was finalized up to the beginning of its first range.
 *
 * A compressor that makes no ids also has a local session. This session is not in the form.
 */

/* Find the last cluster that a session had at that time. Returns false if it had none. */
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

/* Undo a range: set its session's finalized ids to those before the range's beginning. */
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

    assert (then->sessions > 0 && then->sessions <= c->space.nsessions && then->clusters <= c->space.nclusters);
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
    while (n > 0) /* backwards, so that the first range of each session is undone last */
        rewind_range (clusters, c, then, step (arg, --n));
    put_number (form + NSESSIONS * CELL, then_sessions);
    put_number (form + NCLUSTERS * CELL, then_clusters);
    memmove (form + (HEADER_CELLS + then_sessions * SESSION_CELLS) * CELL, clusters,
             then_clusters * CLUSTER_CELLS * CELL);
    *size = (HEADER_CELLS + then_sessions * SESSION_CELLS + then_clusters * CLUSTER_CELLS) * CELL;
    return form;
}

/* --- a session loads the final space of a newer stored form ---
 *
 * Sessions and clusters come from the newer form, but the local session becomes the first one. The local state comes
 * from the older compressor. Together they must be valid according to the rules of stored forms.
 *
 * Final ids must not change. So the clusters of 'mine' must be the first ones of the newer form, with the same sessions
 * and capacities, and with at least as many finalized ids. Only the last cluster of 'mine' may have grown. Eager ids
 * lie in these clusters, so they do not change either.
 */

/* Whether cluster 'i' of 'newer' may be what cluster 'i' of 'mine' has become. */
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

/* Take the ids that 'mine' made. */
static int take_local_state (struct idcomp *c, const struct idcomp *mine)
{
    if (!continues (&mine->space, &c->space))
        return errset (ESTALE);
    if (idruns_cut (&mine->runs, 1, mine->generated, &c->runs.v, &c->runs.n) < 0)
        return -1;
    c->runs.room = c->runs.n;
    c->generated = mine->generated;
    c->next_first = mine->next_first;
    return local_state_fits (c) ? 0 : errset (IDCOMP_ECORRUPT_VALUE);
}

struct idcomp *compressor_rebase (const struct idcomp *mine, const void *form, size_t size)
{
    struct stored_reader r = { .p = form, .again = true };
    struct idcomp *c = load (&r, size, mine->session, IDCOMP_STRICT);

    if (c && take_local_state (c, mine) < 0) {
        idcomp_destroy (c);
        return NULL;
    }
    return c;
}

/* --- base64 --- */

ssize_t idcomp_base64_format (const void *data, size_t len, char *buf, size_t size)
{
    if (size < IDCOMP_BASE64_TEXT_SIZE (len))
        return errset (ENOSPC);
    return (ssize_t)base64_encode (data, len, buf);
}

/* Find the first error in a text that is not base64. Valid groups of four characters are skipped, then characters are
 * checked one by one.
 */
static size_t fault_at (const char *text, size_t len)
{
    char bytes[3], group[4] = { 'A', 'A', 'A', 'A' };
    size_t at = 0;

    while (len - at >= 4 && text[at + 3] != '=' && base64_decode (text + at, 4, bytes, sizeof (bytes)) >= 0)
        at += 4;
    for (int i = 0; i < 4 && at < len; i++, at++) {
        group[i] = text[at];
        if (group[i] == '=' || base64_decode (group, 4, bytes, sizeof (bytes)) < 0)
            break;
    }
    return at;
}

ssize_t idcomp_base64_parse (const char *text, size_t len, void *bytes, size_t size, size_t *errpos)
{
    ssize_t n = base64_decode (text, len, bytes, size);

    if (n < 0 && errno == EINVAL) {
        if (errpos)
            *errpos = fault_at (text, len);
        errno = IDCOMP_ECORRUPT_BASE64;
    }
    return n;
}
