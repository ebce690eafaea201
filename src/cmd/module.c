/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module.c - idtree module load, remove, stats */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/ask.h"
#include "cmd/base/out.h"

struct module_options {
    uint32_t rank;     /* must be first: cmd_rank_options stores at offset 0 */
    const char *ranks; /* used by module stats */
    const char *name;
    bool rusage, clear; /* used by module stats */
};

static struct module_options take_options (struct cmd *cmd)
{
    struct module_options o = { .rank = IDT_NODEID_ANY };

    cmd_options (cmd, &o);
    return o;
}

/* --- load, remove ----------------------------------------------------------------------------- */

/* Make a path absolute, because the broker may have another working directory.  A name without '/' is returned
 * unchanged: the broker looks for it in its module folders.
 */
static char *absolute (struct cmd *cmd, const char *path)
{
    char *s = strchr (path, '/') ? realpath (path, NULL) : strdup (path);

    return s ? s : strdup (path);
}

static int run_load (struct cmd *cmd)
{
    struct module_options o = take_options (cmd);
    char *path = absolute (cmd, cmd->argv[0]);
    json_t *args = json_array ();

    ask_connect_own (cmd);
    for (int i = 1; i < cmd->argc; i++)
        json_array_append_new (args, json_string (cmd->argv[i]));
    json_t *request = json_pack ("{s:s s:o s:b}", "path", path ? path : "", "args", args, "exec", 0);
    if (o.name)
        json_object_set_new (request, "name", json_string (o.name));
    json_decref (ask_new (cmd, "module.load", o.rank, request, cmd->argv[0]));
    free (path);
    return CMD_OK;
}

static int run_remove (struct cmd *cmd)
{
    struct module_options o = take_options (cmd);
    char *path = absolute (cmd, cmd->argv[0]);

    ask_connect_own (cmd);
    json_decref (ask_new (cmd, "module.remove", o.rank, json_pack ("{s:s s:b}", "name", path ? path : "", "cancel", 0),
                          cmd->argv[0]));
    free (path);
    return CMD_OK;
}

/* --- stats ------------------------------------------------------------------------------------ */

/* Whether the number under 'key' names something, so that it is not added. */
static bool is_name (const char *key)
{
    static const char *const names[] = { "seq", "generator", "fingerprint", "drift" };
    size_t len = strlen (key);

    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++)
        if (!strcmp (key, names[i]))
            return true;
    return len >= 4 && !strcmp (key + len - 4, "rank");
}

static bool is_extreme (const char *key)
{
    return !strncmp (key, "longest", 7) || !strncmp (key, "max", 3);
}

static json_t *number_new (const char *key, const json_t *a, const json_t *b)
{
    double x = json_number_value (a), y = json_number_value (b);

    if (is_extreme (key))
        return json_copy ((json_t *)(x > y ? a : b));
    if (json_is_integer (a) && json_is_integer (b))
        return json_integer (json_integer_value (a) + json_integer_value (b));
    return json_real (x + y);
}

static void stats_add (json_t *sum, const json_t *o);

static void add_member (json_t *sum, const char *key, json_t *value)
{
    json_t *had = json_object_get (sum, key);

    if (json_is_object (value)) {
        if (!had)
            json_object_set_new (sum, key, had = json_object ());
        stats_add (had, value);
    }
    else if (!had)
        json_object_set_new (sum, key, json_copy (value));
    else if (json_is_number (had) && json_is_number (value) && !is_name (key))
        json_object_set_new (sum, key, number_new (key, had, value));
    else if (!json_equal (had, value))
        json_object_set_new (sum, key, json_null ());
}

/* Add the object 'o' of a rank to 'sum'.  Numbers are added, also in nested objects; of longest_* and max* the greatest
 * one is kept.  Other values, and numbers that name something (such as a rank), are kept if all ranks report the same
 * one; otherwise they become null.  Arrays are left out.
 */
static void stats_add (json_t *sum, const json_t *o)
{
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)o, key, value)
        if (!json_is_array (value))
            add_member (sum, key, value);
}

struct stats {
    json_t *sum;
    json_t *failed;   /* ranks_note () */
    json_t *answered; /* array of ranks */
};

static void take_stats (uint32_t rank, idt_future_t *f, void *arg)
{
    struct stats *s = arg;
    json_t *o = NULL;
    const char *text;

    if (ranks_note (s->failed, rank, f))
        return;
    if (idt_rpc_get (f, &text) == 0 && text && (o = json_loads (text, 0, NULL)))
        stats_add (s->sum, o);
    json_array_append_new (s->answered, json_integer (rank));
    json_decref (o);
}

/* Print the ranks that answered, then the sums. */
static void print_sums (const struct stats *s, json_t *ranks)
{
    json_t *o = json_pack ("{s:O}", "ranks", ranks);

    json_object_update (o, s->sum);
    out_print_members (o, "", 0, ASK_REALS | JSON_COMPACT);
    json_decref (o);
}

/* "failed" is left out if no rank failed. */
static void print_sums_json (struct cmd *cmd, const struct stats *s, json_t *ranks)
{
    json_t *o = json_pack ("{s:O s:O}", "ranks", ranks, "sum", s->sum);

    if (json_object_size (s->failed) > 0)
        json_object_set_new (o, "failed", ranks_noted_new (cmd, s->failed));
    ask_print_new (cmd, o);
}

/* Send 'topic' to all ranks in 'text', and print the sums.  Returns the exit status: CMD_FAILED if a rank did not
 * answer, or answered with an error.
 */
static int run_stats_of_many (struct cmd *cmd, const char *text, const char *topic)
{
    struct stats s = { .sum = json_object (), .failed = json_object (), .answered = json_array () };
    struct ranks ranks = ranks_read (cmd, text);
    int status;

    ranks_ask (cmd, &ranks, topic, NULL, take_stats, &s);
    json_t *answered = ranks_text_new (cmd, s.answered);
    if (cmd->json) {
        print_sums_json (cmd, &s, answered);
        status = json_object_size (s.failed) > 0 ? CMD_FAILED : CMD_OK;
    }
    else {
        print_sums (&s, answered);
        status = ranks_warn (cmd, s.failed, "ranks");
    }
    json_decref (answered);
    json_decref (s.sum);
    json_decref (s.failed);
    json_decref (s.answered);
    ranks_fini (&ranks);
    return status;
}

static int run_stats (struct cmd *cmd)
{
    struct module_options o = take_options (cmd);
    const char *method = o.clear ? "stats-clear" : o.rusage ? "rusage" : "stats-get";
    char topic[256];

    if (!*cmd->argv[0] || snprintf (topic, sizeof (topic), "%s.%s", cmd->argv[0], method) >= (int)sizeof (topic))
        cmd_usage (cmd, "the name of a module has 1 to %zu bytes", sizeof (topic) - strlen (method) - 2);
    if (ranks_are_many (o.ranks))
        return run_stats_of_many (cmd, o.ranks, topic);
    if (o.ranks)
        o.rank = cmd_rank (cmd, o.ranks);
    idt_future_t *f = ask_ready (cmd, ask_send (cmd, topic, o.rank, NULL), topic);
    if (idt_future_errnum (f) == ENOSYS)
        cmd_die (
            cmd,
            "%s: No service matching %s is registered: no module of that name is loaded there (idtree module list%s%s)",
            cmd->argv[0], topic, o.ranks ? " -r " : "", o.ranks ? o.ranks : "");
    json_t *answer = ask_take_new (cmd, f, topic);
    if (cmd->json)
        ask_print (cmd, answer);
    else
        out_print_members (answer, "", 0, ASK_REALS | JSON_COMPACT);
    json_decref (answer);
    return CMD_OK;
}

#define AT(member) offsetof (struct module_options, member)

static const struct cmd_option load_options[] = {
    CMD_RANK_OPTION (AT (rank)),
    { 0, "name", "NAME", "load it under this name instead of its file's", cmd_take_text, AT (name) },
    CMD_OPTIONS_END,
};

static const struct cmd_option stats_options[] = {
    { 'r', "rank", "RANKS", "of rank 3, or sums over 0-3,17 or all (default: the broker of the URI)", cmd_take_text,
      AT (ranks) },
    { 0, "rusage", NULL, "show its use of CPU time and memory instead", cmd_take_flag, AT (rusage) },
    { 0, "clear", NULL, "set its counters to zero instead", cmd_take_flag, AT (clear) },
    CMD_OPTIONS_END,
};

const struct command module_load_command = {
    .name = "module load",
    .operands = "NAME|PATH [ARG]...",
    .flags = CMD_CONNECTS | CMD_RUNS | CMD_SILENT,
    .summary = "Load a module into a broker",
    .example = "idtree module load ./mymodule.so --verbose",
    .options = load_options,
    .run = run_load,
};

const struct command module_remove_command = {
    .name = "module remove",
    .operands = "MODULE",
    .flags = CMD_CONNECTS | CMD_SILENT,
    .summary = "Remove a module from a broker",
    .example = "idtree module remove fluid",
    .options = cmd_rank_options,
    .run = run_remove,
};

const struct command module_stats_command = {
    .name = "module stats",
    .operands = "MODULE",
    .flags = CMD_CONNECTS,
    .summary = "Show or clear the counters of a module",
    .example = "idtree module stats fluid",
    .json = "one object",
    .options = stats_options,
    .run = run_stats,
};
