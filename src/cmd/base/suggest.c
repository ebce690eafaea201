/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* suggest.c - guess the intended word for a mistyped one
 *
 * The distance of two words is their optimal string alignment distance.  Three rows of the usual table are enough,
 * because a swap looks back two rows.
 */
#include <stdint.h>
#include <string.h>

#include "cmd/base/suggest.h"
#include "libutil/minmax.h"

static unsigned min3 (unsigned a, unsigned b, unsigned c)
{
    return (unsigned)min_u64 (min_u64 (a, b), c);
}

unsigned suggest_distance (const char *a, const char *b)
{
    unsigned rows[3][SUGGEST_WORD_MAX + 1];
    size_t la = strlen (a), lb = strlen (b);

    if (la > SUGGEST_WORD_MAX || lb > SUGGEST_WORD_MAX)
        return UINT32_MAX;
    for (size_t j = 0; j <= lb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= la; i++) {
        unsigned *row = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            row[j] = min3 (up[j] + 1, row[j - 1] + 1, up[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && up2[j - 2] + 1 < row[j])
                row[j] = up2[j - 2] + 1;
        }
    }
    return rows[la % 3][lb];
}

const char *suggest_synonym (const char *word, const char *const *words, size_t n)
{
    static const char *const synonyms[][2] = {
        { "tree", "status" },   { "log", "dmesg" },     { "logs", "dmesg" }, { "stop", "shutdown" },
        { "halt", "shutdown" }, { "quit", "shutdown" }, { "create", "new" }, { "add", "new" },
        { "make", "new" },      { "rm", "delete" },     { "del", "delete" }, { "remove", "delete" },
        { "unload", "remove" }, { "delete", "remove" }, { "rm", "remove" },  { "ls", "list" },
        { "ps", "list" },       { "mv", "rename" },     { "get", "show" },   { "cat", "show" },
        { "subscribe", "sub" }, { "publish", "pub" },   { "run", "start" },  { "convert", "id" },
        { "rm", "ack" },        { "delete", "ack" },    { "remove", "ack" }, { "create", "submit" },
        { "new", "submit" },    { "run", "submit" },    { "gen", "new" },    { "generate", "new" },
        { "next", "new" },      { "decode", "show" },   { "parse", "show" }, { "prometheus", "metrics" },
    };

    for (size_t s = 0; s < sizeof (synonyms) / sizeof (synonyms[0]); s++)
        for (size_t i = 0; i < n && strcmp (word, synonyms[s][0]) == 0; i++)
            if (strcmp (words[i], synonyms[s][1]) == 0)
                return words[i];
    return NULL;
}

const char *suggest (const char *word, const char *const *words, size_t n)
{
    unsigned best = strlen (word) / 3 + (strlen (word) > 3);
    const char *found = NULL;

    for (size_t i = 0; i < n; i++) {
        unsigned distance = suggest_distance (word, words[i]);

        if (distance < best || (distance == best && !found)) {
            best = distance;
            found = words[i];
        }
    }
    return found;
}
