/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_flax.c - each text is an id, or an error with a position; an id has one text; splitting and joining give the
 * same id
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "idtree/flax.h"

int LLVMFuzzerTestOneInput (const unsigned char *data, size_t size);

static void require (int good)
{
    if (!good)
        abort ();
}

static void round_trip (const flax_t *id)
{
    struct flax_fields fields = flax_split (id);
    char text[FLAX_TEXT_MAX];
    flax_t back;

    require (flax_join (&fields, &back) == 0 && flax_compare (id, &back) == 0);
    require (flax_format (id, text, sizeof (text)) == (int)strlen (text));
    require (flax_parse (text, strlen (text), &back, NULL) == 0 && flax_compare (id, &back) == 0);
}

static void parse (const char *text, size_t len)
{
    const flax_t untouched = { { 1, 2, 3 } };
    flax_t id = untouched;
    char back[FLAX_TEXT_MAX];
    size_t pos = SIZE_MAX;

    if (flax_parse (text, len, &id, &pos) == 0) {
        flax_format (&id, back, sizeof (back));
        require (len == FLAX_TEXT_LEN && memcmp (text, back, len) == 0);
    }
    else {
        require (errno == (len == FLAX_TEXT_LEN ? EINVAL : EMSGSIZE));
        require (pos <= FLAX_TEXT_LEN && pos <= len && flax_compare (&id, &untouched) == 0);
    }
}

int LLVMFuzzerTestOneInput (const unsigned char *data, size_t size)
{
    double seconds;
    uint64_t ms;
    flax_t id;

    parse ((const char *)data, size);
    if (flax_from_bytes (data, size, &id) == 0)
        round_trip (&id);
    if (size >= sizeof (seconds)) {
        memcpy (&seconds, data, sizeof (seconds));
        require (flax_ms_at_seconds (seconds, &ms) < 0 || ms <= FLAX_MS_MAX);
    }
    return 0;
}
