/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* text.c - ids on the command line and on the terminal */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/id/text.h"

#define NAMES_MAX 128

/* Append 'name' to a list in a sentence: "a", "a, b". */
static void add_name (char names[NAMES_MAX], const char *between, const char *name)
{
    size_t n = strlen (names);

    snprintf (names + n, NAMES_MAX - n, "%s%s", n > 0 ? between : "", name);
}

enum fluid_form idtext_form (const struct cmd *cmd, const char *s)
{
    char names[NAMES_MAX] = "", quoted[CMD_QUOTE_MAX];
    enum fluid_form form;

    if (fluid_form_find (s, &form) == 0)
        return form;
    for (int i = 0; i < FLUID_FORM_COUNT; i++)
        add_name (names, ", ", fluid_form_name (i));
    cmd_usage (cmd, "'%s' is no form; there are %s", cmd_quote (s, strlen (s), quoted), names);
}

const char *idtext (fluid_t id, enum fluid_form form, char buf[FLUID_TEXT_MAX])
{
    int n = fluid_format (id, form, buf, FLUID_TEXT_MAX);

    assert (n > 0);
    (void)n;
    return buf;
}

const struct scheme *idtext_scheme (const struct cmd *cmd, const char *s)
{
    char names[NAMES_MAX] = "", quoted[CMD_QUOTE_MAX];
    const struct scheme *scheme = scheme_find (s);

    if (scheme)
        return scheme;
    for (int i = 0; i < SCHEME_COUNT; i++)
        add_name (names, ", ", scheme_at (i)->name);
    cmd_usage (cmd, "'%s' is no scheme; there are %s", cmd_quote (s, strlen (s), quoted), names);
}

int idtext_form_of (const struct cmd *cmd, const struct scheme *scheme, const char *s)
{
    char names[NAMES_MAX] = "", quoted[CMD_QUOTE_MAX];
    int form = scheme_form (scheme, s);

    if (form >= 0)
        return form;
    for (int i = 0; scheme->forms[i]; i++)
        add_name (names, ", ", scheme->forms[i]);
    cmd_usage (cmd, "'%s' is no form of %s; there are %s", cmd_quote (s, strlen (s), quoted), scheme->name, names);
}

int idtext_drift (const struct cmd *cmd, const char *s)
{
    return cmd_number (cmd, "drift", s, UID_DRIFT_MIN, UID_DRIFT_MAX);
}

enum uid_kind idtext_kind (const struct cmd *cmd, const char *s)
{
    char quoted[CMD_QUOTE_MAX];

    if (!strcmp (s, "local"))
        return UID_LOCAL;
    if (!strcmp (s, "global"))
        return UID_GLOBAL;
    cmd_usage (cmd, "'%s' is no kind of uid; there are local, global", cmd_quote (s, strlen (s), quoted));
}

void idtext_reader_init (struct idtext_reader *r, const struct scheme *scheme)
{
    r->scheme = scheme;
    r->now_ms = time (NULL) * INT64_C (1000);
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

void idtext_each (const struct cmd *cmd, lines_f take, void *arg)
{
    bool from_stdin = cmd->argc == 1 && !strcmp (cmd->argv[0], "-");
    struct lines l;

    lines_init (&l, take, arg);
    if (from_stdin && lines_read (&l, STDIN_FILENO) < 0)
        cmd_die (cmd, "cannot read stdin: %s", strerror (errno));
    for (int i = 0; !from_stdin && i < cmd->argc; i++)
        take (arg, 0, cmd->argv[i], strlen (cmd->argv[i]));
}

void idtext_warn_of (const struct cmd *cmd, uint64_t line, const char *s, size_t len, const char *what)
{
    char where[32] = "", quoted[CMD_QUOTE_MAX];

    if (line > 0)
        snprintf (where, sizeof (where), "line %" PRIu64 ": ", line);
    cmd_warn (cmd, "%s'%s' %s", where, cmd_quote (s, len > LINES_MAX ? LINES_MAX : len, quoted), what);
}

void idtext_warn (const struct cmd *cmd, uint64_t line, const char *s, size_t len, const struct candidate *candidate,
                  int n, int errnum)
{
    char names[NAMES_MAX] = "", what[NAMES_MAX + 64];

    for (int i = 0; i < n; i++)
        add_name (names, " or ", candidate[i].scheme->name);
    snprintf (what, sizeof (what), "may be %s: say which with --scheme", names);
    if (n == 0)
        snprintf (what, sizeof (what), "%s", errnum == ERANGE ? "does not fit in 64 bits" : "is no id");
    idtext_warn_of (cmd, line, s, len, what);
}
