/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sort.c - idtree id sort: sort lines by their ids, and so by time
 *
 * The lines are not changed.  All ids are of the same scheme: the given one, or the scheme of the first line.  Equal
 * ids keep the order of the input.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/cmd.h"
#include "cmd/id/text.h"

#define CHUNK (256 * 1024)        /* bytes of a write */
#define LINES_TOTAL_MAX 100000000 /* lines in memory: 24 bytes each, and their text */

struct sort_entry {
    struct ident id;
    uint8_t len_high; /* of the text: its length is at most LINES_MAX, 11 bits */
    uint8_t len_low;
    uint8_t unused;
    uint64_t text; /* where it begins in 'texts' */
};

struct sort {
    struct idtext_reader reader;
    struct sort_entry *entries;
    size_t count, room;
    char *texts;
    size_t used, size;
    bool unique;
};

static size_t text_len (const struct sort_entry *e)
{
    return (size_t)e->len_high << 8 | e->len_low;
}

/* Compare by id, then by the order of the input. */
static int compare (const void *a, const void *b)
{
    const struct sort_entry *x = a, *y = b;
    int order = ident_compare (&x->id, &y->id);

    return order != 0 ? order : x->text < y->text ? -1 : 1;
}

static void *grow (struct sort *sort, void *p, size_t *room, size_t need, size_t size)
{
    if (need <= *room)
        return p;
    *room = need > 2 * *room ? need + 1024 : 2 * *room;
    if (!(p = realloc (p, *room * size)))
        cmd_die (sort->reader.cmd, "out of memory after %zu lines: sort in pieces, and merge them", sort->count);
    return p;
}

static void add (struct sort *sort, const struct ident *id, const char *s, size_t len)
{
    if (sort->count == LINES_TOTAL_MAX)
        cmd_die (sort->reader.cmd, "more than %d lines: sort in pieces, and merge them", LINES_TOTAL_MAX);
    sort->entries = grow (sort, sort->entries, &sort->room, sort->count + 1, sizeof (sort->entries[0]));
    /* One byte more than the text, so that each text begins at another place. */
    sort->texts = grow (sort, sort->texts, &sort->size, sort->used + len + 1, 1);
    memcpy (sort->texts + sort->used, s, len);
    sort->texts[sort->used + len] = '\n';
    sort->entries[sort->count++] = (struct sort_entry){
        .id = *id, .len_high = len >> 8, .len_low = len & 255, .text = sort->used
    };
    sort->used += len + 1;
}

static void take_cb (void *arg, uint64_t line, const char *s, size_t len)
{
    struct sort *sort = arg;
    struct candidate candidate[SCHEME_COUNT];
    int n = idtext_read (&sort->reader, s, len, candidate);

    if (n > 1) {
        idtext_warn (&sort->reader, line, s, len, candidate, n, 0);
        cmd_die (sort->reader.cmd, "nothing was sorted");
    }
    if (n == 1) {
        sort->reader.scheme = candidate->scheme;
        add (sort, &candidate->id, s, len);
    }
    else
        idtext_warn (&sort->reader, line, s, len, NULL, 0, errno);
}

static void print (const struct sort *sort)
{
    for (size_t i = 0; i < sort->count; i++) {
        const struct sort_entry *e = &sort->entries[i];

        if (!sort->unique || i == 0 || ident_compare (&e->id, &e[-1].id) != 0)
            fwrite_unlocked (sort->texts + e->text, 1, text_len (e) + 1, stdout);
    }
}

static int run (struct cmd *cmd)
{
    struct sort sort = { .reader = { .cmd = cmd, .warnings_max = IDTEXT_WARNINGS_MAX } };

    cmd_options (cmd, &sort);
    setvbuf (stdout, NULL, _IOFBF, CHUNK);
    idtext_each (&sort.reader, take_cb, &sort);
    if (sort.count > 1)
        qsort (sort.entries, sort.count, sizeof (sort.entries[0]), compare);
    print (&sort);
    free (sort.entries);
    free (sort.texts);
    return idtext_end (&sort.reader);
}

static const struct cmd_option options[] = {
    { CMD_LETTERS (0, 's'), "scheme", "SCHEME", "fluid, flax, sno or uid (default: the scheme of the first line)",
      idtext_take_scheme, offsetof (struct sort, reader.scheme) },
    { 'u', "unique", NULL, "print only the first of equal ids, in any forms", cmd_take_flag,
      offsetof (struct sort, unique) },
    CMD_OPTIONS_END,
};

const struct command id_sort_command = {
    .name = "id sort",
    .operands = "ID...|-",
    .summary = "Sort lines by their ids, and so by time; - reads them from stdin, one a line",
    .details = "Lines are not changed, forms may differ.  All ids must be of one scheme.  Up to 100 million\nlines "
               "are kept in memory, with 24 bytes each.  A line that is not an id is left out, with a\nwarning on "
               "stderr; the exit status is then 1.",
    .example = "idtree id sort --scheme sno - <ids",
    .options = options,
    .run = run,
};
