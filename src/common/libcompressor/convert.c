/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* convert.c - between the forms of an id: session space, op space, UUID
 *
 * In session space an id of the local session is a local id if and only if its generation count is in the local runs,
 * whether it is finalized or not, so an id never changes. In op space an id is final as soon as a final id is reserved
 * for its count: each reader of the op has finalized the range by then.
 */

#include <errno.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "compressor.h"

/* The generation count of a final id of cluster 'k'; the final id of a generation count. */
static int64_t gen_of (const struct idcluster *k, int64_t final)
{
    return k->gen + (final - k->final);
}

static int64_t final_of (const struct idcluster *k, int64_t gen)
{
    return k->final + (gen - k->gen);
}

/* Returns the local or the final form of an id without a branch: both kinds are mixed, so that a branch on 'local'
 * would often be mispredicted.
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

/* The first final id that is not finalized, ignoring the reserves of clusters before the last one. */
static int64_t finalized_limit (const struct idspace *s)
{
    return s->nclusters > 0 ? s->limit - idspace_cluster (s, s->nclusters - 1).reserve : 0;
}

static int final_to_session (const struct idcomp *c, int64_t final, int64_t *id)
{
    struct idcluster k;

    if (!idspace_find_final (&c->space, final, &k)
        || k.session != 0) { /* below the limit, reserved ids of other sessions are accepted */
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

/* The session that sent a local id. In most cases 'text' is the local session's name. */
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

/* The session and generation count of an id of session space. */
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

/* The generation count of a UUID in a session that begins at 'base'; 0: it cannot be one of that session. */
static int64_t gen_from (u128 base, u128 num)
{
    return num >= base && num - base < (u128)IDCOMP_ID_MAX ? (int64_t)(num - base) + 1 : 0;
}

/* The id of a UUID of the local session for which a final id is reserved. */
static int local_to_id (const struct idcomp *c, const struct idcluster *k, int64_t gen, int64_t *id)
{
    bool local = idruns_contain (&c->runs, gen);

    if (gen > c->generated && !local)
        return errset (c->flags & IDCOMP_ORIGINAL ? IDCOMP_ENOT_GENERATED_YET : IDCOMP_ENOT_COMPRESSED);
    *id = pick (local, gen, final_of (k, gen));
    return 0;
}

/* The id of a UUID of another session. The original also accepts UUIDs that are only reserved. */
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
