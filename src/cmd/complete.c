/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* complete.c - idtree complete: print the possible completions of a command line, for the shell
 *
 * The arguments are the words after "idtree" up to the cursor; the last one is being typed and may be empty.  Prints
 * each possible completion of this word on a line.  Commands, options and values come from the table of commands, so
 * the shell's part (etc/completion/idtree) never changes.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/base/commands.h"
#include "cmd/candidates.h"

/* The state of the line before the word that is being typed. */
struct typing {
    const struct command *command;
    struct candidates c;
    struct cmd_option pending; /* the word is its argument; without a name: not an argument of an option */
    bool operands_only;        /* after "--" */
    int operands;              /* number of operands before the word */
};

struct search {
    const char *name; /* of 'len' bytes; NULL: find by letter */
    size_t len;
    int letter;
    struct cmd_option found; /* without a name: not found */
};

static void compare_option (const struct cmd_option *o, void *arg)
{
    struct search *s = arg;

    if (s->name ? strlen (o->name) == s->len && !strncmp (o->name, s->name, s->len)
                : (o->letter & 0xff) == s->letter || (o->letter >> 8 != 0 && o->letter >> 8 == s->letter))
        s->found = *o;
}

/* The option that a word is (without a name: none).  Sets '*value' to its argument in the same word (NULL: not there).
 */
static struct cmd_option find_option (const struct command *command, const char *word, const char **value)
{
    struct search s = { 0 };

    if (word[1] == '-') {
        s.name = word + 2;
        s.len = strcspn (s.name, "=");
        *value = s.name[s.len] ? s.name + s.len + 1 : NULL;
    }
    else {
        s.letter = word[1];
        *value = word[2] ? word + 2 : NULL;
    }
    cmd_each_option (command, compare_option, &s);
    return s.found;
}

/* Note the options --uri, --rank and --scheme, which select the broker and the kind of ids. */
static void note (struct typing *t, const struct cmd_option *o, const char *value)
{
    if (!strcmp (o->name, "uri"))
        t->c.cmd->uri = value;
    else if (!strcmp (o->name, "rank"))
        t->c.rank = value;
    else if (!strcmp (o->name, "scheme"))
        t->c.scheme = value;
}

static void read_word (struct typing *t, const char *word)
{
    const char *value;

    if (t->pending.name) {
        note (t, &t->pending, word);
        t->pending.name = NULL;
    }
    else if (!t->operands_only && !strcmp (word, "--"))
        t->operands_only = true;
    else if (!t->operands_only && word[0] == '-' && word[1]) {
        struct cmd_option o = find_option (t->command, word, &value);

        if (o.arg && value)
            note (t, &o, value);
        else if (o.arg)
            t->pending = o;
    }
    else
        t->operands++;
}

static void offer_option (const struct cmd_option *o, void *arg)
{
    struct candidates *c = arg;
    char buf[64];

    if (!o->help)
        return;
    snprintf (buf, sizeof (buf), "--%s", o->name);
    candidates_offer (c, buf);
}

/* Write the name of operand number 'n' in the usage line into 'buf'. */
static const char *operand_at (const char *operands, int n, char *buf, size_t size)
{
    const char *p = operands ? operands : "";
    size_t len = 0;

    for (; *p && n >= 0; p += strspn (p, " "), n--) {
        const char *word = p + strspn (p, "[");

        len = strcspn (word, " ]");
        snprintf (buf, size, "%.*s", (int)len, word);
        p = word + len + strspn (word + len, "]");
        bool repeats = strstr (buf, "...") || !strncmp (p, "...", 3);
        p += strcspn (p, " ");
        if (repeats)
            break;
        if (n > 0)
            *buf = '\0';
    }
    buf[strcspn (buf, ".")] = '\0';
    return buf;
}

/* Offer values of an option in the same word, as in --format=wo. */
static void offer_value (struct typing *t)
{
    const char *value, *typed = t->c.typed;
    struct cmd_option o = find_option (t->command, typed, &value);

    if (!o.arg)
        return;
    t->c.typed = value;
    t->c.before = typed;
    t->c.before_len = (size_t)(value - typed);
    candidates_of (&t->c, o.arg);
}

static void offer (struct typing *t)
{
    const char *typed = t->c.typed;
    char operand[128] = "";

    if (t->pending.name)
        candidates_of (&t->c, t->pending.arg);
    else if (!t->operands_only && !strncmp (typed, "--", 2) && strchr (typed, '='))
        offer_value (t);
    else if (!t->operands_only && *typed == '-')
        cmd_each_option (t->command, offer_option, &t->c);
    else
        candidates_of (&t->c, operand_at (t->command->operands, t->operands, operand, sizeof (operand)));
}

static void offer_words (struct cmd *cmd, const char *group, const char *typed)
{
    struct candidates c = { .cmd = cmd, .typed = typed };
    struct cmd_words w;

    cmd_words (&w, cmd->table, group);
    for (size_t i = 0; i < w.count; i++)
        candidates_offer (&c, w.words[i]);
}

static int run (struct cmd *cmd)
{
    int n = cmd->argc - 2, words; /* argv[0] is "complete", the last one is being typed */
    char **argv = cmd->argv + 1;

    if (n < 0)
        return CMD_OK;
    struct typing t = { .c = { .cmd = cmd, .typed = argv[n] } };
    if (!(t.command = cmd_find (cmd->table, n, argv, &words))) {
        if (n <= 1)
            offer_words (cmd, n > 0 ? argv[0] : NULL, argv[n]);
        return CMD_OK;
    }
    for (int i = words; i < n; i++)
        read_word (&t, argv[i]);
    /* With CMD_RUNS, words behind the first operand belong to another command. */
    if (!(t.command->flags & CMD_VERBATIM) && !(t.command->flags & CMD_RUNS && t.operands > 0))
        offer (&t);
    return CMD_OK;
}

const struct command complete_command = {
    .name = "complete",
    .flags = CMD_VERBATIM | CMD_HIDDEN,
    .summary = "Print possible completions of a command line, for the shell",
    .run = run,
};
