/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_uid.c - each text and byte string is an error, or an id that is the same when it is written again, for every
 * drift and release; vector clocks with any entries keep their laws
 *
 * The first byte selects the format. The rest is the data to read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "idtree/uid.h"

int LLVMFuzzerTestOneInput (const unsigned char *data, size_t size);

static void require (int good)
{
    if (!good)
        abort ();
}

/* Check that writing an id gives the text that was read. Releases accept different texts, so only texts that the
 * current form accepts are compared.
 */
static void written_back (const struct uid *id, const struct uid_codec *codec, const char *text, size_t len)
{
    struct uid_codec wrap = *codec;
    char back[UID_TEXT_MAX];

    wrap.flags = UID_WRAP;
    if (codec->version != UID_V135)
        return;
    require (uid_format (id, &wrap, back, sizeof (back)) == (int)len);
    if (!(codec->flags & UID_LENIENT))
        require (memcmp (text, back, len) == 0);
}

static void parse (const char *text, size_t len, const struct uid_codec *codec)
{
    const struct uid untouched = { .a = 77 };
    struct uid id = untouched;
    size_t pos = SIZE_MAX;

    if (uid_parse (text, len, codec, &id, &pos) == 0)
        written_back (&id, codec, text, len);
    else {
        require (errno == EINVAL || errno == EMSGSIZE || errno == ENOTSUP);
        require (pos <= len && uid_compare (&id, &untouched) == 0);
    }
}

static void parse_bytes (const unsigned char *bytes, size_t len, const struct uid_codec *codec)
{
    struct uid_codec wrap = *codec;
    uint8_t back[UID_GLOBAL_SIZE];
    struct uid id, local;

    if (uid_from_bytes (bytes, len, codec, &id) < 0)
        return;
    wrap.flags = UID_WRAP;
    if (codec->version == UID_V135)
        require (uid_to_bytes (&id, &wrap, back, sizeof (back)) == (int)len && memcmp (bytes, back, len) == 0);
    uid_unix_ms (&id);
    require (uid_distance (&id, &id, &local) == 0 && !local.a && !local.b && !local.c && !local.sequence);
}

static void any_bytes (const unsigned char *data, size_t size)
{
    char *text = malloc ((8 * size + 5) / 6 + 1);
    unsigned char *back = malloc (size + 1);

    if (text && back) {
        size_t room = (8 * size + 5) / 6 + 1;
        ssize_t len = uid_base64_format (data, size, text, room);
        require (len == (ssize_t)room - 1 && uid_base64_parse (text, (size_t)len, back, size, NULL) == (ssize_t)size);
        require (memcmp (back, data, size) == 0);
        if (uid_base64_parse ((const char *)data, size, back, size, NULL) < 0)
            require (errno == EINVAL);
    }
    free (text);
    free (back);
    uid_fingerprint ((const char *)data, size);
}

#define ENTRIES 16

static void clocks (const unsigned char *data, size_t size)
{
    static const char *const names[] = { "a@h", "b@h", NULL, NULL };
    struct uid clock[2][ENTRIES], out[2 * ENTRIES];
    size_t n[2] = { 0, 0 };

    for (size_t i = 0; i + 1 < size && i < ENTRIES; i += 2) {
        struct uid *entry = &clock[data[i] >> 7][n[data[i] >> 7]++];
        *entry = (struct uid){ .kind = UID_GLOBAL, .b = data[i + 1] >> 4, .sequence = data[i + 1] & 15 };
        entry->node.name = names[data[i] & 3];
        entry->node.fingerprint = data[i] & 7;
    }
    int joined = uid_vclock_join (clock[0], n[0], clock[1], n[1], out);
    require (joined >= 0 && (size_t)joined <= n[0] + n[1]);
    require (uid_vclock_descends (clock[0], n[0], clock[0], 0));
    int diff = uid_vclock_diff (clock[0], n[0], clock[1], n[1], out);
    require (diff >= 0 && (diff == 0) == uid_vclock_descends (clock[0], n[0], clock[1], n[1]));
}

int LLVMFuzzerTestOneInput (const unsigned char *data, size_t size)
{
    const struct uid_node self = uid_node_named ("uid@127.0.0.1");

    if (size == 0)
        return 0;
    struct uid_codec codec = {
        .drift = data[0] & 15,
        .version = data[0] >> 4 & 3,
        .self = data[0] & 64 ? &self : NULL,
        .flags = data[0] & 128 ? UID_LENIENT : 0,
    };
    data++;
    size--;
    parse ((const char *)data, size, &codec);
    parse_bytes (data, size, &codec);
    any_bytes (data, size);
    clocks (data, size);
    return 0;
}
