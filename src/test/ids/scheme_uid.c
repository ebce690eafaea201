/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* scheme_uid.c - uids, local and global, for the conformance suite
 *
 * They are written with UID_WRAP, because random bytes may have more than 999,999 seconds. The range of times in
 * nanoseconds ends long before the range of the format.
 */
#include <stdlib.h>

#include "test/ids/scheme.h"
#include "idtree/uid.h"

static const struct uid_codec codec = { .drift = UID_DRIFT_DEFAULT, .flags = UID_WRAP };

static int64_t now_us (void *arg)
{
    struct scheme_clock *clock = arg;
    int64_t ns = atomic_load (&clock->now_ns);
    return ns / 1000 - (ns % 1000 < 0);
}

static void *create (struct scheme_clock *clock)
{
    struct uid_gen_config config = {
        .node = { .fingerprint = 0xdeadbeef },
        .time = { .now_us = now_us, .arg = clock },
    };
    struct uid_gen *gen = uid_gen_create (&config);
    if (!gen)
        abort ();
    return gen;
}

static void destroy (void *gen)
{
    uid_gen_destroy (gen);
}

static int make (void *gen, enum uid_kind kind, uint8_t *id)
{
    struct uid uid;
    uint8_t bytes[UID_GLOBAL_SIZE];

    if (uid_gen_try (gen, kind, &uid, NULL) < 0)
        return -1;
    int n = uid_to_bytes (&uid, &codec, bytes, sizeof (bytes));
    for (int i = 0; i < n; i++)
        id[i] = bytes[i];
    return 0;
}

static int make_local (void *gen, uint8_t *id)
{
    return make (gen, UID_LOCAL, id);
}

static int make_global (void *gen, uint8_t *id)
{
    return make (gen, UID_GLOBAL, id);
}

static void encode (const uint8_t *id, size_t size, char *text)
{
    struct uid uid;
    uid_from_bytes (id, size, &codec, &uid);
    uid_format (&uid, &codec, text, UID_TEXT_MAX);
}

static void encode_local (const uint8_t *id, char *text)
{
    encode (id, UID_LOCAL_SIZE, text);
}

static void encode_global (const uint8_t *id, char *text)
{
    encode (id, UID_GLOBAL_SIZE, text);
}

static int decode (const char *text, size_t len, enum uid_kind kind, uint8_t *id)
{
    struct uid uid;
    uint8_t bytes[UID_GLOBAL_SIZE];

    if (uid_parse (text, len, &codec, &uid, NULL) < 0 || uid.kind != kind)
        return -1;
    int n = uid_to_bytes (&uid, &codec, bytes, sizeof (bytes));
    for (int i = 0; i < n; i++)
        id[i] = bytes[i];
    return 0;
}

static int decode_local (const char *text, size_t len, uint8_t *id)
{
    return decode (text, len, UID_LOCAL, id);
}

static int decode_global (const char *text, size_t len, uint8_t *id)
{
    return decode (text, len, UID_GLOBAL, id);
}

#define COMMON                                                                                                    \
    .step_ns = UID_STEP_US * 1000, .begin_ns = 0, .end_ns = INT64_MAX, .per_step = UID_PER_STEP, .ordered = true, \
    .always_ordered = true, .canonical = true, .create = create, .destroy = destroy

const struct scheme scheme_uid_local = {
    .name = "local uid",
    .size = UID_LOCAL_SIZE,
    .make = make_local,
    .encode = encode_local,
    .decode = decode_local,
    COMMON,
};

const struct scheme scheme_uid_global = {
    .name = "global uid",
    .size = UID_GLOBAL_SIZE,
    .make = make_global,
    .encode = encode_global,
    .decode = decode_global,
    COMMON,
};
