/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* filter.c - idtree id convert, sort: filters of lines with ids
 *
 * convert: each line with an id gives one line of output, in order.  A line without an id gives no output, but a
 * warning with its number; the lines after it are converted nevertheless.
 *
 * sort: lines are sorted by their ids, and so by time; the lines are not changed.  All ids must be of the same scheme:
 * the given scheme, or the scheme of the first line.  Lines with equal ids keep their order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/out.h"
#include "cmd/id/text.h"

#define CHUNK (256 * 1024)        /* bytes of a write */
#define LINES_TOTAL_MAX 100000000 /* most lines in memory; each needs 24 bytes and its text */

/* --- convert --------------------------------------------------------------------------------- */

struct converter {
    struct idtext_reader reader;
    const char *form;
    int number[SCHEME_COUNT]; /* number of the wanted form in each scheme; -1: the scheme does not have it */
};

static int form_in (const struct converter *f, const struct scheme *scheme)
{
    return f->number[scheme - schemes];
}

static void warn_unconverted (struct converter *f, uint64_t line, const char *s, size_t len,
                              const struct candidate *candidate, int n, int errnum)
{
    char what[96];

    if (n != 1) {
        idtext_warn (&f->reader, line, s, len, candidate, n, errnum);
        return;
    }
    snprintf (what, sizeof (what), "is of %s, which has no form %s", candidate->scheme->name, f->form);
    idtext_warn_of (&f->reader, line, s, len, what);
}

/* Remove the candidates whose scheme does not have the form.  Returns how many are left. */
static int drop_formless (const struct converter *f, struct candidate *candidate, int n)
{
    int kept = 0;

    for (int i = 0; n > 1 && i < n; i++)
        if (form_in (f, candidate[i].scheme) >= 0)
            candidate[kept++] = candidate[i];
    return kept > 0 ? kept : n;
}

static void convert_cb (void *arg, uint64_t line, const char *s, size_t len)
{
    struct converter *f = arg;
    struct candidate candidate[SCHEME_COUNT];
    char text[SCHEME_TEXT_MAX];
    int n = idtext_read (&f->reader, s, len, candidate);
    int errnum = errno;

    n = drop_formless (f, candidate, n);
    if (n != 1 || form_in (f, candidate->scheme) < 0) {
        warn_unconverted (f, line, s, len, candidate, n, errnum);
        return;
    }
    int size = candidate->scheme->write (&candidate->id, form_in (f, candidate->scheme), text);
    if (f->reader.cmd->json) {
        out_print ("{\"%s\":\"%s\"}\n", candidate->scheme->forms[form_in (f, candidate->scheme)], text);
        return;
    }
    text[size] = '\n';
    fwrite_unlocked (text, 1, size + 1, stdout);
}

/* Find the form in all schemes, or in the given scheme.  Ends the program if none of them has it. */
static void find_form (struct converter *f)
{
    const struct cmd *cmd = f->reader.cmd;
    int having = 0;

    if (!f->form)
        cmd_usage (cmd, "--format FORM is missing");
    for (int i = 0; i < SCHEME_COUNT; i++) {
        f->number[i] = scheme_form (&schemes[i], f->form);
        having += f->number[i] >= 0;
    }
    if (f->reader.scheme)
        idtext_form (cmd, f->reader.scheme, f->form);
    else if (having == 0)
        idtext_no_such (cmd, "form", f->form, schemes[0].forms);
}

static int run_convert (struct cmd *cmd)
{
    struct converter filter = { .reader = { .cmd = cmd, .warnings_max = IDTEXT_WARNINGS_MAX } };

    cmd_options (cmd, &filter);
    find_form (&filter);
    setvbuf (stdout, NULL, _IOFBF, CHUNK);
    idtext_each (&filter.reader, convert_cb, &filter);
    return idtext_end (&filter.reader);
}

static const struct cmd_option convert_options[] = {
    { 'F', "format", "FORM", "fluid: dec, hex, dothex, f58, ƒ58, words, emoji; others: text, hex", cmd_take_text,
      offsetof (struct converter, form) },
    { 't', "to", "FORM", NULL, cmd_take_text, offsetof (struct converter, form) },
    { CMD_LETTERS (0, 's'), "scheme", "SCHEME", "fluid, flax, sno or uid (default: the only one that fits the id)",
      idtext_take_scheme, offsetof (struct converter, reader.scheme) },
    CMD_OPTIONS_END,
};

const struct command id_convert_command = {
    .name = "id convert",
    .operands = "ID...|-",
    .summary = "Convert ids of any form to one form; - reads them from stdin, one a line",
    .details = "A line that is not an id is left out, with a warning on stderr; the exit status is then 1.",
    .example = "idtree id convert --format words - <ids >names",
    .json = "one object a line",
    .options = convert_options,
    .run = run_convert,
};

/* --- sort ------------------------------------------------------------------------------------ */

struct sort_entry {
    struct ident id;
    uint8_t len_high; /* length of the text, at most LINES_MAX: the bits above the lowest 8 */
    uint8_t len_low;
    uint8_t unused;
    uint64_t text; /* where the line's text begins in 'texts' */
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

/* Compare by id, then by the order in the input. */
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
    /* The newline behind the text takes one more byte, so even empty texts begin at different places. */
    sort->texts = grow (sort, sort->texts, &sort->size, sort->used + len + 1, 1);
    memcpy (sort->texts + sort->used, s, len);
    sort->texts[sort->used + len] = '\n';
    sort->entries[sort->count++] = (struct sort_entry){
        .id = *id, .len_high = len >> 8, .len_low = len & 255, .text = sort->used
    };
    sort->used += len + 1;
}

static void sort_cb (void *arg, uint64_t line, const char *s, size_t len)
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

static void print_sorted (const struct sort *sort)
{
    for (size_t i = 0; i < sort->count; i++) {
        const struct sort_entry *e = &sort->entries[i];

        if (!sort->unique || i == 0 || ident_compare (&e->id, &e[-1].id) != 0)
            fwrite_unlocked (sort->texts + e->text, 1, text_len (e) + 1, stdout);
    }
}

static int run_sort (struct cmd *cmd)
{
    struct sort sort = { .reader = { .cmd = cmd, .warnings_max = IDTEXT_WARNINGS_MAX } };

    cmd_options (cmd, &sort);
    setvbuf (stdout, NULL, _IOFBF, CHUNK);
    idtext_each (&sort.reader, sort_cb, &sort);
    if (sort.count > 1)
        qsort (sort.entries, sort.count, sizeof (sort.entries[0]), compare);
    print_sorted (&sort);
    free (sort.entries);
    free (sort.texts);
    return idtext_end (&sort.reader);
}

static const struct cmd_option sort_options[] = {
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
    .options = sort_options,
    .run = run_sort,
};
