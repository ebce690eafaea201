/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* cmd.c - the code that all subcommands of idtree share
 *
 * This is the only file that reads the environment, except that idt_open () reads the URI of the broker.
 *
 * getopt_long () parses the options.  Its tables are built from the command's option table before parsing.  Its own
 * messages are off, because the messages of this file also name the command and suggest the nearest option.
 */
#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/base/cmd.h"
#include "cmd/base/out.h"
#include "cmd/base/suggest.h"
#include "libutil/duration.h"

#define KEY_LONG 256      /* value that getopt_long () returns for option 0 of the table, if it has no letter */
#define TIMEOUT_MS 30000. /* the default of --timeout */
#define DAY_S 86400.
#define WHY_MAX 2048 /* most bytes of a message that a command prints in its own form */

/* --- table ---------------------------------------------------------------------------------- */

/* If 'word' is the first word of 'name', return the rest of 'name', else NULL. */
static const char *after_word (const char *name, const char *word)
{
    size_t len = strlen (word);

    if (strncmp (name, word, len))
        return NULL;
    return name[len] == ' ' ? name + len + 1 : name[len] == '\0' ? name + len : NULL;
}

/* Other names of commands: short names, and names with a group for commands that are named as in Flux. */
static const struct alias {
    const char *name, *command;
} aliases[] = {
    { "status", "overlay status" },
    { "attr get", "getattr" },
    { "attr set", "setattr" },
    { "attr list", "lsattr" },
};
#define ALIASES (sizeof (aliases) / sizeof (aliases[0]))

static const struct command *find_exact (const struct command *const *table, const char *name)
{
    while (*table && strcmp ((*table)->name, name) != 0)
        table++;
    return *table;
}

/* Whether the first word of 'argv', or the first two, are 'name'.  Sets '*words' to 1 or 2. */
static bool is_called (const char *name, int argc, char **argv, int *words)
{
    const char *rest = after_word (name, argv[0]);

    if (!rest || (*rest && (argc < 2 || strcmp (rest, argv[1]) != 0)))
        return false;
    *words = *rest ? 2 : 1;
    return true;
}

const struct command *cmd_find (const struct command *const *table, int argc, char **argv, int *words)
{
    for (size_t i = 0; argc > 0 && i < ALIASES; i++)
        if (is_called (aliases[i].name, argc, argv, words))
            return find_exact (table, aliases[i].command);
    for (int i = 0; argc > 0 && table[i]; i++)
        if (is_called (table[i]->name, argc, argv, words))
            return table[i];
    return NULL;
}

static void add_word (struct cmd_words *w, const char *name, const char *group)
{
    const char *rest = group ? after_word (name, group) : name;

    if (!rest || !*rest || w->count == CMD_WORDS_MAX)
        return;
    snprintf (w->buf[w->count], CMD_WORD_MAX, "%.*s", (int)strcspn (rest, " "), rest);
    w->words[w->count] = w->buf[w->count];
    if (w->count == 0 || strcmp (w->words[w->count], w->words[w->count - 1]))
        w->count++;
}

size_t cmd_words (struct cmd_words *w, const struct command *const *table, const char *group)
{
    w->count = 0;
    for (int i = 0; table[i]; i++)
        if (!(table[i]->flags & CMD_HIDDEN))
            add_word (w, table[i]->name, group);
    for (size_t i = 0; i < ALIASES; i++)
        if (find_exact (table, aliases[i].command))
            add_word (w, aliases[i].name, group);
    return w->count;
}

/* --- ends ----------------------------------------------------------------------------------- */

/* End the program.  _exit () also skips the leak checker, so callers need not free what they have allocated. */
__attribute__ ((noreturn)) static void end (int status)
{
    fflush (stdout);
    _exit (status);
}

static void vwarn (const struct cmd *cmd, const char *fmt, va_list ap)
{
    fflush (stdout);
    out_error ("idtree %s: ", cmd->command->name);
    out_vprint (stderr, fmt, ap);
}

void cmd_warn (const struct cmd *cmd, const char *fmt, ...)
{
    va_list ap;

    cmd_flush (cmd); /* if a later flush failed, the cause would be lost */
    va_start (ap, fmt);
    vwarn (cmd, fmt, ap);
    va_end (ap);
    out_error ("\n");
}

/* The command prints 'why' in its own form.  The command's exit status is kept even if 'why' cannot be written. */
__attribute__ ((noreturn)) static void end_by_own (const struct cmd *cmd, const char *why)
{
    idt_error_t error;
    int status = cmd->died (cmd, why);

    if (out_flush (stdout, &error) < 0 && errno != EPIPE)
        out_error ("idtree %s: cannot write: %s\n", cmd->command->name, error.text);
    end (status);
}

void cmd_die (const struct cmd *cmd, const char *fmt, ...)
{
    char why[WHY_MAX];
    va_list ap;

    va_start (ap, fmt);
    if (cmd->died) {
        vsnprintf (why, sizeof (why), fmt, ap);
        end_by_own (cmd, why);
    }
    vwarn (cmd, fmt, ap);
    va_end (ap);
    out_error ("\n");
    end (CMD_FAILED);
}

void cmd_usage (const struct cmd *cmd, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    vwarn (cmd, fmt, ap);
    va_end (ap);
    out_error (" (idtree %s -h shows the usage)\n", cmd->command->name);
    end (CMD_USAGE);
}

const char *cmd_quote (const char *s, size_t len, char buf[CMD_QUOTE_MAX])
{
    size_t n = 0, i;

    for (i = 0; i < len && n < CMD_QUOTE_MAX - 8; i++) {
        unsigned char c = s[i];

        if (c < ' ' || c == 0x7f)
            n += snprintf (buf + n, CMD_QUOTE_MAX - n, "\\x%02x", c);
        else
            buf[n++] = c;
    }
    if (i < len) {
        /* Do not cut inside a character of several bytes. */
        while (i > 0 && n > 0 && ((unsigned char)s[i] & 0xc0) == 0x80) {
            i--;
            n--;
        }
        n += snprintf (buf + n, CMD_QUOTE_MAX - n, "...");
    }
    buf[n] = '\0';
    return buf;
}

/* --- options -------------------------------------------------------------------------------- */

static void take_help (struct cmd *cmd, const char *arg, void *to)
{
    cmd_help (cmd->command);
    cmd_flush (cmd);
    exit (CMD_OK);
}

static void take_uri (struct cmd *cmd, const char *arg, void *to)
{
    cmd->uri = arg;
}

static void take_timeout (struct cmd *cmd, const char *arg, void *to)
{
    char *end, quoted[CMD_QUOTE_MAX];
    double seconds = strtod (arg, &end);

    if (end == arg || *end || !(seconds >= 0 && seconds <= DAY_S))
        cmd_usage (cmd, "timeout '%s': a number of seconds up to %g is needed, or 0 to wait without end",
                   cmd_quote (arg, strlen (arg), quoted), DAY_S);
    cmd->timeout_ms = seconds > 0 ? seconds * 1000 : -1;
}

static void take_json (struct cmd *cmd, const char *arg, void *to)
{
    cmd->json = true;
}

int cmd_all_options (const struct command *command, struct cmd_option all[CMD_OPTIONS_ALL])
{
    const char *json = command->flags & CMD_SILENT ? "print an empty object when done" : command->json;
    int n = 0;

    for (const struct cmd_option *o = command->options; o && o->name; o++) {
        assert (n < CMD_OPTIONS_MAX);
        all[n++] = *o;
    }
    if (json)
        all[n++] = (struct cmd_option){ 0, "json", NULL, json, take_json, 0 };
    if (command->flags & CMD_CONNECTS) {
        all[n++] = (struct cmd_option){ 0, "uri", "URI", "broker to talk to", take_uri, 0 };
        all[n++] = (struct cmd_option){
            0, "timeout", "S", "give up after S seconds without an answer (default 30; 0: never)", take_timeout, 0
        };
    }
    all[n++] = (struct cmd_option){ 'h', "help", NULL, "show this help", take_help, 0 };
    return n;
}

/* The tables that getopt_long () needs. */
struct parser {
    struct option longs[CMD_OPTIONS_ALL + 1];
    char shorts[4 * CMD_OPTIONS_ALL + 8];
    struct cmd_option options[CMD_OPTIONS_ALL];
    const char *names[CMD_OPTIONS_ALL];
    int count;
};

static void add_letter (struct parser *p, int letter, bool has_arg)
{
    char s[3] = { (char)letter, has_arg ? ':' : '\0', '\0' };

    strcat (p->shorts, s); /* appends nothing if 'letter' is 0 */
}

static void make_parser (const struct command *command, struct parser *p)
{
    memset (p, 0, sizeof (*p));
    strcpy (p->shorts, command->flags & CMD_RUNS ? "+:" : ":");
    p->count = cmd_all_options (command, p->options);
    for (int i = 0; i < p->count; i++) {
        const struct cmd_option *o = &p->options[i];

        p->longs[i].name = o->name;
        p->longs[i].has_arg = o->arg ? required_argument : no_argument;
        p->longs[i].val = o->letter & 0xff ? o->letter & 0xff : KEY_LONG + i;
        p->names[i] = o->help ? o->name : ""; /* suggestions */
        add_letter (p, o->letter & 0xff, o->arg != NULL);
        add_letter (p, o->letter >> 8, o->arg != NULL);
    }
}

/* The option for which getopt_long () returned 'key'; NULL: not in the table. */
static const struct cmd_option *option_of (const struct parser *p, int key)
{
    for (int i = 0; i < p->count; i++)
        if (p->longs[i].val == key || (p->options[i].letter >> 8 != 0 && p->options[i].letter >> 8 == key))
            return &p->options[i];
    return NULL;
}

/* End the program because of a wrong option.  getopt_long () has set 'optopt': 0 for an unknown long option; a letter
 * or key of the table for an option that takes no argument, but was given one; another letter for an unknown option.
 */
static void bad_option (struct cmd *cmd, const struct parser *p)
{
    char quoted[CMD_QUOTE_MAX], name[SUGGEST_WORD_MAX];
    const struct cmd_option *o = option_of (p, optopt);

    if (o)
        cmd_usage (cmd, "option --%s takes no argument", o->name);
    if (optopt >= '0' && optopt <= '9')
        cmd_usage (cmd, "unknown option -%c: write -- before a negative number, as in -- -1", optopt);
    if (optopt != 0)
        cmd_usage (cmd, "unknown option -%c", optopt);
    const char *word = cmd->argv[optind - 1];
    snprintf (name, sizeof (name), "%.*s", (int)strcspn (word + 2, "="), word + 2);
    const char *meant = suggest (name, p->names, p->count);
    cmd_quote (word, strlen (word), quoted);
    if (meant)
        cmd_usage (cmd, "unknown option '%s': did you mean --%s?", quoted, meant);
    cmd_usage (cmd, "unknown option '%s'", quoted);
}

/* Refuse an empty first operand, because it usually comes from an unset variable of a script.  Only an operand named
 * TEXT may be empty.
 */
static void check_empty (struct cmd *cmd, const char *operands)
{
    const char *first = operands + strspn (operands, "[");
    bool is_needed = (*operands && *operands != '[') || cmd->command->flags & CMD_RUNS;

    if (is_needed && cmd->argc > 0 && cmd->argv[0][0] == '\0' && strncmp (first, "TEXT", 4) != 0)
        cmd_usage (cmd, "the %.*s is empty", (int)strcspn (first, " ."), first);
}

/* Refuse a number of operands that the usage line does not allow. */
static void check_operands (struct cmd *cmd)
{
    const char *operands = cmd->command->operands ? cmd->command->operands : "";
    char quoted[CMD_QUOTE_MAX];
    int min = 0, max = 0;

    for (const char *p = operands; *p; p += strspn (p, " ")) {
        min += *p != '[';
        max++;
        if (*p == '[') /* skip the optional operand, which may contain blanks */
            p += strcspn (p, "]");
        p += strcspn (p, " ");
    }
    if (cmd->argc < min)
        cmd_usage (cmd, "missing argument: %s", operands);
    if (!strstr (operands, "...") && cmd->argc > max) {
        const char *extra = cmd->argv[max];

        cmd_usage (cmd, "'%s' is one argument too many", cmd_quote (extra, strlen (extra), quoted));
    }
    check_empty (cmd, operands);
}

void cmd_options (struct cmd *cmd, void *to)
{
    struct parser p;
    int key;

    make_parser (cmd->command, &p);
    opterr = 0;
    while ((key = getopt_long (cmd->argc, cmd->argv, p.shorts, p.longs, NULL)) != -1) {
        if (key == ':')
            cmd_usage (cmd, "option --%s needs an argument", option_of (&p, optopt)->name);
        if (key == '?')
            bad_option (cmd, &p);
        const struct cmd_option *o = option_of (&p, key);
        o->take (cmd, optarg, to ? (char *)to + o->offset : NULL);
    }
    cmd->argc -= optind;
    cmd->argv += optind;
    check_operands (cmd);
}

void cmd_take_flag (struct cmd *cmd, const char *arg, void *to)
{
    *(bool *)to = true;
}

void cmd_take_text (struct cmd *cmd, const char *arg, void *to)
{
    *(const char **)to = arg;
}

void cmd_take_rank (struct cmd *cmd, const char *arg, void *to)
{
    *(uint32_t *)to = cmd_rank (cmd, arg);
}

void cmd_take_count (struct cmd *cmd, const char *arg, void *to)
{
    *(uint64_t *)to = cmd_number (cmd, "count", arg, 1, UINT32_MAX);
}

const struct cmd_option cmd_rank_options[] = {
    CMD_RANK_OPTION (0),
    CMD_OPTIONS_END,
};

uint64_t cmd_number (const struct cmd *cmd, const char *what, const char *s, uint64_t min, uint64_t max)
{
    char quoted[CMD_QUOTE_MAX];
    uint64_t n;

    if (parse_number (s, min, max, &n) < 0)
        cmd_usage (cmd, "%s '%s': a number from %" PRIu64 " to %" PRIu64 " is needed", what,
                   cmd_quote (s, strlen (s), quoted), min, max);
    return n;
}

double cmd_seconds (const struct cmd *cmd, const char *what, const char *s)
{
    char *end, quoted[CMD_QUOTE_MAX];
    double seconds = strtod (s, &end);

    if (end == s || *end || !(seconds > 0 && seconds <= DAY_S))
        cmd_usage (cmd, "%s '%s': a number of seconds above 0 is needed", what, cmd_quote (s, strlen (s), quoted));
    return seconds * 1000;
}

uint32_t cmd_rank (const struct cmd *cmd, const char *s)
{
    return cmd_number (cmd, "rank", s, 0, IDT_NODEID_UPSTREAM - 1);
}

void cmd_flush (const struct cmd *cmd)
{
    idt_error_t why;

    if (out_flush (stdout, &why) == 0)
        return;
    if (errno == EPIPE) /* the reader has closed the pipe, as head does */
        end (CMD_FAILED);
    cmd_die (cmd, "cannot write: %s", why.text);
}

/* --- help ----------------------------------------------------------------------------------- */

static void print_option (const struct cmd_option *o)
{
    char text[64];

    if (!o->help)
        return;
    snprintf (text, sizeof (text), "--%s%s%s", o->name, o->arg ? "=" : "", o->arg ? o->arg : "");
    if (o->letter & 0xff)
        out_print ("  -%c, %-22s %s\n", o->letter & 0xff, text, o->help);
    else
        out_print ("      %-22s %s\n", text, o->help);
}

void cmd_help (const struct command *c)
{
    struct cmd_option all[CMD_OPTIONS_ALL];
    int n = cmd_all_options (c, all);

    out_print ("usage: idtree %s [OPTION]...%s%s\n%s.\n", c->name, c->operands ? " " : "",
               c->operands ? c->operands : "", c->summary);
    if (c->details)
        out_own (c->details);
    out_own (c->details ? "\n\n" : "\n");
    for (int i = 0; i < n; i++)
        print_option (&all[i]);
    if (c->example)
        out_print ("\nexample: %s\n", c->example);
}

/* Print the second words of the commands of a group on one line. */
static void print_group (const struct command *const *table, const char *group)
{
    struct cmd_words w;

    cmd_words (&w, table, group);
    out_print ("  %-10s ", group);
    for (size_t i = 0; i < w.count; i++)
        out_print ("%s%s", i > 0 ? " | " : "", w.words[i]);
    out_print ("\n");
}

/* Whether a command is listed on the line of its group. */
static bool is_in_group (const struct command *c)
{
    for (size_t i = 0; i < ALIASES; i++)
        if (strcmp (aliases[i].command, c->name) == 0 && strchr (aliases[i].name, ' '))
            return true;
    return false;
}

/* The sections of the help screen, in order, with the first words of their commands. */
static const struct section {
    const char *title;
    const char *words; /* each between blanks; NULL: all other commands */
} sections[] = {
    { "ids", " id watermark " },
    { "start and state", " start startctl init state shutdown " },
    { "look", " info status overlay health top ping trace metrics dmesg " },
    { "change", " attr module event logger reload " },
    { "hosts", " broker keygen root " },
    { "jobs and documents", " job doc " },
    { "more", NULL },
};
#define SECTIONS (sizeof (sections) / sizeof (sections[0]))

static const struct section *section_of (const char *word)
{
    char key[CMD_WORD_MAX + 2];
    const struct section *s = sections;

    snprintf (key, sizeof (key), " %s ", word);
    while (s->words && !strstr (s->words, key))
        s++;
    return s;
}

static void print_first_word (const struct command *const *table, char *word)
{
    int words;
    const struct command *c = cmd_find (table, 1, &word, &words);

    if (c && is_in_group (c))
        return;
    if (c)
        out_print ("  %-10s %s\n", word, c->summary);
    else
        print_group (table, word);
}

void cmd_help_all (const struct command *const *table)
{
    struct cmd_words first;

    cmd_words (&first, table, NULL);
    out_print ("usage: idtree COMMAND [OPTION]...\nStart a tree of brokers, get unique ids from it, and inspect it.\n");
    for (size_t k = 0; k < SECTIONS; k++) {
        out_print ("\n%s:\n", sections[k].title);
        for (size_t i = 0; i < first.count; i++)
            if (section_of (first.words[i]) == &sections[k])
                print_first_word (table, first.buf[i]);
    }
    out_print ("\nidtree COMMAND -h shows the options.  example: idtree start -s 8 idtree id new -n 3\n");
}

static bool is_group (const struct command *const *table, const char *word)
{
    struct cmd_words w;

    return cmd_words (&w, table, word) > 0;
}

bool cmd_help_group (const struct command *const *table, const char *group)
{
    if (!is_group (table, group))
        return false;
    out_print ("usage: idtree %s COMMAND [OPTION]...\n\n", group);
    for (int i = 0; table[i]; i++) {
        const char *rest = after_word (table[i]->name, group);

        if (rest && *rest)
            out_print ("  %s %-10s %s\n", group, rest, table[i]->summary);
    }
    for (size_t i = 0; i < ALIASES; i++) {
        const char *rest = after_word (aliases[i].name, group);
        const struct command *c = find_exact (table, aliases[i].command);

        if (rest && *rest && c)
            out_print ("  %s %-10s %s: the same as idtree %s\n", group, rest, c->summary, c->name);
    }
    out_print ("\nidtree %s COMMAND -h shows the options.\n", group);
    return true;
}

/* --- unknown commands ----------------------------------------------------------------------- */

void cmd_unknown (const struct command *const *table, int argc, char **argv)
{
    char quoted[CMD_QUOTE_MAX];
    struct cmd_words w;
    const char *group = is_group (table, argv[0]) ? argv[0] : NULL;
    const char *word = argv[group ? 1 : 0];

    if (group && argc < 2) {
        out_error ("idtree %s: which command? (idtree %s -h lists them)\n", group, group);
        exit (CMD_USAGE);
    }
    cmd_quote (word, strlen (word), quoted);
    if (!group && *word == '-') {
        const char *option = suggest (word, (const char *const[]){ "--version", "--help" }, 2);

        out_error ("idtree: unknown option '%s': ", quoted);
        if (option)
            out_error ("did you mean %s?\n", option);
        else
            out_error ("options follow the command (idtree -h lists the commands)\n");
        exit (CMD_USAGE);
    }
    cmd_words (&w, table, group);
    const char *meant = suggest_synonym (word, w.words, w.count);
    if (!meant)
        meant = suggest (word, w.words, w.count);
    out_error ("idtree%s%s: unknown command '%s'", group ? " " : "", group ? group : "", quoted);
    if (meant)
        out_error (": did you mean %s?\n", meant);
    else
        out_error (" (idtree %s%s-h lists them)\n", group ? group : "", group ? " " : "");
    exit (CMD_USAGE);
}

/* --- run ------------------------------------------------------------------------------------ */

/* An empty variable counts as unset. */
static const char *env (const char *name)
{
    const char *s = getenv (name);

    return s && *s ? s : NULL;
}

static void read_env (struct cmd_env *e)
{
    e->broker = env ("IDTREE_BROKER");
    e->tmpdir = env ("TMPDIR");
    e->shell = env ("SHELL");
    e->path = env ("PATH");
    e->term = env ("TERM");
    e->no_color = env ("NO_COLOR") || (env ("TERM") && !strcmp (env ("TERM"), "dumb"));
}

int cmd_run (const struct command *command, const struct command *const *table, int argc, char **argv)
{
    struct cmd cmd = { .command = command, .table = table, .timeout_ms = TIMEOUT_MS, .argc = argc, .argv = argv };

    read_env (&cmd.env);
    int status = command->run (&cmd);
    if (cmd.json && command->flags & CMD_SILENT && status == CMD_OK)
        out_print ("{}\n");
    cmd_flush (&cmd);
    idt_close (cmd.h);
    return status;
}
