/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* convert.c - idtree id convert: convert ids from any form to one form, as a filter
 *
 * Each line with an id gives one line of output, in order.  A line without an id gives no output and a warning with its
 * number; the following lines are converted nevertheless.
 */
#include <errno.h>
#include <stdio.h>

#include "cmd/base/cmd.h"
#include "cmd/base/out.h"
#include "cmd/id/text.h"

#define CHUNK (256 * 1024) /* bytes of a write */

struct filter {
    struct idtext_reader reader;
    const char *form;
    int number[SCHEME_COUNT]; /* number of the form in each scheme; -1: the scheme lacks it */
};

static int form_in (const struct filter *f, const struct scheme *scheme)
{
    return f->number[scheme - scheme_at (0)];
}

static void warn (struct filter *f, uint64_t line, const char *s, size_t len, const struct candidate *candidate, int n,
                  int errnum)
{
    char what[96];

    if (n != 1) {
        idtext_warn (&f->reader, line, s, len, candidate, n, errnum);
        return;
    }
    snprintf (what, sizeof (what), "is of %s, which has no form %s", candidate->scheme->name, f->form);
    idtext_warn_of (&f->reader, line, s, len, what);
}

/* Drop the candidates whose scheme lacks the form. */
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
    if (f->reader.cmd->json) {
        out_print ("{\"%s\":\"%s\"}\n", candidate->scheme->forms[form_in (f, candidate->scheme)], text);
        return;
    }
    text[size] = '\n';
    fwrite_unlocked (text, 1, size + 1, stdout);
}

/* Find the form in all schemes, or in the given one; ends the program if no scheme has it. */
static void find_form (struct filter *f)
{
    const struct cmd *cmd = f->reader.cmd;
    int schemes = 0;

    if (!f->form)
        cmd_usage (cmd, "--format FORM is missing");
    for (int i = 0; i < SCHEME_COUNT; i++) {
        f->number[i] = scheme_form (scheme_at (i), f->form);
        schemes += f->number[i] >= 0;
    }
    if (f->reader.scheme)
        idtext_form (cmd, f->reader.scheme, f->form);
    else if (schemes == 0)
        idtext_no_such (cmd, "form", f->form, scheme_at (0)->forms);
}

static int run (struct cmd *cmd)
{
    struct filter filter = { .reader = { .cmd = cmd, .warnings_max = IDTEXT_WARNINGS_MAX } };

    cmd_options (cmd, &filter);
    find_form (&filter);
    setvbuf (stdout, NULL, _IOFBF, CHUNK);
    idtext_each (&filter.reader, convert_cb, &filter);
    return idtext_end (&filter.reader);
}

static const struct cmd_option options[] = {
    { 'F', "format", "FORM", "fluid: dec, hex, dothex, f58, ƒ58, words, emoji; others: text, hex", cmd_take_text,
      offsetof (struct filter, form) },
    { 't', "to", "FORM", NULL, cmd_take_text, offsetof (struct filter, form) },
    { CMD_LETTERS (0, 's'), "scheme", "SCHEME", "fluid, flax, sno or uid (default: the only one that fits the id)",
      idtext_take_scheme, offsetof (struct filter, reader.scheme) },
    CMD_OPTIONS_END,
};

const struct command id_convert_command = {
    .name = "id convert",
    .operands = "ID...|-",
    .summary = "Convert ids of any form to one form; - reads them from stdin, one a line",
    .details = "A line that is not an id is left out, with a warning on stderr; the exit status is then 1.",
    .example = "idtree id convert --format words - <ids >names",
    .json = "one object a line",
    .options = options,
    .run = run,
};
