/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_sno.c - each text, JSON token and snapshot is refused with a position, or is read, and is then the same when it
 * is written again; the vector code agrees with the plain code; a generator that is made from any snapshot makes no id
 * twice
 */
#include <stdlib.h>
#include <string.h>

#include "libsno/sno.c" /* included, because both implementations are tested */

int LLVMFuzzerTestOneInput (const unsigned char *data, size_t size);

static void require (int good)
{
    if (!good)
        abort ();
}

static void round_trip (const sno_t *id)
{
    struct sno_fields fields = sno_split (id);
    char text[SNO_TEXT_MAX], json[SNO_JSON_TEXT_MAX];
    sno_t back;

    require (sno_join (&fields, &back) == 0 && sno_compare (id, &back) == 0);
    require (sno_format (id, text, sizeof (text)) == (int)strlen (text));
    require (sno_parse (text, strlen (text), &back, NULL) == 0 && sno_compare (id, &back) == 0);
    require (sno_json_parse (json, (size_t)sno_json_format (id, json, sizeof (json)), &back, NULL) == 0
             && sno_compare (id, &back) == 0);
}

static void parse (const char *text, size_t len)
{
    const sno_t untouched = { { 1, 2, 3 } };
    char back[SNO_TEXT_MAX];
    sno_t id = untouched, second = untouched;
    size_t pos = SIZE_MAX, second_pos = SIZE_MAX;
    int rc = sno_parse (text, len, &id, &pos);

    require (parse_elsewhere (text, len, &second, &second_pos) == rc && sno_compare (&id, &second) == 0);
    require (pos == second_pos && (len != SNO_TEXT_LEN || decode_plain (text, &second) == (rc == 0)));
    require (sno_compare (&id, &second) == 0);
    if (rc == 0) {
        require (sno_format (&id, back, sizeof (back)) == (int)len && memcmp (text, back, len) == 0);
        encode_second (&id, back);
        require (memcmp (text, back, len) == 0);
        encode_plain (&id, back);
        require (memcmp (text, back, len) == 0);
    }
    else {
        require (errno == (len == SNO_TEXT_LEN ? EINVAL : EMSGSIZE));
        require (pos <= SNO_TEXT_LEN && pos <= len && sno_compare (&id, &untouched) == 0);
    }
}

static void parse_json (const char *token, size_t len)
{
    char back[SNO_JSON_TEXT_MAX];
    sno_t id;
    size_t pos = SIZE_MAX;

    if (sno_json_parse (token, len, &id, &pos) < 0)
        require (pos <= len && pos <= SNO_TEXT_LEN + 2);
    else if (!sno_is_zero (&id)) /* zero has two tokens: null, and sixteen digits 2 */
        require (sno_json_format (&id, back, sizeof (back)) == (int)len && memcmp (token, back, len) == 0);
}

/* Make ids of a generator, and of another one that starts from the first one's snapshot at the same time. */
static void generate (const struct sno_snapshot *config)
{
    int64_t unix_ns = SNO_EPOCH_NS + config->now % (int64_t)SNO_UNIT_MAX * SNO_UNIT_NS;
    struct sno_snapshot s = *config;
    sno_t last = { { 0 } }, id;

    for (int life = 0; life < 3; life++) {
        struct sno_gen *gen = sno_gen_create (&(struct sno_gen_config){ .start = s });
        if (!gen)
            return;
        for (int i = 0; i < 3; i++) {
            if (sno_gen_reserve (gen, 0, unix_ns, 2, &id, NULL) < 1)
                continue;
            require (sno_compare (&last, &id) < 0);
            last = id;
        }
        sno_gen_snapshot (gen, &s);
        sno_gen_destroy (gen);
    }
}

static void parse_snapshot (const char *json, size_t len)
{
    char text[SNO_SNAPSHOT_TEXT_MAX], again[SNO_SNAPSHOT_TEXT_MAX];
    struct sno_snapshot s, back;
    size_t pos = SIZE_MAX;

    if (sno_snapshot_parse (json, len, &s, &pos) < 0) {
        require ((errno == EINVAL || errno == ERANGE) && pos <= len);
        return;
    }
    int n = sno_snapshot_format (&s, text, sizeof (text));
    require (n == (int)strlen (text) && sno_snapshot_parse (text, (size_t)n, &back, NULL) == 0);
    require (sno_snapshot_format (&back, again, sizeof (again)) == n && strcmp (text, again) == 0);
    generate (&s);
}

int LLVMFuzzerTestOneInput (const unsigned char *data, size_t size)
{
    sno_t id;

    parse ((const char *)data, size);
    parse_json ((const char *)data, size);
    parse_snapshot ((const char *)data, size);
    for (int type = SNO_SQL_NULL; type <= SNO_SQL_OTHER; type++)
        if (sno_from_sql (type, data, size, &id) == 0)
            round_trip (&id);
    if (sno_from_bytes (data, size, &id) == 0)
        round_trip (&id);
    return 0;
}
