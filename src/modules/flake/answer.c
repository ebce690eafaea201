/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* answer.c - what generate answers */
#include <stdlib.h>
#include <string.h>

#include "modules/flake/answer.h"

#define TEXT_MAX 17 /* bytes of any text, with its NUL */
#define FLAXES 64   /* made at a time */

int answer_begin (struct answer *a, size_t count)
{
    if (!a->text && !(a->text = malloc (count * (TEXT_MAX + 2) + 16)))
        return -1;
    a->end = stpcpy (a->text, "{\"ids\":[");
    return 0;
}

static void add (struct answer *a, const char *text)
{
    *a->end++ = '"';
    a->end = stpcpy (a->end, text);
    a->end = stpcpy (a->end, "\",");
}

void answer_add_snos (struct answer *a, const struct flake_run *run)
{
    char text[TEXT_MAX];
    sno_t id = run->first.sno;

    for (uint32_t i = 0; i < run->n; i++) {
        sno_format (&id, text, sizeof (text));
        add (a, text);
        sno_next (&id);
    }
}

void answer_add_uids (struct answer *a, const struct flake_run *run, int drift)
{
    const struct uid_codec codec = { .drift = drift };
    struct uid id = run->first.uid;
    char text[TEXT_MAX];

    for (uint32_t i = 0; i < run->n; i++, id.sequence++) {
        uid_format (&id, &codec, text, sizeof (text));
        add (a, text);
    }
}

int answer_add_flaxes (struct answer *a, struct flax_gen *gen, int64_t unix_ms, uint32_t n)
{
    flax_t ids[FLAXES];
    char text[TEXT_MAX];

    while (n > 0) {
        uint32_t some = n < FLAXES ? n : FLAXES;

        if (flax_gen_reserve (gen, unix_ms, some, ids) < 0)
            return -1;
        for (uint32_t i = 0; i < some; i++) {
            flax_format (&ids[i], text, sizeof (text));
            add (a, text);
        }
        n -= some;
    }
    return 0;
}

const char *answer_end (struct answer *a)
{
    strcpy (a->end - 1, "]}");
    return a->text;
}

void answer_clear (struct answer *a)
{
    free (a->text);
    *a = (struct answer){ 0 };
}
