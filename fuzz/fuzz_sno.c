/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_sno.c - any text, JSON token and snapshot is read or refused at a place, and what is read
 * is written back; the vector forms of the text agree with the plain one; a generator made from
 * any snapshot makes no id twice
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsno/sno_text.h"

int LLVMFuzzerTestOneInput (const unsigned char *data, size_t size);

static void require (int good)
{
    if (!good)
        abort ();
}

static void round_trip (const sno_t *id)
{
    struct sno_fields fields = sno_split (id);
    char text[SNO_TEXT_SIZE + 1], json[SNO_JSON_MAX];
    sno_t back;

    require (sno_join (&fields, &back) == 0 && sno_compare (id, &back) == 0);
    sno_encode (id, text);
    require (sno_decode (text, strlen (text), &back, NULL) == 0 && sno_compare (id, &back) == 0);
    require (sno_from_json (json, sno_to_json (id, json), &back, NULL) == 0 && sno_compare (id, &back) == 0);
}

static void parse (const char *text, size_t len)
{
    const sno_t untouched = { { 1, 2, 3 } };
    char back[SNO_TEXT_SIZE + 1];

    for (int path = 0; path < SNO_PATH_COUNT; path++) {
        sno_t id = untouched;
        size_t pos = SIZE_MAX;
        if (!sno_path_works (path))
            continue;
        if (sno_path_decode (path, text, len, &id, &pos) == 0) {
            sno_path_encode (path, &id, back);
            require (len == SNO_TEXT_SIZE && memcmp (text, back, len) == 0);
        }
        else {
            require (errno == (len == SNO_TEXT_SIZE ? EINVAL : EMSGSIZE));
            require (pos <= SNO_TEXT_SIZE && pos <= len && sno_compare (&id, &untouched) == 0);
        }
    }
}

static void parse_json (const char *token, size_t len)
{
    char back[SNO_JSON_MAX];
    sno_t id;
    size_t pos = SIZE_MAX;

    if (sno_from_json (token, len, &id, &pos) < 0)
        require (pos <= len && pos <= SNO_TEXT_SIZE + 2);
    else if (!sno_is_zero (&id)) /* which has two tokens, null and sixteen 2 */
        require (sno_to_json (&id, back) == len && memcmp (token, back, len) == 0);
}

/* Ids of a generator that restarts from its snapshot, at one time. */
static void generate (const struct sno_snapshot *config)
{
    int64_t unix_ns = SNO_EPOCH_NS + config->now % (int64_t)SNO_UNIT_MAX * SNO_UNIT_NS;
    struct sno_snapshot s = *config;
    sno_t last = { { 0 } }, id;

    for (int life = 0; life < 3; life++) {
        struct sno_gen *gen = sno_gen_create (&s, NULL);
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
    char text[SNO_SNAPSHOT_JSON_MAX], again[SNO_SNAPSHOT_JSON_MAX];
    struct sno_snapshot s, back;
    size_t pos = SIZE_MAX;

    if (sno_snapshot_from_json (json, len, &s, &pos) < 0) {
        require ((errno == EINVAL || errno == ERANGE) && pos <= len);
        return;
    }
    size_t n = sno_snapshot_to_json (&s, text);
    require (n == strlen (text) && sno_snapshot_from_json (text, n, &back, NULL) == 0);
    require (sno_snapshot_to_json (&back, again) == n && strcmp (text, again) == 0);
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
