/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* compressor.c - a session: its life, the ids that it makes and converts, and the errors of the library
 *
 * Ids are made in order of generation count. If a final id is reserved for the next count, the new id is that final id
 * ("eager"). Otherwise the new id is a local id, and the count is added to the local runs. An id never changes after it
 * was made.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compressor.h"
#include "libutil/errprintf.h"
#include "libutil/minmax.h"

/* The numeric form of a session must be below this number, so that no id of the session is beyond the largest UUID. */
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
    assert (c->space.nsessions > 0);
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

/* --- between the forms of an id: session space, op space, UUID ---
 *
 * In session space an id of the local session is a local id if and only if its generation count is in the local runs,
 * whether the id is finalized or not. So an id never changes. In op space an id is final as soon as a final id is
 * reserved for its count. Readers of the op know this final id, because each of them has finalized the range by then.
 */

/* gen_of (): the generation count of a final id of cluster 'k'. final_of (): the final id of a generation count. */
static int64_t gen_of (const struct idcluster *k, int64_t final)
{
    return k->gen + (final - k->final);
}

static int64_t final_of (const struct idcluster *k, int64_t gen)
{
    return k->final + (gen - k->gen);
}

/* Returns the local form of an id if 'local' is set, otherwise the final form. It does so without a branch, because
 * both kinds of ids are mixed, and a branch would often be mispredicted.
 */
static int64_t pick (bool local, int64_t gen, int64_t final)
{
    return final ^ ((final ^ -gen) & -(int64_t)local);
}

static bool is_finalized (const struct idcluster *k, int64_t final)
{
    return final - k->final < k->capacity - k->reserve;
}

/* --- op space and session space --- */

int idcomp_to_op (const struct idcomp *c, int64_t id, int64_t *op)
{
    if (compressor_check (c) < 0)
        return -1;
    if (id < 0) {
        int64_t gen = -(uint64_t)id;
        if (!idruns_contain (&c->runs, gen))
            return errset (IDCOMP_EINVALID_LOCAL_ID);
        struct idcluster k;
        if (idspace_find_gen (&c->space, 0, gen, &k))
            id = final_of (&k, gen);
    }
    *op = id;
    return 0;
}

/* The first final id that is not finalized. Only the reserve of the last cluster counts; reserves of earlier clusters
 * are ignored.
 */
static int64_t finalized_limit (const struct idspace *s)
{
    return s->nclusters > 0 ? s->limit - idspace_cluster (s, s->nclusters - 1).reserve : 0;
}

static int final_to_session (const struct idcomp *c, int64_t final, int64_t *id)
{
    struct idcluster k;

    /* an id that another session has reserved is accepted below the limit */
    if (!idspace_find_final (&c->space, final, &k) || k.session != 0) {
        if (final >= finalized_limit (&c->space))
            return errset (IDCOMP_EUNKNOWN_OP_ID);
        *id = final;
        return 0;
    }
    int64_t gen = gen_of (&k, final);
    bool local = idruns_contain (&c->runs, gen);
    if (gen > c->generated && !local)
        return errset (IDCOMP_EUNKNOWN_OP_ID);
    *id = pick (local, gen, final);
    return 0;
}

/* Find the session named 'text', which sent a local id. In most cases it is the local session. */
static uint32_t find_origin (const struct idcomp *c, const char *text)
{
    struct idspace_key key;

    if (strcmp (text, c->session) == 0)
        return 0;
    if (compressor_key (c->flags, text, &key) < 0)
        return IDSPACE_NONE;
    return idspace_find (&c->space, &key);
}

int idcomp_to_session (const struct idcomp *c, int64_t op, const char *origin, int64_t *id)
{
    if (compressor_check (c) < 0)
        return -1;
    if (op >= 0)
        return final_to_session (c, op, id);
    if (!origin)
        return errset (IDCOMP_ENO_ORIGIN);
    uint32_t session = find_origin (c, origin);
    if (session == IDSPACE_NONE)
        return errset (IDCOMP_EUNKNOWN_SESSION);
    int64_t gen = -(uint64_t)op;
    if (session == 0) {
        if (!idruns_contain (&c->runs, gen))
            return errset (IDCOMP_EUNKNOWN_OP_ID);
        *id = op;
        return 0;
    }
    struct idcluster k;
    if (!idspace_find_gen (&c->space, session, gen, &k) || !is_finalized (&k, final_of (&k, gen)))
        return errset (IDCOMP_EUNKNOWN_OP_ID);
    *id = final_of (&k, gen);
    return 0;
}

/* --- UUIDs --- */

/* Find the session and the generation count of an id of session space. */
static int find_id (const struct idcomp *c, int64_t id, uint32_t *session, int64_t *gen)
{
    if (id < 0) {
        int64_t g = -(uint64_t)id;
        if (!idruns_contain (&c->runs, g))
            return errset (IDCOMP_EUNKNOWN_ID);
        *session = 0;
        *gen = g;
        return 0;
    }
    struct idcluster k;
    if (!idspace_find_final (&c->space, id, &k))
        return errset (IDCOMP_EUNKNOWN_ID);
    int64_t g = gen_of (&k, id);
    if (!is_finalized (&k, id)) {
        if (k.session != 0)
            return errset (IDCOMP_EUNKNOWN_ID);
        if (idruns_contain (&c->runs, g))
            return errset (IDCOMP_EHAS_LOCAL_FORM);
    }
    *session = k.session;
    *gen = g;
    return 0;
}

int idcomp_decompress (const struct idcomp *c, int64_t id, struct idcomp_uuid *uuid)
{
    uint32_t session;
    int64_t gen;

    if (compressor_check (c) < 0 || find_id (c, id, &session, &gen) < 0)
        return -1;
    *uuid = uuidnum_to_uuid (c->space.sessions[session].base + gen - 1);
    return 0;
}

/* The generation count of a UUID in a session that begins at 'base'; 0: the UUID cannot belong to that session. */
static int64_t gen_from (u128 base, u128 num)
{
    return num >= base && num - base < (u128)IDCOMP_ID_MAX ? (int64_t)(num - base) + 1 : 0;
}

/* Find the id of a UUID of the local session. A final id is reserved for this UUID. */
static int local_to_id (const struct idcomp *c, const struct idcluster *k, int64_t gen, int64_t *id)
{
    bool local = idruns_contain (&c->runs, gen);

    if (gen > c->generated && !local)
        return errset (c->flags & IDCOMP_ORIGINAL ? IDCOMP_ENOT_GENERATED_YET : IDCOMP_ENOT_COMPRESSED);
    *id = pick (local, gen, final_of (k, gen));
    return 0;
}

/* Find the id of a UUID of another session. The original also accepts UUIDs that are reserved and not finalized. */
static int remote_to_id (const struct idcomp *c, const struct idcluster *k, int64_t gen, int64_t *id)
{
    int64_t final = final_of (k, gen);

    if (!is_finalized (k, final) && !(c->flags & IDCOMP_ORIGINAL))
        return errset (IDCOMP_ENOT_COMPRESSED);
    *id = final;
    return 0;
}

static int recompress (const struct idcomp *c, u128 num, int64_t *id)
{
    uint32_t session = idspace_nearest (&c->space, num, IDSPACE_NONE);

    if (session != IDSPACE_NONE) {
        int64_t gen = gen_from (c->space.sessions[session].base, num);
        struct idcluster k;
        if (idspace_find_gen (&c->space, session, gen, &k))
            return session == 0 ? local_to_id (c, &k, gen, id) : remote_to_id (c, &k, gen, id);
    }
    int64_t gen = gen_from (c->space.sessions[0].base, num);
    if (!idruns_contain (&c->runs, gen))
        return errset (IDCOMP_ENOT_COMPRESSED);
    *id = -gen;
    return 0;
}

int idcomp_recompress (const struct idcomp *c, const struct idcomp_uuid *uuid, int64_t *id)
{
    if (compressor_check (c) < 0)
        return -1;
    if (!uuid_is_v4 (uuid) && !(c->flags & IDCOMP_ORIGINAL))
        return errset (IDCOMP_EBAD_UUID);
    return recompress (c, uuidnum_from_uuid (uuid), id);
}

int idcomp_recompress_text (const struct idcomp *c, const char *text, int64_t *id)
{
    u128 num;

    if (compressor_check (c) < 0 || uuidnum_of_text (text, c->flags & IDCOMP_ORIGINAL, &num) < 0)
        return -1;
    return recompress (c, num, id);
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

uint64_t compressor_digest (struct idcomp *c)
{
    return idspace_digest (&c->space);
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

/* --- the errors of this library: name, nearest errno value, and text of each --- */

struct error {
    const char *name;
    int posix;
    const char *text;
};

#define E(name, posix, text) [IDCOMP_E##name - IDCOMP_EBASE] = { #name, posix, text }

static const struct error errors[] = {
    E (UNKNOWN_ID, ENOENT, "unknown id"),
    E (UNKNOWN_OP_ID, ENOENT, "unknown op space id"),
    E (UNKNOWN_SESSION, ENOENT, "no ids of the session were finalized"),
    E (INVALID_LOCAL_ID, EINVAL, "this session did not hand out the local id"),
    E (NOT_COMPRESSED, ENOENT, "the UUID has no id in this document"),
    E (NO_ORIGIN, EINVAL, "a local id has no meaning without its session"),
    E (HAS_LOCAL_FORM, EINVAL, "the final id is in op space: convert it to session space first"),
    E (NOT_GENERATED_YET, ENOENT, "the UUID is reserved but was not made"),
    E (RANGE_ORDER, EINVAL, "range finalized out of order"),
    E (RANGE_COUNT, EINVAL, "range of less than one id"),
    E (RANGE_NOT_GENERATED, EINVAL, "range of ids that this session has not made"),
    E (RANGE_FORM, EINVAL, "the text is not the JSON form of a creation range"),
    E (CLUSTER_SIZE_LOW, EINVAL, "requested cluster size below 1"),
    E (CLUSTER_SIZE_HIGH, EINVAL, "requested cluster size above 1048576, the limit"),
    E (LIMIT, EOVERFLOW, "an id would be larger than 2^53 - 1"),
    E (GHOST_ACTIVE, EBUSY, "a ghost session is active"),
    E (GHOST_NESTED, EBUSY, "a ghost session is active already"),
    E (GHOST_KNOWN, EEXIST, "the ghost session is the session of a client"),
    E (COLLISION, EEXIST, "two sessions made the same UUIDs"),
    E (BROKEN, ENOTRECOVERABLE, "the compressor is unusable: two sessions made the same UUIDs before"),
    E (BAD_UUID, EINVAL, "not a version 4 UUID"),
    E (SESSION_ALIAS, EEXIST, "the session is registered under another name"),
    E (SESSION_EXISTS, EEXIST, "the session exists in the stored form"),
    E (VERSION_OLD, EPROTONOSUPPORT, "stored form 1 is not supported"),
    E (VERSION_UNKNOWN, EPROTONOSUPPORT, "unknown version of stored form"),
    E (HAS_LOCAL_STATE, EINVAL, "the stored form is not a summary: it has a local session"),
    E (NO_SESSION_ID, EINVAL, "the stored form is a summary: loading it needs a new session id"),
    E (CORRUPT_NO_SESSION, EBADMSG, "the stored form has no session"),
    E (CORRUPT_SESSION_INDEX, EBADMSG, "the stored form has a cluster without a valid session"),
    E (CORRUPT_LOCAL_RANGES, EBADMSG, "the stored form has local runs out of order"),
    E (CORRUPT_LENGTH, EBADMSG, "the size of the stored form is not a multiple of 8 bytes"),
    E (CORRUPT_TRUNCATED, EBADMSG, "the stored form is truncated"),
    E (CORRUPT_TRAILING, EBADMSG, "the stored form has bytes after its end"),
    E (CORRUPT_VALUE, EBADMSG, "the stored form has a value that is out of range or contradicts another one"),
    E (CORRUPT_BASE64, EINVAL, "the stored form is not base64"),
};

_Static_assert(sizeof (errors) / sizeof (errors[0]) == IDCOMP_EEND - IDCOMP_EBASE, "each error must have an entry");

static const struct error *lookup (int errnum)
{
    return errnum > IDCOMP_EBASE && errnum < IDCOMP_EEND ? &errors[errnum - IDCOMP_EBASE] : NULL;
}

const char *idcomp_strerror (int errnum)
{
    const struct error *e = lookup (errnum);

    return e ? e->text : strerror (errnum);
}

const char *idcomp_error_name (int errnum)
{
    const struct error *e = lookup (errnum);

    return e ? e->name : NULL;
}

int idcomp_errno (int errnum)
{
    const struct error *e = lookup (errnum);

    return e ? e->posix : errnum;
}
