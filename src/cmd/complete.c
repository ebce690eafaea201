/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* complete.c - idtree complete: what may follow, for the shell
 *
 * The arguments are the words after "idtree" up to the cursor; the last one is being typed and
 * may be empty.  Prints each word that it may become, one a line.  As the words come from the
 * table of commands, the shell's part (etc/completion/idtree) never changes.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/base/commands.h"
#include "cmd/id/scheme.h"

static void offer (const char *word, const char *typed)
{
    if (!strncmp (word, typed, strlen (typed)))
        puts (word);
}

static void offer_words (const struct command *const *table, const char *group, const char *typed)
{
    struct cmd_words w;

    cmd_words (&w, table, group);
    for (size_t i = 0; i < w.count; i++)
        offer (w.words[i], typed);
}

static void offer_option (const struct cmd_option *o, void *typed)
{
    char buf[64];

    snprintf (buf, sizeof (buf), "--%s", o->name);
    offer (buf, typed);
}

static void offer_forms (const struct scheme *scheme, const char *typed)
{
    for (int i = 0; scheme->forms[i]; i++)
        offer (scheme->forms[i], typed);
}

/* The scheme that the words name, if any. */
static const struct scheme *scheme_in (int n, char **argv)
{
    for (int i = 0; i + 1 < n; i++)
        if (!strcmp (argv[i], "--scheme") || !strcmp (argv[i], "-s"))
            return scheme_find (argv[i + 1]);
    return NULL;
}

/* What an option's argument may be. */
static void offer_arguments (int n, char **argv, const char *typed)
{
    const char *option = argv[n - 1];
    const struct scheme *scheme = scheme_in (n, argv);

    if (!strcmp (option, "--to") || !strcmp (option, "--form"))
        offer_forms (scheme ? scheme : scheme_at (0), typed);
    else if (!strcmp (option, "--scheme"))
        for (int i = 0; i < SCHEME_COUNT; i++)
            offer (scheme_at (i)->name, typed);
    else if (!strcmp (option, "--kind")) {
        offer ("local", typed);
        offer ("global", typed);
    }
    else if (!strcmp (option, "--urgency")) {
        offer ("hold", typed);
        offer ("default", typed);
        offer ("expedite", typed);
    }
}

static int run (struct cmd *cmd)
{
    int n = cmd->argc - 1, words; /* argv[0] is "complete" */
    char **argv = cmd->argv + 1;
    const struct command *command;

    if (n < 1)
        return CMD_OK;
    char *typed = argv[n - 1];
    if ((command = cmd_find (cmd->table, n - 1, argv, &words))) {
        if (*typed == '-')
            cmd_each_option (command, offer_option, typed);
        else
            offer_arguments (n - 1, argv, typed);
    }
    else if (n <= 2)
        offer_words (cmd->table, n > 1 ? argv[0] : NULL, typed);
    return CMD_OK;
}

const struct command complete_command = {
    .name = "complete",
    .flags = CMD_VERBATIM | CMD_HIDDEN,
    .summary = "Print what may follow, for the completion of the shell",
    .run = run,
};
