/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module.c - idtree module load, remove, stats */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cmd/base/ask.h"
#include "cmd/base/commands.h"
#include "cmd/base/out.h"
#include "cmd/base/ranks.h"
#include "cmd/inspect/stats.h"

struct module_options {
    uint32_t rank;
    const char *ranks; /* stats */
    const char *name;
    bool rusage, clear; /* stats */
};

static struct module_options take_options (struct cmd *cmd)
{
    struct module_options o = { .rank = IDT_NODEID_ANY };

    cmd_options (cmd, &o);
    return o;
}

/* --- load, remove ----------------------------------------------------------------------------- */

/* Make a path absolute, as the broker may have another working directory.  A name without '/' stays: the broker looks
 * for it in its module folders.
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

    cmd_connect_own (cmd);
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

    cmd_connect_own (cmd);
    json_decref (ask_new (cmd, "module.remove", o.rank, json_pack ("{s:s s:b}", "name", path ? path : "", "cancel", 0),
                          cmd->argv[0]));
    free (path);
    return CMD_OK;
}

/* --- stats ------------------------------------------------------------------------------------ */

static int run_stats (struct cmd *cmd)
{
    struct module_options o = take_options (cmd);
    const char *method = o.clear ? "stats-clear" : o.rusage ? "rusage" : "stats-get";
    char topic[256];

    if (!*cmd->argv[0] || snprintf (topic, sizeof (topic), "%s.%s", cmd->argv[0], method) >= (int)sizeof (topic))
        cmd_usage (cmd, "the name of a module has 1 to %zu bytes", sizeof (topic) - strlen (method) - 2);
    if (ranks_are_many (o.ranks))
        return stats_print (cmd, o.ranks, topic, cmd->json);
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
        ask_print_members (answer, "", 0, ASK_REALS | JSON_COMPACT);
    json_decref (answer);
    return CMD_OK;
}

#define AT(member) offsetof (struct module_options, member)
#define RANK_OPTION                                                                              \
    {                                                                                            \
        'r', "rank", "R", "of rank R (default: the broker of the URI)", cmd_take_rank, AT (rank) \
    }

static const struct cmd_option load_options[] = {
    RANK_OPTION,
    { 0, "name", "NAME", "load it under this name instead of its file's", cmd_take_text, AT (name) },
    CMD_OPTIONS_END,
};

static const struct cmd_option remove_options[] = {
    RANK_OPTION,
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
    .options = remove_options,
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
