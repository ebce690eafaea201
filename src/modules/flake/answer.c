/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* answer.c - writes and splits answers to generate */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "modules/flake/answer.h"

#define TEXT_MAX 17 /* the most bytes of an id's text, with its NUL */
#define FLAXES 64   /* ids that are made at a time */
#define BEGIN "{\"ids\":["
#define END "]}"

int answer_begin (struct answer *a, size_t count)
{
    if (!a->text && !(a->text = malloc (count * (TEXT_MAX + 2) + 16)))
        return -1;
    a->end = stpcpy (a->text, BEGIN);
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
    strcpy (a->end - 1, END);
    return a->text;
}

void answer_clear (struct answer *a)
{
    free (a->text);
    *a = (struct answer){ 0 };
}

/* --- answers of the parent ------------------------------------------------------------------------------ */

/* Skip an id and the comma behind it. Returns NULL if there is no id. */
static const char *skip (const char *at)
{
    size_t len = *at == '"' ? strcspn (at + 1, "\"\\") : 0;

    if (len == 0 || at[1 + len] != '"')
        return NULL;
    at += 2 + len;
    return *at == ',' ? at + 1 : at;
}

bool answer_read (struct answer_ids *ids, const char *text, uint32_t count)
{
    const char *at = text ? text : "";

    if (strncmp (at, BEGIN, strlen (BEGIN)) != 0)
        return false;
    at += strlen (BEGIN);
    *ids = (struct answer_ids){ .text = text, .count = count, .at = at };
    for (uint32_t i = 0; at && i < count; i++)
        at = i == 0 || at[-1] == ',' ? skip (at) : NULL;
    return at && at[-1] == '"' && strcmp (at, END) == 0;
}

char *answer_take (struct answer_ids *ids, uint32_t first, uint32_t n)
{
    const char *begin;
    char *text, *end;

    for (; ids->next < first; ids->next++)
        ids->at = skip (ids->at);
    begin = ids->at;
    for (; ids->next < first + n; ids->next++)
        ids->at = skip (ids->at);
    size_t len = (size_t)(ids->at - begin) - (ids->at[-1] == ',');
    if (!(text = malloc (len + sizeof (BEGIN END))))
        return NULL;
    end = mempcpy (stpcpy (text, BEGIN), begin, len);
    strcpy (end, END);
    return text;
}
