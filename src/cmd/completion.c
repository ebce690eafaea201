/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* completion.c - idtree complete: print the possible completions of a command line, for the shell; idtree completion:
 * print the shell's script, for users without our package
 *
 * The arguments of idtree complete are the words after "idtree" up to the cursor.  The user is typing the last word,
 * which may be empty.  The command prints each possible completion of this word on a line.  Commands, options and
 * values come from the table of commands, so the shell's part (etc/completion/idtree) never changes.
 *
 * Usage lines have one name for each kind of value: FORM, ATTRIBUTE, DOCUMENT.  Values that only the instance knows are
 * requested from it, for at most a second.  Without a broker no such values are offered.
 */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/ask.h"
#include "cmd/base/out.h"
#include "cmd/id/scheme.h"
#include "libutil/text.h"

#define ASK_MS 1000. /* longest time that the user waits while typing */
#define RANKS_MAX 256
#define NAME_LEN 64

struct candidates {
    struct cmd *cmd;
    const char *typed;  /* the part of the word that the user has typed */
    const char *before; /* the 'before_len' bytes before the candidate in the same word, such as --format= */
    size_t before_len;
    const char *rank;   /* --rank; NULL: not given */
    const char *scheme; /* --scheme; NULL: not given */
};

/* Print 'word' if it begins with the typed text.  A word with control characters is left out, because a user could not
 * type it as it is shown; a name that another user chose may have such characters.
 */
static void offer_word (const struct candidates *c, const char *word)
{
    if (!strncmp (word, c->typed, strlen (c->typed)) && utf8_span_printable (word, strlen (word)) == strlen (word))
        out_print ("%.*s%s\n", (int)c->before_len, c->before ? c->before : "", word);
}

/* Offer all words of a list in which | separates them. */
static void offer_list (const struct candidates *c, const char *list)
{
    char words[128], *save = NULL;

    snprintf (words, sizeof (words), "%s", list);
    for (char *word = strtok_r (words, "|", &save); word; word = strtok_r (NULL, "|", &save))
        offer_word (c, word);
}

static void offer_forms (const struct candidates *c)
{
    const struct scheme *scheme = c->scheme ? scheme_find (c->scheme) : schemes;

    for (int i = 0; scheme && scheme->forms[i]; i++)
        offer_word (c, scheme->forms[i]);
}

static void offer_schemes (const struct candidates *c)
{
    for (int i = 0; i < SCHEME_COUNT; i++)
        offer_word (c, schemes[i].name);
}

/* Send a request to 'nodeid', and return the answer, a new reference; NULL: no answer within ASK_MS, or an error. */
static json_t *ask_quietly_new (const struct candidates *c, const char *topic, uint32_t nodeid, const char *request)
{
    struct cmd *cmd = c->cmd;
    const char *text;
    json_t *o = NULL;

    if (!cmd->h)
        cmd->h = idt_open_ex (cmd->uri, &(struct idt_open_options){ .flags = IDT_O_NORECONNECT, .timeout_ms = ASK_MS },
                              NULL);
    if (!cmd->h)
        return NULL;
    idt_future_t *f = idt_rpc (cmd->h, topic, request, nodeid, 0);
    if (f && idt_future_wait (f, ASK_MS) == 0 && idt_rpc_get (f, &text) == 0 && text)
        o = json_loads (text, 0, NULL);
    idt_future_destroy (f);
    return o;
}

static uint32_t rank_of (const struct candidates *c)
{
    return c->rank && isdigit ((unsigned char)*c->rank) ? (uint32_t)strtoul (c->rank, NULL, 10) : IDT_NODEID_ANY;
}

/* Offer the strings of an array; with 'member', the strings under this key of the array's objects. */
static void offer_strings (const struct candidates *c, const json_t *array, const char *member)
{
    size_t i;
    json_t *o;

    json_array_foreach ((json_t *)array, i, o) {
        const char *s = json_string_value (member ? json_object_get (o, member) : o);

        if (s)
            offer_word (c, s);
    }
}

/* Send a request, and offer the strings of the array 'key' in the answer; 'member' as in offer_strings (). */
static void offer_answer (const struct candidates *c, const char *topic, uint32_t nodeid, const char *key,
                          const char *member)
{
    json_t *o = ask_quietly_new (c, topic, nodeid, "{}");

    offer_strings (c, json_object_get (o, key), member);
    json_decref (o);
}

static void offer_attributes (const struct candidates *c)
{
    offer_answer (c, "attr.list", rank_of (c), "names", NULL);
}

static void offer_modules (const struct candidates *c)
{
    offer_answer (c, "module.list", rank_of (c), "mods", "name");
}

static void offer_documents (const struct candidates *c)
{
    offer_answer (c, "compressor.list", IDT_NODEID_ANY, "documents", "document");
}

static void offer_services (const struct candidates *c)
{
    json_t *o = ask_quietly_new (c, "module.list", IDT_NODEID_ANY, NULL), *m;
    size_t i;

    json_array_foreach (json_object_get (o, "mods"), i, m)
        offer_strings (c, json_object_get (m, "services"), NULL);
    json_decref (o);
}

/* Return the value of an attribute of the connected broker, for free (); NULL: not known. */
static char *attribute_new (const struct candidates *c, const char *request)
{
    json_t *o = ask_quietly_new (c, "attr.get", IDT_NODEID_ANY, request);
    const char *value = json_string_value (json_object_get (o, "value"));
    char *copy = value ? strdup (value) : NULL;

    json_decref (o);
    return copy;
}

static void offer_ranks (const struct candidates *c)
{
    char *text = attribute_new (c, "{\"name\":\"size\"}"), word[16];
    unsigned long size = text ? strtoul (text, NULL, 10) : 0;

    for (unsigned long rank = 0; rank < size && rank < RANKS_MAX; rank++) {
        snprintf (word, sizeof (word), "%lu", rank);
        offer_word (c, word);
    }
    free (text);
}

static void offer_rank_sets (const struct candidates *c)
{
    offer_word (c, "all");
    offer_ranks (c);
}

/* Offer the ranks at the other ends of the broker's links. */
static void offer_neighbours (const struct candidates *c)
{
    json_t *o = ask_quietly_new (c, "overlay.stats-get", rank_of (c), NULL), *link;
    char word[16];
    size_t i;

    json_array_foreach (json_object_get (o, "links"), i, link) {
        snprintf (word, sizeof (word), "%" JSON_INTEGER_FORMAT, json_integer_value (json_object_get (link, "rank")));
        offer_word (c, word);
    }
    json_decref (o);
}

/* Offer the possible peers of a broker: kinds of peers, modules, ranks. */
static void offer_peers (const struct candidates *c)
{
    offer_list (c, "client|module|broker|child|parent");
    offer_modules (c);
    offer_neighbours (c);
}

/* Offer the names of the modules in a folder, without .so. */
static void offer_files (const struct candidates *c, const char *dir)
{
    DIR *d = opendir (dir);
    struct dirent *entry;
    char word[NAME_LEN];

    while (d && (entry = readdir (d))) {
        size_t len = strlen (entry->d_name);

        if (len <= 3 || len >= sizeof (word) || strcmp (entry->d_name + len - 3, ".so"))
            continue;
        snprintf (word, sizeof (word), "%.*s", (int)(len - 3), entry->d_name);
        offer_word (c, word);
    }
    if (d)
        closedir (d);
}

/* Offer the modules that can be loaded.  The folders of module.path are read here, as if the broker ran on this host.
 */
static void offer_module_files (const struct candidates *c)
{
    char *path = attribute_new (c, "{\"name\":\"module.path\"}"), *save = NULL;

    for (char *dir = path ? strtok_r (path, ":", &save) : NULL; dir; dir = strtok_r (NULL, ":", &save))
        offer_files (c, dir);
    free (path);
}

static const struct {
    const char *name;
    void (*offer) (const struct candidates *c); /* NULL: offer 'words' */
    const char *words;
} kinds[] = {
    { "ATTRIBUTE", offer_attributes, NULL },
    { "DOCUMENT", offer_documents, NULL },
    { "FORM", offer_forms, NULL },
    { "FORMAT", NULL, "openmetrics|prometheus" },
    { "KIND", NULL, "local|global" },
    { "LEVEL", NULL, "emerg|alert|crit|err|warning|notice|info|debug" },
    { "MODULE", offer_modules, NULL },
    { "PATH", offer_module_files, NULL },
    { "PEER", offer_peers, NULL },
    { "R", offer_ranks, NULL },
    { "RANK", offer_ranks, NULL },
    { "RANKS", offer_rank_sets, NULL },
    { "SCHEME", offer_schemes, NULL },
    { "SERVICE", offer_services, NULL },
    { "SIG", NULL, "KILL|TERM|INT|HUP|STOP|CONT|ABRT|SEGV" },
    { "SORT", NULL, "tree|rank|host|status|fluid|lease|ids/s|requests/s" },
    { "STATE", NULL, "full|partial|degraded|lost" },
    { "T", NULL, "kary:|mincrit|binomial|custom:" },
    { "TYPES", NULL, "request|response|event|control" },
    { "U", NULL, "hold|default|expedite" },
    { "WHEN", NULL, "auto|always|never" },
};

/* Offer all values for 'name', a list of alternatives separated by |.  An alternative in lower case is a value itself;
 * others name a kind of value.
 */
static void offer_values (const struct candidates *c, const char *name)
{
    char names[128], *save = NULL;

    snprintf (names, sizeof (names), "%s", name);
    for (char *word = strtok_r (names, "|", &save); word; word = strtok_r (NULL, "|", &save)) {
        if (islower ((unsigned char)*word))
            offer_word (c, word);
        for (size_t i = 0; i < sizeof (kinds) / sizeof (kinds[0]); i++)
            if (!strcmp (kinds[i].name, word) && kinds[i].offer)
                kinds[i].offer (c);
            else if (!strcmp (kinds[i].name, word))
                offer_list (c, kinds[i].words);
    }
}

/* --- the line -------------------------------------------------------------------------------- */

/* The state of the line before the word that is being typed. */
struct typing {
    const struct command *command;
    struct candidates c;
    struct cmd_option pending; /* the option whose argument the user is typing; name NULL: no option */
    bool operands_only;        /* after "--" */
    int operands;              /* number of operands before the word */
};

/* Return the option that a word names (its name is NULL: none).  Sets '*value' to the argument in the same word, or to
 * NULL if the word has no argument.
 */
static struct cmd_option find_option (const struct command *command, const char *word, const char **value)
{
    struct cmd_option all[CMD_OPTIONS_ALL], found = { 0 };
    int n = cmd_all_options (command, all), letter = word[1];
    const char *name = letter == '-' ? word + 2 : NULL;
    size_t len = name ? strcspn (name, "=") : 0;

    for (int i = 0; i < n; i++)
        if (name ? strlen (all[i].name) == len && !strncmp (all[i].name, name, len)
                 : (all[i].letter & 0xff) == letter || (all[i].letter >> 8 != 0 && all[i].letter >> 8 == letter))
            found = all[i];
    if (name)
        *value = name[len] ? name + len + 1 : NULL;
    else
        *value = word[2] ? word + 2 : NULL;
    return found;
}

/* Note the values of --uri, --rank and --scheme, which select the broker and the kind of ids. */
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

static void offer_options (const struct typing *t)
{
    struct cmd_option all[CMD_OPTIONS_ALL];
    int n = cmd_all_options (t->command, all);
    char buf[64];

    for (int i = 0; i < n; i++) {
        snprintf (buf, sizeof (buf), "--%s", all[i].name);
        if (all[i].help)
            offer_word (&t->c, buf);
    }
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

/* Offer values of an option whose argument is in the same word, as in --format=wo. */
static void offer_value (struct typing *t)
{
    const char *value, *typed = t->c.typed;
    struct cmd_option o = find_option (t->command, typed, &value);

    if (!o.arg)
        return;
    t->c.typed = value;
    t->c.before = typed;
    t->c.before_len = (size_t)(value - typed);
    offer_values (&t->c, o.arg);
}

static void offer_typed (struct typing *t)
{
    const char *typed = t->c.typed;
    char operand[128] = "";

    if (t->pending.name)
        offer_values (&t->c, t->pending.arg);
    else if (!t->operands_only && !strncmp (typed, "--", 2) && strchr (typed, '='))
        offer_value (t);
    else if (!t->operands_only && *typed == '-')
        offer_options (t);
    else
        offer_values (&t->c, operand_at (t->command->operands, t->operands, operand, sizeof (operand)));
}

static void offer_words (struct cmd *cmd, const char *group, const char *typed)
{
    struct candidates c = { .cmd = cmd, .typed = typed };
    struct cmd_words w;

    cmd_words (&w, cmd->table, group);
    for (size_t i = 0; i < w.count; i++)
        offer_word (&c, w.words[i]);
}

static int run_complete (struct cmd *cmd)
{
    int n = cmd->argc - 2, words; /* argv[0] is "complete"; the user is typing the last word */
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
    /* With CMD_RUNS, the words behind the first operand belong to another command. */
    if (!(t.command->flags & CMD_VERBATIM) && !(t.command->flags & CMD_RUNS && t.operands > 0))
        offer_typed (&t);
    return CMD_OK;
}

const struct command complete_command = {
    .name = "complete",
    .flags = CMD_VERBATIM | CMD_HIDDEN,
    .summary = "Print possible completions of a command line, for the shell",
    .run = run_complete,
};

/* --- scripts --------------------------------------------------------------------------------- */

static int run_completion (struct cmd *cmd)
{
    char quoted[CMD_QUOTE_MAX];

    cmd_options (cmd, NULL);
    const char *shell = cmd->argv[0];
    for (const char *const *s = completion_scripts; *s; s += 2)
        if (strcmp (s[0], shell) == 0) {
            out_own (s[1]);
            return CMD_OK;
        }
    cmd_usage (cmd, "'%s': a shell is needed: bash, zsh or fish", cmd_quote (shell, strlen (shell), quoted));
}

const struct command completion_command = {
    .name = "completion",
    .operands = "bash|zsh|fish",
    .summary = "Print a shell's completion script for idtree and idtree-http",
    .details = "bash, in ~/.bashrc:                       eval \"$(idtree completion bash)\"\nzsh, in ~/.zshrc, "
               "after compinit:         eval \"$(idtree completion zsh)\"\nfish, in ~/.config/fish/config.fish:      "
               "idtree completion fish | source\nPackages install the same scripts in the folders of these shells.",
    .example = "eval \"$(idtree completion bash)\"",
    .run = run_completion,
};
