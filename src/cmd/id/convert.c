/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* convert.c - idtree id convert: ids from one form to another, as a filter
 *
 * Each line that is an id gives one line out, in order.  A line that is none gives no line out, and is told by its
 * number; the lines after it are converted all the same.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/base/commands.h"
#include "cmd/id/text.h"

#define CHUNK (256 * 1024) /* bytes of a write */
#define TOLD_MAX 10        /* lines told one by one; the others are counted */

struct filter {
    struct cmd *cmd;
    struct idtext_reader reader;
    const char *form;
    int number[SCHEME_COUNT]; /* of the form in each scheme; -1: has none */
    uint64_t bad;
};

static int form_in (const struct filter *f, const struct scheme *scheme)
{
    return f->number[scheme - scheme_at (0)];
}

static void warn (struct filter *f, uint64_t line, const char *s, size_t len, const struct candidate *candidate, int n,
                  int errnum)
{
    char what[96];

    if (++f->bad > TOLD_MAX)
        return;
    snprintf (what, sizeof (what), "is of %s, which has no form %s", n == 1 ? candidate->scheme->name : "", f->form);
    if (n == 1)
        idtext_warn_of (f->cmd, line, s, len, what);
    else
        idtext_warn (f->cmd, line, s, len, candidate, n, errnum);
}

/* Where the text may be of several schemes, those that lack the form are not meant. */
static int drop_formless (const struct filter *f, struct candidate *candidate, int n)
{
    int kept = 0;

    for (int i = 0; n > 1 && i < n; i++)
        if (form_in (f, candidate[i].scheme) >= 0)
            candidate[kept++] = candidate[i];
    return kept > 0 ? kept : n;
}

static void convert_cb (void *arg, uint64_t line, const char *s, size_t len)
{
    struct filter *f = arg;
    struct candidate candidate[SCHEME_COUNT];
    char text[SCHEME_TEXT_MAX];
    int n = idtext_read (&f->reader, s, len, candidate);
    int errnum = errno;

    n = drop_formless (f, candidate, n);
    if (n != 1 || form_in (f, candidate->scheme) < 0) {
        warn (f, line, s, len, candidate, n, errnum);
        return;
    }
    int size = candidate->scheme->write (&candidate->id, form_in (f, candidate->scheme), text);
    text[size] = '\n';
    fwrite_unlocked (text, 1, size + 1, stdout);
}

/* Some scheme has the form, or the one that was given. */
static void find_form (struct filter *f)
{
    int schemes = 0;

    if (!f->form)
        cmd_usage (f->cmd, "it needs --to FORM");
    for (int i = 0; i < SCHEME_COUNT; i++) {
        f->number[i] = scheme_form (scheme_at (i), f->form);
        schemes += f->number[i] >= 0;
    }
    if (f->reader.scheme)
        idtext_form_of (f->cmd, f->reader.scheme, f->form);
    else if (schemes == 0)
        idtext_form (f->cmd, f->form);
}

static int run (struct cmd *cmd)
{
    struct filter filter = { .cmd = cmd };
    const struct scheme *scheme = NULL;
    const char *arg;
    int key;

    while ((key = cmd_option (cmd, &arg)) != -1) {
        if (key == 't')
            filter.form = arg;
        else
            scheme = idtext_scheme (cmd, arg);
    }
    idtext_reader_init (&filter.reader, scheme);
    find_form (&filter);
    setvbuf (stdout, NULL, _IOFBF, CHUNK);
    idtext_each (cmd, convert_cb, &filter);
    cmd_flush (cmd);
    if (filter.bad > TOLD_MAX)
        cmd_warn (cmd, "%" PRIu64 " lines in all are no ids", filter.bad);
    return filter.bad ? CMD_FAILED : CMD_OK;
}

static const struct cmd_option options[] = {
    { 't', "to", "FORM", "fluid: dec, hex, dothex, f58, ƒ58, words, emoji; others: text, hex" },
    { 's', "scheme", "SCHEME", "fluid, flax, sno or uid (default: what an id is certain to be)" },
    CMD_OPTIONS_END,
};

const struct command id_convert_command = {
    .name = "id convert",
    .operands = "ID...|-",
    .min_operands = 1,
    .max_operands = -1,
    .summary = "Convert ids of any form to one form; - reads them from stdin, one a line",
    .details = "A line that is no id is told on stderr and left out; the exit status is then 1.",
    .example = "idtree id convert --to words - <ids >names",
    .options = options,
    .run = run,
};
