/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* vectors_test.c - replay the scenarios of idcomp.json in both readings
 *
 * With IDCOMP_ORIGINAL all scenarios are replayed. IDCOMP_STRICT takes the alternative result where the vectors have
 * two, and skips the scenarios that it refuses; compressor_test.c tests what happens instead.
 */

#include <errno.h>
#include <inttypes.h>

#include "space.h"
#include "test_vectors.h"

#define SLOTS 4096

static const char *const refused_in_strict[] = {
    "order-unknown-session-registered",
    "local-range-not-generated",
    "lenient-uuid",
    "session-alias",
    "bad-requested-size",
    "uuid-wrap",
    "ghost-on-known-session",
};

struct world {
    const json_t *sessions;
    int flags;
    struct idcomp *c[SLOTS];
    json_t *events[SLOTS]; /* telemetry of each compressor */
    struct idcomp_range r[SLOTS];
    char *stored[SLOTS]; /* base64 */
    size_t checks;
};

/* --- arguments --- */

static size_t slot_at (const json_t *op, size_t i)
{
    json_int_t slot = int_at (op, i);

    if (slot < 0 || slot >= SLOTS)
        bail_out ("a slot in the vectors is out of range");
    return slot;
}

static struct idcomp *compressor_at (struct world *w, const json_t *op, size_t i)
{
    struct idcomp *c = w->c[slot_at (op, i)];

    if (!c)
        bail_out ("the vectors use an empty slot");
    return c;
}

/* The session of an argument: "$A" is a name from the table of sessions. */
static const char *session_at (struct world *w, const json_t *op, size_t i)
{
    const char *text = text_at (op, i);

    return text && *text == '$' ? json_string_value (json_object_get (w->sessions, text + 1)) : text;
}

/* The UUID text of an argument: "$A+5" counts from a session. */
static const char *uuid_at (struct world *w, const json_t *op, size_t i, char buf[IDCOMP_UUID_TEXT_MAX])
{
    const char *text = text_at (op, i);
    char name[32];
    int64_t n = 0;

    if (*text != '$')
        return text;
    if (sscanf (text, "$%31[A-Z0-9]%" SCNd64, name, &n) < 2)
        return session_at (w, op, i);
    return num_text (text_num (json_string_value (json_object_get (w->sessions, name))) + n, buf);
}

static enum idcomp_state state_at (const json_t *op, size_t i)
{
    return int_at (op, i) ? IDCOMP_WITH_LOCAL : IDCOMP_WITHOUT_LOCAL;
}

/* --- results --- */

static json_t *done_or_error (int rc)
{
    if (rc < 0)
        return json_pack ("{s:s}", "e", idcomp_error_name (errno) ? idcomp_error_name (errno) : strerror (errno));
    return json_integer (1);
}

static json_t *id_or_error (int rc, int64_t id)
{
    return rc < 0 ? done_or_error (rc) : json_integer (id);
}

/* Add 'id' to runs of [start, length]; local ids count down. */
static void add_id (json_t *runs, int64_t id)
{
    json_t *last = json_array_get (runs, json_array_size (runs) - 1);

    if (last) {
        json_int_t start = int_at (last, 0);
        json_int_t n = int_at (last, 1);
        if (id == (start < 0 ? start - n : start + n) && (id < 0) == (start < 0)) {
            json_integer_set (json_array_get (last, 1), n + 1);
            return;
        }
    }
    json_array_append_new (runs, json_pack ("[I,I]", (json_int_t)id, (json_int_t)1));
}

static json_t *range_value (const struct idcomp_range *range)
{
    json_t *runs = json_array ();

    if (!range->has_ids) {
        json_decref (runs);
        return json_null ();
    }
    for (size_t i = 0; i < range->nruns; i++)
        json_array_append_new (runs,
                               json_pack ("[I,I]", (json_int_t)range->runs[i].first, (json_int_t)range->runs[i].count));
    return json_pack ("[I,I,I,o]", (json_int_t)range->first, (json_int_t)range->count, (json_int_t)range->cluster_size,
                      runs);
}

static uint64_t fnv1a (uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C (0x100000001b3);
    return hash;
}

#define FNV_START UINT64_C (0xcbf29ce484222325)

static json_t *hash_value (uint64_t hash)
{
    return json_sprintf ("%016" PRIx64, hash);
}

/* --- operations: each returns its result --- */

static void event_cb (const struct idcomp_event *e, void *arg)
{
    static const char *const names[] = {
        [IDCOMP_FIRST_CLUSTER] = "RuntimeIdCompressor:FirstCluster",
        [IDCOMP_CLUSTER_EXPANSION] = "RuntimeIdCompressor:ClusterExpansion",
        [IDCOMP_NEW_CLUSTER] = "RuntimeIdCompressor:NewCluster",
        [IDCOMP_STATUS] = "RuntimeIdCompressor:IdCompressorStatus",
        [IDCOMP_SAVED] = "RuntimeIdCompressor:SerializedIdCompressorSize",
    };
    json_t *o = json_pack ("{s:s}", "eventName", names[e->type]);

    if (e->type == IDCOMP_SAVED)
        json_object_update_new (o, json_pack ("{s:I,s:i,s:i}", "size", (json_int_t)e->size, "clusterCount", e->clusters,
                                              "sessionCount", e->sessions));
    else
        json_object_set_new (o, "sessionId", json_string (e->session));
    if (e->type == IDCOMP_CLUSTER_EXPANSION)
        json_object_update_new (o, json_pack ("{s:I,s:I,s:I}", "previousCapacity", (json_int_t)e->previous_capacity,
                                              "newCapacity", (json_int_t)e->new_capacity, "overflow",
                                              (json_int_t)e->overflow));
    if (e->type == IDCOMP_STATUS)
        json_object_update_new (o, json_pack ("{s:I,s:I}", "eagerFinalIdCount", (json_int_t)e->eager, "localIdCount",
                                              (json_int_t)e->local));
    json_array_append_new (arg, o);
}

/* Put a compressor (NULL: it could not be made, see errno) into a slot. */
static json_t *put_compressor (struct world *w, size_t slot, struct idcomp *c)
{
    if (!c)
        return done_or_error (-1);
    idcomp_destroy (w->c[slot]);
    json_decref (w->events[slot]);
    w->c[slot] = c;
    w->events[slot] = json_array ();
    idcomp_set_event_cb (c, event_cb, w->events[slot]);
    return done_or_error (0);
}

static json_t *op_new (struct world *w, const json_t *op)
{
    struct idcomp *c = idcomp_create (session_at (w, op, 2), w->flags);

    if (c && int_at (op, 3) && idcomp_set_cluster_size (c, int_at (op, 3)) < 0)
        return done_or_error (-1);
    return put_compressor (w, slot_at (op, 1), c);
}

static json_t *op_size (struct world *w, const json_t *op)
{
    return done_or_error (idcomp_set_cluster_size (compressor_at (w, op, 1), int_at (op, 2)));
}

static json_t *op_gen (struct world *w, const json_t *op)
{
    struct idcomp *c = compressor_at (w, op, 1);
    json_t *runs = json_array ();

    for (json_int_t n = int_at (op, 2); n > 0; n--) {
        int64_t id;
        if (idcomp_generate (c, &id) < 0) {
            json_decref (runs);
            return done_or_error (-1);
        }
        add_id (runs, id);
    }
    return runs;
}

static json_t *op_gendoc (struct world *w, const json_t *op)
{
    struct idcomp_uuid uuid;
    char text[IDCOMP_UUID_TEXT_MAX];
    int64_t id;

    if (idcomp_generate_unique (compressor_at (w, op, 1), &id, &uuid) < 0)
        return done_or_error (-1);
    if (id >= 0)
        return json_integer (id);
    idcomp_uuid_format (&uuid, text, sizeof (text));
    return json_string (text);
}

/* Take a range, write it as JSON, and read that. */
static json_t *take_into (struct world *w, const json_t *op, int (*take) (struct idcomp *, struct idcomp_range *))
{
    struct idcomp_range *slot = &w->r[slot_at (op, 2)];
    struct idcomp_range range;

    if (take (compressor_at (w, op, 1), &range) < 0)
        return done_or_error (-1);
    size_t size = idcomp_range_format_size (&range);
    char *text = malloc (size);
    idcomp_range_format (&range, text, size);
    idcomp_range_fini (&range);
    idcomp_range_fini (slot);
    int rc = idcomp_range_parse (text, size - 1, slot, NULL);
    free (text);
    return rc < 0 ? done_or_error (rc) : range_value (slot);
}

static json_t *op_take (struct world *w, const json_t *op)
{
    return take_into (w, op, idcomp_take);
}

static json_t *op_takeunf (struct world *w, const json_t *op)
{
    return take_into (w, op, idcomp_take_unfinalized);
}

static json_t *op_reset (struct world *w, const json_t *op)
{
    return done_or_error (idcomp_reset_ranges (compressor_at (w, op, 1)));
}

static json_t *op_range (struct world *w, const json_t *op)
{
    struct idcomp_range *r = &w->r[slot_at (op, 1)];
    const json_t *value = json_array_get (op, 3);

    idcomp_range_fini (r);
    snprintf (r->session, sizeof (r->session), "%s", session_at (w, op, 2));
    r->has_ids = json_is_array (value);
    r->first = int_at (value, 0);
    r->count = int_at (value, 1);
    r->cluster_size = int_at (value, 2);
    return json_integer (1);
}

static json_t *finalize_slots (struct world *w, const json_t *op, size_t from, size_t to)
{
    struct idcomp *c = compressor_at (w, op, 1);

    for (size_t i = from; i < to; i++) {
        if (idcomp_finalize (c, &w->r[i]) == 0)
            continue;
        bool order = errno == IDCOMP_ERANGE_ORDER;
        json_t *error = done_or_error (-1);
        json_int_t expected = idcomp_expected (c, w->r[i].session);
        if (order)
            json_object_set_new (error, "x", json_pack ("[I,I]", -expected, (json_int_t)-w->r[i].first));
        return error;
    }
    return json_integer (1);
}

static json_t *op_fin (struct world *w, const json_t *op)
{
    size_t slot = slot_at (op, 2);

    return finalize_slots (w, op, slot, slot + 1);
}

static json_t *op_finr (struct world *w, const json_t *op)
{
    return finalize_slots (w, op, slot_at (op, 2), slot_at (op, 3));
}

static json_t *op_toop (struct world *w, const json_t *op)
{
    int64_t id = 0;
    int rc = idcomp_to_op (compressor_at (w, op, 1), int_at (op, 2), &id);

    return id_or_error (rc, id);
}

static json_t *op_tosess (struct world *w, const json_t *op)
{
    int64_t id = 0;
    int rc = idcomp_to_session (compressor_at (w, op, 1), int_at (op, 2), session_at (w, op, 3), &id);

    return id_or_error (rc, id);
}

static json_t *op_trysess (struct world *w, const json_t *op)
{
    int64_t id = 0;
    int rc = idcomp_to_session (compressor_at (w, op, 1), int_at (op, 2), NULL, &id);

    return rc < 0 && errno == IDCOMP_ENO_ORIGIN ? json_null () : id_or_error (rc, id);
}

static json_t *op_dec (struct world *w, const json_t *op)
{
    struct idcomp_uuid uuid;
    char text[IDCOMP_UUID_TEXT_MAX];

    if (idcomp_decompress (compressor_at (w, op, 1), int_at (op, 2), &uuid) < 0)
        return done_or_error (-1);
    idcomp_uuid_format (&uuid, text, sizeof (text));
    return json_string (text);
}

static json_t *op_rec (struct world *w, const json_t *op)
{
    char buf[IDCOMP_UUID_TEXT_MAX];
    int64_t id = 0;
    int rc = idcomp_recompress_text (compressor_at (w, op, 1), uuid_at (w, op, 2, buf), &id);

    return id_or_error (rc, id);
}

static json_t *op_tryrec (struct world *w, const json_t *op)
{
    json_t *result = op_rec (w, op);
    const char *error = json_string_value (json_object_get (result, "e"));

    if (!error || strcmp (error, "NOT_COMPRESSED") != 0)
        return result;
    json_decref (result);
    return json_null ();
}

static json_t *op_ser (struct world *w, const json_t *op)
{
    struct idcomp *c = compressor_at (w, op, 1);
    size_t slot = slot_at (op, 3);
    size_t size = idcomp_save_size (c, state_at (op, 2));
    void *data = malloc (size);
    ssize_t n = idcomp_save (c, state_at (op, 2), data, size);
    const json_t *want = json_array_get (op, json_array_size (op) - 1);

    if (n < 0) {
        free (data);
        return done_or_error (-1);
    }
    free (w->stored[slot]);
    w->stored[slot] = malloc (IDCOMP_BASE64_TEXT_SIZE (n));
    idcomp_base64_format (data, n, w->stored[slot], IDCOMP_BASE64_TEXT_SIZE (n));
    free (data);
    if (json_is_object (want)) /* long texts are stored as a hash */
        return json_pack ("{s:I,s:o}", "n", (json_int_t)n, "h", hash_value (fnv1a (FNV_START, w->stored[slot])));
    return json_string (w->stored[slot]);
}

static json_t *op_blob (struct world *w, const json_t *op)
{
    size_t slot = slot_at (op, 1);

    free (w->stored[slot]);
    w->stored[slot] = strdup (text_at (op, 2));
    return json_integer (1);
}

static json_t *op_deser (struct world *w, const json_t *op)
{
    const char *text = w->stored[slot_at (op, 2)];
    size_t len = strlen (text);
    char *data = malloc (len + 1);
    ssize_t n = idcomp_base64_parse (text, len, data, len, NULL);
    struct idcomp *c = n < 0 ? NULL : idcomp_load (data, n, session_at (w, op, 3), w->flags);

    free (data);
    return put_compressor (w, slot_at (op, 1), c);
}

static json_t *op_gbeg (struct world *w, const json_t *op)
{
    return done_or_error (idcomp_ghost_begin (compressor_at (w, op, 1), session_at (w, op, 2)));
}

static json_t *op_gend (struct world *w, const json_t *op)
{
    idcomp_ghost_end (compressor_at (w, op, 1));
    return json_integer (1);
}

static json_t *op_eq (struct world *w, const json_t *op)
{
    return json_integer (idcomp_equal (compressor_at (w, op, 1), compressor_at (w, op, 2), state_at (op, 3)));
}

static json_t *op_tel (struct world *w, const json_t *op)
{
    json_t *events = w->events[slot_at (op, 1)];
    json_t *copy = json_copy (events);

    json_array_clear (events);
    return copy;
}

/* --- digests: the results of many calls as one hash --- */

static uint64_t feed_error (uint64_t hash)
{
    char text[64] = "u\n";

    if (errno != IDCOMP_ENOT_COMPRESSED)
        snprintf (text, sizeof (text), "!%s\n", idcomp_error_name (errno));
    return fnv1a (hash, text);
}

static uint64_t feed_id (uint64_t hash, int rc, int64_t id)
{
    char text[32];

    if (rc < 0)
        return feed_error (hash);
    snprintf (text, sizeof (text), "%" PRId64 "\n", id);
    return fnv1a (hash, text);
}

typedef uint64_t (*digest_f) (struct world *w, const json_t *op, int64_t id, uint64_t hash);

static json_t *digest (struct world *w, const json_t *op, digest_f step)
{
    uint64_t hash = FNV_START;
    size_t i;
    json_t *run;

    json_array_foreach (json_array_get (op, 2), i, run) {
        json_int_t start = int_at (run, 0);
        for (json_int_t k = 0; k < int_at (run, 1); k++)
            hash = step (w, op, start < 0 ? start - k : start + k, hash);
    }
    return hash_value (hash);
}

static uint64_t step_dec (struct world *w, const json_t *op, int64_t id, uint64_t hash)
{
    struct idcomp_uuid uuid;
    char text[IDCOMP_UUID_TEXT_MAX];

    if (idcomp_decompress (compressor_at (w, op, 1), id, &uuid) < 0)
        return feed_error (hash);
    idcomp_uuid_format (&uuid, text, sizeof (text));
    return fnv1a (fnv1a (hash, text), "\n");
}

static uint64_t step_op (struct world *w, const json_t *op, int64_t id, uint64_t hash)
{
    int64_t result = 0;
    int rc = idcomp_to_op (compressor_at (w, op, 1), id, &result);

    return feed_id (hash, rc, result);
}

static uint64_t step_sess (struct world *w, const json_t *op, int64_t id, uint64_t hash)
{
    int64_t result = 0;
    int rc = idcomp_to_session (compressor_at (w, op, 1), id, session_at (w, op, 3), &result);

    return feed_id (hash, rc, result);
}

static json_t *op_ddec (struct world *w, const json_t *op)
{
    return digest (w, op, step_dec);
}

static json_t *op_dop (struct world *w, const json_t *op)
{
    return digest (w, op, step_op);
}

static json_t *op_dsess (struct world *w, const json_t *op)
{
    return digest (w, op, step_sess);
}

static json_t *op_drec (struct world *w, const json_t *op)
{
    u128 base = text_num (session_at (w, op, 2));
    uint64_t hash = FNV_START;

    for (json_int_t k = 0; k < int_at (op, 4); k++) {
        struct idcomp_uuid uuid = uuidnum_to_uuid (base + int_at (op, 3) + k);
        int64_t id = 0;
        int rc = idcomp_recompress (compressor_at (w, op, 1), &uuid, &id);
        hash = feed_id (hash, rc, id);
    }
    return hash_value (hash);
}

static const struct {
    const char *name;
    json_t *(*run) (struct world *w, const json_t *op);
} operations[] = {
    { "new", op_new },         { "size", op_size },       { "gen", op_gen },     { "gendoc", op_gendoc },
    { "take", op_take },       { "takeunf", op_takeunf }, { "reset", op_reset }, { "range", op_range },
    { "fin", op_fin },         { "finr", op_finr },       { "toop", op_toop },   { "tosess", op_tosess },
    { "trysess", op_trysess }, { "dec", op_dec },         { "rec", op_rec },     { "tryrec", op_tryrec },
    { "ser", op_ser },         { "blob", op_blob },       { "deser", op_deser }, { "gbeg", op_gbeg },
    { "gend", op_gend },       { "eq", op_eq },           { "tel", op_tel },     { "ddec", op_ddec },
    { "dop", op_dop },         { "dsess", op_dsess },     { "drec", op_drec },
};

/* --- scenarios --- */

static json_t *run_operation (struct world *w, const json_t *op)
{
    for (size_t i = 0; i < sizeof (operations) / sizeof (operations[0]); i++)
        if (strcmp (operations[i].name, text_at (op, 0)) == 0)
            return operations[i].run (w, op);
    return json_string ("unknown operation");
}

/* The expected result in this reading, without the text of the original's error. New reference. */
static json_t *expected (const struct world *w, const json_t *op)
{
    const json_t *want = json_array_get (op, json_array_size (op) - 1);

    if (json_object_get (want, "alt"))
        want = json_object_get (want, w->flags & IDCOMP_ORIGINAL ? "r" : "alt");
    json_t *copy = json_deep_copy (want);
    if (json_is_object (copy))
        json_object_del (copy, "m");
    return copy;
}

static bool check_operation (struct world *w, const json_t *op, size_t i)
{
    json_t *want = expected (w, op);
    json_t *got = run_operation (w, op);
    bool same = want && json_equal (got, want);

    if (!same) {
        char *texts[3] = {
            json_dumps (op, JSON_COMPACT | JSON_ENCODE_ANY),
            json_dumps (got, JSON_COMPACT | JSON_ENCODE_ANY),
            json_dumps (want, JSON_COMPACT | JSON_ENCODE_ANY),
        };
        diag ("operation %zu: %.300s", i, texts[0]);
        diag ("  got  %.300s", texts[1]);
        diag ("  want %.300s", texts[2]);
        for (int k = 0; k < 3; k++)
            free (texts[k]);
    }
    json_decref (got);
    json_decref (want);
    w->checks++;
    return same;
}

static void clear_slots (struct world *w)
{
    for (size_t i = 0; i < SLOTS; i++) {
        idcomp_destroy (w->c[i]);
        json_decref (w->events[i]);
        idcomp_range_fini (&w->r[i]);
        free (w->stored[i]);
        w->c[i] = NULL;
        w->events[i] = NULL;
        w->stored[i] = NULL;
    }
}

static bool run_scenario (struct world *w, const json_t *ops)
{
    size_t failed = 0;
    size_t i;
    json_t *op;

    json_array_foreach (ops, i, op)
        failed += !check_operation (w, op, i);
    clear_slots (w);
    return failed == 0 && json_array_size (ops) > 0;
}

static bool is_refused (const char *name)
{
    for (size_t i = 0; i < sizeof (refused_in_strict) / sizeof (refused_in_strict[0]); i++)
        if (strcmp (name, refused_in_strict[i]) == 0)
            return true;
    return false;
}

static void run_reading (const json_t *root, int flags, const char *reading)
{
    const size_t refused = sizeof (refused_in_strict) / sizeof (refused_in_strict[0]);
    struct world *w = calloc (1, sizeof (*w));
    size_t i, passed = 0, excepted = 0, failed = 0;
    json_t *scenario;

    w->sessions = json_object_get (root, "sessions");
    w->flags = flags;
    json_array_foreach (json_object_get (root, "scenarios"), i, scenario) {
        const char *name = json_string_value (json_object_get (scenario, "n"));
        if (!(flags & IDCOMP_ORIGINAL) && is_refused (name))
            skip (name, "IDCOMP_STRICT refuses this scenario"), excepted++;
        else if (ok (run_scenario (w, json_object_get (scenario, "o")), "%s reading of a scenario of the original: %s",
                     reading, name))
            passed++;
        else
            failed++;
    }
    ok (failed == 0 && w->checks > 0 && excepted == (flags & IDCOMP_ORIGINAL ? 0 : refused),
        "%s reading: in %zu operations %zu scenarios passed, %zu are known exceptions, %zu failed", reading, w->checks,
        passed, excepted, failed);
    free (w);
}

int main (void)
{
    json_t *root = vectors_load ("idcomp");

    ok (json_integer_value (json_object_get (root, "maxClusterSize")) == IDCOMP_CLUSTER_SIZE_MAX
            && json_integer_value (json_object_get (root, "defaultClusterSize")) == IDCOMP_CLUSTER_SIZE_DEFAULT,
        "the cluster sizes of the compressor equal the vectors' sizes");
    run_reading (root, IDCOMP_ORIGINAL, "original");
    run_reading (root, IDCOMP_STRICT, "strict");
    json_decref (root);
    return done_testing ();
}
