/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* text.c - ids on the command line and on the terminal */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/id/text.h"

#define NAMES_MAX 128

/* Append 'name' to a list in a message: "a", "a, b". */
static void add_name (char names[NAMES_MAX], const char *between, const char *name)
{
    size_t n = strlen (names);

    snprintf (names + n, NAMES_MAX - n, "%s%s", n > 0 ? between : "", name);
}

void idtext_no_such (const struct cmd *cmd, const char *what, const char *s, const char *const *names)
{
    char list[NAMES_MAX] = "", quoted[CMD_QUOTE_MAX];

    for (int i = 0; names[i]; i++)
        add_name (list, ", ", names[i]);
    cmd_usage (cmd, "'%s' is not a %s; there are %s", cmd_quote (s, strlen (s), quoted), what, list);
}

int idtext_form (const struct cmd *cmd, const struct scheme *scheme, const char *s)
{
    int form = scheme_form (scheme, s);
    char what[32];

    if (form >= 0)
        return form;
    snprintf (what, sizeof (what), "form of %s", scheme->name);
    idtext_no_such (cmd, what, s, scheme->forms);
}

void idtext_add_forms (json_t *o, const struct scheme *scheme, const struct ident *id)
{
    char buf[SCHEME_TEXT_MAX];

    for (int form = 0; scheme->forms[form]; form++) {
        scheme->write (id, form, buf);
        json_object_set_new (o, scheme->forms[form], json_string (buf));
    }
}

void idtext_take_scheme (struct cmd *cmd, const char *arg, void *to)
{
    const struct scheme **scheme = to;
    const char *names[SCHEME_COUNT + 1] = { NULL };

    for (int i = 0; i < SCHEME_COUNT; i++)
        names[i] = schemes[i].name;
    if (!(*scheme = scheme_find (arg)))
        idtext_no_such (cmd, "scheme", arg, names);
}

int idtext_drift (const struct cmd *cmd, const char *s)
{
    return s ? (int)cmd_number (cmd, "drift", s, UID_DRIFT_MIN, UID_DRIFT_MAX) : UID_DRIFT_DEFAULT;
}

enum uid_kind idtext_kind (const struct cmd *cmd, const char *s)
{
    static const char *const names[] = { [UID_LOCAL] = "local", [UID_GLOBAL] = "global", NULL };

    if (!s || !strcmp (s, names[UID_GLOBAL]))
        return UID_GLOBAL;
    if (!strcmp (s, names[UID_LOCAL]))
        return UID_LOCAL;
    idtext_no_such (cmd, "kind of uid", s, names);
}

int idtext_read (const struct idtext_reader *r, const char *s, size_t len, struct candidate candidate[SCHEME_COUNT])
{
    errno = EINVAL;
    if (len > LINES_MAX || strlen (s) != len)
        return 0;
    if (!r->scheme)
        return scheme_guess (s, len, r->now_ms, candidate);
    candidate[0].scheme = r->scheme;
    return r->scheme->read (s, len, &candidate[0].id) == 0;
}

void idtext_each (struct idtext_reader *r, lines_f take, void *arg)
{
    const struct cmd *cmd = r->cmd;
    bool from_stdin = cmd->argc == 1 && !strcmp (cmd->argv[0], "-");
    struct lines l = { .take = take, .arg = arg };

    r->now_ms = time (NULL) * INT64_C (1000);
    if (from_stdin && lines_read (&l, STDIN_FILENO) < 0)
        cmd_die (cmd, "cannot read stdin: %s", strerror (errno));
    for (int i = 0; !from_stdin && i < cmd->argc; i++)
        take (arg, 0, cmd->argv[i], strlen (cmd->argv[i]));
}

void idtext_warn_of (struct idtext_reader *r, uint64_t line, const char *s, size_t len, const char *what)
{
    char where[32] = "", quoted[CMD_QUOTE_MAX];

    if (++r->bad > r->warnings_max)
        return;
    if (line > 0)
        snprintf (where, sizeof (where), "line %" PRIu64 ": ", line);
    cmd_warn (r->cmd, "%s'%s' %s", where, cmd_quote (s, len > LINES_MAX ? LINES_MAX : len, quoted), what);
}

/* Write into 'what' which character of a text is wrong, if the beginning of the text can be a fluid. */
static void explain_fluid (const char *s, size_t len, size_t pos, char *what, size_t size)
{
    char quoted[CMD_QUOTE_MAX];
    size_t bytes = 1, number = 1;

    if (pos >= len) {
        snprintf (what, size, "is not an id: it ends too early");
        return;
    }
    for (size_t i = 0; i < pos; i++)
        number += ((unsigned char)s[i] & 0xc0) != 0x80;
    while (pos + bytes < len && ((unsigned char)s[pos + bytes] & 0xc0) == 0x80)
        bytes++;
    snprintf (what, size, "is not an id: '%s', its character %zu, is not allowed there",
              cmd_quote (s + pos, bytes, quoted), number);
}

/* Write into 'what' why a text is not an id, with a hint if the text looks like a fluid or like the name of a file. */
static void explain (const struct idtext_reader *r, uint64_t line, const char *s, size_t len, char *what, size_t size)
{
    bool marked = *s == 'f' || !strncmp (s, "\u0192", 2) || !strncmp (s, "0x", 2);
    bool fluid = r->scheme ? !strcmp (r->scheme->name, "fluid") : marked;
    size_t pos = 0;
    fluid_t id;

    snprintf (what, size, "is not an id");
    if (len > 0 && len <= LINES_MAX && fluid && fluid_parse (s, len, &id, &pos) < 0 && pos > 0)
        explain_fluid (s, len, pos, what, size);
    else if (line == 0 && r->cmd->argc == 1)
        snprintf (what, size, "is not an id (for ids in a file: idtree %s - <FILE)", r->cmd->command->name);
}

void idtext_warn (struct idtext_reader *r, uint64_t line, const char *s, size_t len, const struct candidate *candidate,
                  int n, int errnum)
{
    char names[NAMES_MAX] = "", what[NAMES_MAX + CMD_QUOTE_MAX];

    for (int i = 0; i < n; i++)
        add_name (names, " or ", candidate[i].scheme->name);
    snprintf (what, sizeof (what), "may be %s: select one with --scheme", names);
    if (n == 0 && errnum == ERANGE)
        snprintf (what, sizeof (what), "does not fit in 64 bits");
    else if (n == 0)
        explain (r, line, s, len, what, sizeof (what));
    idtext_warn_of (r, line, s, len, what);
}

int idtext_end (const struct idtext_reader *r)
{
    if (r->bad > r->warnings_max)
        cmd_warn (r->cmd, "%" PRIu64 " lines in total are not ids", r->bad);
    return r->bad > 0 ? CMD_FAILED : CMD_OK;
}
